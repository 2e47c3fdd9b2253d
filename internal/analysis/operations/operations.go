// SPDX-License-Identifier: Apache-2.0

// Package operations reads an archive once and returns its summary, its operations with their times and bandwidths,
// and, from the same pass, phases and waits. Apart from one duration per operation, up to a limit, memory is bounded
// by what is pending.
package operations

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/efficiency"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overtime"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/phases"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Report is the result of Observe.
type Report struct {
	Summary    Summary `json:"summary"`
	Operations []Row   `json:"operations"`
	// Communicators lists those of more than one rank, with their likely purposes.
	Communicators []CommunicatorRow `json:"communicators"`
	Phases        []phases.Row      `json:"phases"` // see package phases
	Waits         waits.ByRank      `json:"waits"`
	WaitStates    *waits.States     `json:"-"` // in detail
	Causes        *causes.Result    `json:"-"` // the causes of the waits
	operations    *operations
	// Problems has one line for each file that could not be read to its end.
	Problems []string `json:"problems,omitempty"`
	// Verdict says what made the ranks wait.
	Verdict *verdict.Verdict `json:"verdict"`
	// CriticalPath says what the run's length consists of; nil: there were no operations, or a part of the run was
	// selected.
	CriticalPath *criticalpath.Result `json:"critical_path"`
	// Efficiency is how well the ranks' time was used.
	Efficiency *efficiency.Result `json:"efficiency"`
}

// Row is a row of the table of operations.
type Row = bandwidth.Row

// Observe reads all events of an archive, passes what it reads to an observer, and returns the archive's summary, the
// operations with their times and bandwidths, the application's phases, and who waited for whom.
//
// Operations that, according to the archive, the members recorded differently are only counted, and left out of all
// comparisons of members. The error concerns the archive's definitions only.
func Observe(a *otf2.Archive, see *Observer) (*Report, error) {
	ps := selfreport.PropertiesOf(a.Anchor)
	comms := membership.Communicators(a.Defs)
	o := newOperations(a, comms)
	o.see, o.seeWhole = see.Part, see.Operation
	o.choose(see.Selection, see.Waited)
	o.causing = newCausing(a.Defs, comms, see.Selection == nil)
	line := overtime.NewLine(len(o.causing.ranks))
	o.waits.Over = line
	o.causing.path.Traced(see.Path)
	o.causing.engine.SetTimeLine(line)
	o.causing.engine.OnCharge(see.Charged)
	places := efficiency.NewPlaces(a.Defs, o.waits.Of)
	times := efficiency.NewCounter(places)
	o.waits.Met, o.waits.Lost = o.causing.engine.AddMessagePair, o.causing.engine.AddLostEnd
	lanes := analysis.LanesOf(a.Defs)
	readers := make([]*laneReader, len(lanes))
	events := make([]func(*otf2.Event), len(lanes))
	for i := range lanes {
		readers[i] = newLaneReader(a.Defs, comms, o.causing.lanes.Lane(lanes[i]), efficiency.NewCounter(places),
			see.Selection)
		readers[i].phases.Ended(see.Phase)
		if see.Lane != nil {
			events[i] = see.Lane()
		}
	}
	o.causing.lanes = nil // frees its tables of all locations
	report := new(Report)
	report.Problems = analysis.ReadLanes(a, lanes,
		func(i int, ev *otf2.Event, found []analysis.Operation) []analysis.Operation {
			if events[i] != nil {
				events[i](ev)
			}
			return readers[i].event(ev, found)
		}, o.add)
	phases := phases.NewCounter(a.Defs)
	for _, r := range readers {
		o.addLane(r)
		phases.Absorb(r.phases)
		times.Absorb(r.times)
	}
	o.assembly.End()
	o.assembly, readers = nil, nil
	analysis.HaveRead(a.Defs)
	report.Communicators = describeCommunicators(a.Defs, property.Births(a.Anchor), comms, o.rows.Functions())
	o.roles = make(map[otf2.CommRef]string)
	for _, c := range report.Communicators {
		o.roles[c.Comm] = c.Role
	}
	report.Operations, report.operations = o.table(nil), o
	report.Phases = phases.Result()
	report.Waits, report.WaitStates = o.waits.Result()
	report.Summary = o.summary(a, ps, comms)
	report.findVerdict(a, o)
	report.whereItWent(o, line, times)
	return report, nil
}

// choose limits the report to a selection, and passes the waits in it to see.
func (o *operations) choose(s *selection.Selection, see func(*waits.Wait)) {
	o.selected, o.waits.See = s, see
	if s == nil {
		return
	}
	o.waits.Shown = s.Rank
	if see != nil {
		o.waits.See = func(w *waits.Wait) {
			if s.Shown(w.Place.Location) {
				see(w)
			}
		}
	}
}

func newOperations(a *otf2.Archive, comms map[otf2.CommRef]*membership.Communicator) *operations {
	o := &operations{
		defs: a.Defs, stretches: selfreport.StretchesOf(a.Anchor), rows: bandwidth.NewRows(),
		begin: otf2.UndefinedTimestamp, comms: comms, expected: analysis.MembersWithData(a.Defs, comms),
		waits: waits.NewCounter(a.Defs, property.HostClocksOf(a.Anchor), comms),
	}
	o.assembly = analysis.NewAssembly(o.finish, o.countIncomplete)
	o.rows.Unstated = !attribute.Find(a.Defs).Has(regions.AttrTimingSource)
	return o
}

// laneReader finds the operations in one lane, and counts what does not depend on other lanes.
type laneReader struct {
	operations  *analysis.OperationReader
	phases      *phases.Counter
	network     *waits.NetworkPhases
	times       *efficiency.Counter
	found       []analysis.Operation
	selected    *selection.Selection
	events      uint64
	first, last otf2.Timestamp // of the selected events
	begin       otf2.Timestamp // of all events
}

func newLaneReader(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator, local *causes.Lane,
	times *efficiency.Counter, selected *selection.Selection) *laneReader {
	r := &laneReader{times: times, selected: selected, begin: otf2.UndefinedTimestamp, phases: phases.NewCounter(defs),
		network: waits.NewNetworkPhases(defs)}
	r.operations = analysis.NewOperationReader(defs, comms, func(op *analysis.Operation) {
		op.During = r.phases.Of(op.Location, op.Parent)
		op.Local = local.Operation(&op.Operation)
		op.Local.During = op.During
		op.Local.Outside = !selected.Operation(op)
		r.found = append(r.found, *op)
	})
	reader, phases := r.operations.Reader, r.phases.Wanted()
	reader.Enter = func(region *facts.Region) {
		local.Enter(region)
		if !selected.At(region.Location, region.Begin) {
			return
		}
		if phases {
			r.phases.Enter(region)
		}
		r.network.Enter(region)
		times.Enter(region)
	}
	alone := reader.Leave
	reader.Leave = func(region *facts.Region) {
		local.Leave(region)
		if !selected.At(region.Location, region.Begin) {
			return
		}
		alone(region)
		if phases {
			r.phases.Leave(region)
		}
		r.network.Leave(region)
		times.Leave(region)
	}
	reader.Sums = func(s *facts.NetSums) {
		if selected.At(s.Location, s.Time) {
			r.network.Sums(s)
		}
	}
	if phases {
		reader.Begun = func(d *facts.Details, in *facts.Region) {
			if in == nil || selected.At(in.Location, in.Begin) {
				r.phases.Begun(d, in)
			}
		}
	}
	return r
}

func (r *laneReader) event(ev *otf2.Event, found []analysis.Operation) []analysis.Operation {
	r.begin = min(r.begin, ev.Time)
	if r.selected.At(ev.Location, ev.Time) {
		r.events++
		if r.events == 1 || ev.Time < r.first {
			r.first = ev.Time
		}
		r.last = max(r.last, ev.Time)
	}
	r.found = found
	r.operations.Event(ev)
	return r.found
}

// operations collects operations into rows.
type operations struct {
	defs        *otf2.Definitions
	comms       map[otf2.CommRef]*membership.Communicator
	stretches   []property.Stretch
	rows        *bandwidth.Rows
	expected    map[otf2.CommRef]int // members with data
	assembly    *analysis.Assembly
	waits       *waits.Counter
	causing     *causing    // nil: causes are not wanted
	see         func(*Part) // if set, receives each part
	seeWhole    func(*analysis.Operation)
	part        Part // the part passed to see
	selected    *selection.Selection
	events      uint64
	first, last otf2.Timestamp
	begin       otf2.Timestamp // of the run
	alone       uint64         // operations on communicators of one rank
	unfinished  uint64         // operations that not every member ended
	open        uint64         // operations that had not ended when the data did
	leftOut     uint64         // operations in stretches that the members recorded differently
	roles       map[otf2.CommRef]string
	matched     func(members []analysis.Operation) // if set, receives each collective that all members have ended
}

// addLane adds what a lane has counted.
func (o *operations) addLane(r *laneReader) {
	o.begin = min(o.begin, r.begin)
	o.waits.Network.Absorb(r.network)
	if r.events == 0 {
		return
	}
	if o.events == 0 || r.first < o.first {
		o.first = r.first
	}
	o.events += r.events
	o.last = max(o.last, r.last)
	o.alone += r.operations.Alone
}

func (o *operations) add(op *analysis.Operation) {
	inside := !op.Local.Outside
	shown := inside && o.selected.Shown(op.Location)
	if o.seeWhole != nil && shown {
		o.seeWhole(op)
	}
	if o.see != nil && shown {
		fillPart(&o.part, op, o.defs, o.stretches)
		o.see(&o.part)
	}
	o.causing.part(op)
	if facts.IsMessage(op.Function) {
		if shown {
			o.rows.Member(&op.Operation, op.Rank)
			o.rows.End()
			if op.Unfinished && op.Function == "Send" {
				o.open++
			}
		}
		if len(o.stretches) > 0 && property.Excluded(o.stretches, op.Communicator.Ref, op.Sequence(), op.Ordinal) {
			o.causing.message(op, false)
			o.waits.Inconsistent(op)
		} else {
			o.causing.message(op, op.Peer != op.Rank)
			o.waits.Message(op)
		}
		return
	}
	if property.Excluded(o.stretches, op.Communicator.Ref, op.Function, op.Ordinal) {
		if inside {
			o.leftOut++
		}
		o.causing.alone(op)
		return
	}
	o.assembly.Add(analysis.PartKey{Comm: op.Communicator.Ref, Sequence: op.Function, Ordinal: op.Ordinal}, op,
		o.expected[op.Communicator.Ref])
}

// countIncomplete counts a collective that not all members have ended.
func (o *operations) countIncomplete(members []analysis.Operation) {
	if !members[0].Local.Outside {
		o.unfinished++
	}
	o.causing.abandoned(members)
	o.waits.Unfinished(members)
}

// finish takes a collective that all members have ended.
func (o *operations) finish(members []analysis.Operation) {
	inside := !members[0].Local.Outside
	if inside {
		open := false
		for i := range members {
			o.rows.Member(&members[i].Operation, members[i].Rank)
			open = open || members[i].Unfinished
		}
		o.rows.End()
		if open {
			o.open++
		}
	}
	o.waits.Collective(members)
	o.causing.collective(members, o.waits.Slowed)
	if o.matched != nil && inside {
		o.matched(members)
	}
}

// KeepFirst includes start-up operations in the times of the table of operations.
func (r *Report) KeepFirst() {
	r.operations.rows.First = true
	r.Operations = r.operations.table(nil)
}

// table returns the rows of the report; classOf is as for Rows.Table in package bandwidth.
func (o *operations) table(classOf func(uint64) *analysis.SizeClass) []Row {
	return o.rows.Table(&bandwidth.Names{Defs: o.defs, Comms: o.comms, Roles: o.roles}, classOf)
}

// BySizeClass makes the report's operations one row per size class instead of one per size.
func (r *Report) BySizeClass() { r.Operations = r.operations.table(analysis.SizeClassOf) }
