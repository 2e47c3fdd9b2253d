// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Report is what Operations found.
type Report struct {
	Summary    Summary        `json:"summary"`
	Operations []OperationRow `json:"operations"`
	// Communicators of more than one rank, with what they may be for.
	Communicators []CommunicatorRow `json:"communicators"`
	Phases        []PhaseRow        `json:"phases"` // see Phases
	Waits         Waits             `json:"waits"`
	WaitStates    *WaitStates       `json:"-"` // in detail
	operations    *operations
	// Problems, one line each: files that could not be read to their end.
	Problems []string `json:"problems,omitempty"`
}

// OperationRow sums up the operations of one function, datatype and size on one communicator.
//
// An operation of a collective is one for all members; its time is the mean of its members'
// intervals, as nccl-tests averages over ranks. Send and Recv are operations of their own, one per
// call. Operations that some member with data has not ended are only counted.
type OperationRow struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	Role         string       `json:"role"` // what the communicator may be for, see CommunicatorRow
	Ranks        int          `json:"ranks"`
	Operation    string       `json:"operation"`
	Datatype     string       `json:"datatype"`
	Size         uint64       `json:"size"` // bytes, as nccl-tests counts them; of a class the mean
	// Class is the class of sizes that the row sums up, between the least and the greatest in it; nil: all
	// operations of the row have one size.
	Class   *SizeClass `json:"size_class,omitempty"`
	MinSize *uint64    `json:"min_size,omitempty"`
	MaxSize *uint64    `json:"max_size,omitempty"`
	// Grouped: launched together with others by one kernel plan. NCCL stamps a plan as a whole, so
	// Time is the plan's and there is no bandwidth.
	Grouped bool `json:"grouped"`
	// Device: a buffer of theirs is known to be in a GPU's memory.
	Device bool `json:"device"`
	// TimingSource is what the times are: "gpu", "network", "enqueue" (not the execution), "duration"
	// (when is not known), or "". It is
	// the weakest among the members'.
	TimingSource string   `json:"timing_source"`
	Algorithms   []string `json:"algorithms"`
	Protocols    []string `json:"protocols"`
	MinChannels  uint32   `json:"min_channels"` // 0: not known
	MaxChannels  uint32   `json:"max_channels"`

	Calls           uint64 `json:"calls"` // of all ranks
	MinCallsPerRank uint64 `json:"min_calls_per_rank"`
	MaxCallsPerRank uint64 `json:"max_calls_per_rank"`
	Count           uint64 `json:"operations"` // that every member has ended; of these are the times
	Time            Times  `json:"time"`
	// Approximate: p50 and p99 are right to 2 %. With few operations they are exact.
	Approximate bool    `json:"approximate"`
	AlgBW       float64 `json:"algbw"` // GB/s, size / average time; 0: not known
	BusBW       float64 `json:"busbw"` // GB/s, algbw × nccl-tests' factor; 0: not known
}

// Times are statistics of intervals in nanoseconds.
type Times struct {
	Total float64 `json:"total_ns"`
	Avg   float64 `json:"avg_ns"`
	Min   float64 `json:"min_ns"`
	P50   float64 `json:"p50_ns"` // nearest rank
	P99   float64 `json:"p99_ns"`
	Max   float64 `json:"max_ns"`
}

// keptTimes is how many durations of a row are kept one by one, for exact percentiles.
const keptTimes = 4096

// durations are those of a row, ns.
type durations = stats.Distribution[float64]

// timesOf gives the statistics, and whether their percentiles are approximate.
func timesOf(d *durations) (t Times, approximate bool) {
	if d.Count == 0 {
		return Times{}, false
	}
	return Times{Total: d.Total(), Avg: d.Mean(), Min: d.Min, P50: d.Percentile(50), P99: d.Percentile(99), Max: d.Max}, d.Approximate()
}

// Operations reads all events of an archive and gives its summary, the operations with their times
// and bandwidths, the application's phases, and who waited for whom.
//
// Operations that the archive says were not recorded alike by all members are left out of everything
// that compares members, and counted. The error is that of the archive's definitions only.
func Operations(a *otf2.Archive) (*Report, error) { return Observe(a, new(Observer)) }

// Observe makes the report of Operations, and shows an observer what it reads.
func Observe(a *otf2.Archive, see *Observer) (*Report, error) {
	ps := propertiesOf(a.Anchor)
	comms := facts.Communicators(a.Defs)
	o := newOperations(a, ps, comms)
	o.told, o.waits.see = see.Part, see.Waited
	lanes := lanesOf(a.Defs)
	readers := make([]*laneReader, len(lanes))
	events := make([]func(*otf2.Event), len(lanes))
	for i := range lanes {
		readers[i] = newLaneReader(a.Defs, comms)
		if see.Lane != nil {
			events[i] = see.Lane()
		}
	}
	report := new(Report)
	report.Problems = readLanes(a, lanes, func(i int, ev *otf2.Event, found []operation) []operation {
		if events[i] != nil {
			events[i](ev)
		}
		return readers[i].event(ev, found)
	}, o.add)
	phases := newPhaseCounter(a.Defs)
	for _, r := range readers {
		o.absorb(r)
		phases.absorb(r.phases)
	}
	o.assembly.end()
	used := make(map[otf2.CommRef]map[string]bool)
	for key := range o.rows {
		if used[key.comm] == nil {
			used[key.comm] = make(map[string]bool)
		}
		used[key.comm][key.function] = true
	}
	report.Communicators = describeCommunicators(a.Defs, comms, used)
	o.roles = make(map[otf2.CommRef]string)
	for _, c := range report.Communicators {
		o.roles[c.Comm] = c.Role
	}
	report.Operations, report.operations = o.table(nil), o
	report.Phases = phases.result()
	report.Waits, report.WaitStates = o.waits.result()
	report.Summary = o.summary(a, ps, comms)
	return report, nil
}

func newOperations(a *otf2.Archive, ps properties, comms map[otf2.CommRef]*facts.Communicator) *operations {
	o := &operations{
		defs: a.Defs, stretches: stretchesOf(a.Anchor), rows: make(map[rowKey]*row),
		comms: comms, expected: membersWithData(a.Defs, comms), waits: newWaitCounter(a.Defs, comms),
	}
	o.assembly = newAssembly(o.finish, o.abandon)
	return o
}

// laneReader finds the operations in one lane, and counts what needs no other lanes.
type laneReader struct {
	operations  *operationReader
	phases      *phaseCounter
	network     *networkPhases
	found       []operation
	events      uint64
	first, last otf2.Timestamp
}

func newLaneReader(defs *otf2.Definitions, comms map[otf2.CommRef]*facts.Communicator) *laneReader {
	r := &laneReader{phases: newPhaseCounter(defs), network: newNetworkPhases(defs)}
	r.operations = newOperationReader(defs, comms, func(op *operation) {
		op.phase = r.phases.of(op.Location, op.Parent)
		r.found = append(r.found, *op)
	})
	reader, phases := r.operations.Reader, r.phases.wanted()
	reader.Enter = func(region *facts.Region) {
		if phases {
			r.phases.enter(region)
		}
		r.network.enter(region)
	}
	alone := reader.Leave
	reader.Leave = func(region *facts.Region) {
		alone(region)
		if phases {
			r.phases.leave(region)
		}
		r.network.leave(region)
	}
	if phases {
		reader.Begun = r.phases.begun
	}
	return r
}

func (r *laneReader) event(ev *otf2.Event, found []operation) []operation {
	r.events++
	if r.events == 1 || ev.Time < r.first {
		r.first = ev.Time
	}
	r.last = max(r.last, ev.Time)
	r.found = found
	r.operations.Event(ev)
	return r.found
}

func boolCount(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// operations gathers operations into rows.
type operations struct {
	defs        *otf2.Definitions
	comms       map[otf2.CommRef]*facts.Communicator
	stretches   []facts.Stretch
	rows        map[rowKey]*row
	expected    map[otf2.CommRef]int // members with data
	assembly    *assembly
	waits       *waitCounter
	told        func(*Part) // if set, told of each part
	part        Part        // that told is given
	events      uint64
	first, last otf2.Timestamp
	alone       uint64 // on communicators of one rank
	unfinished  uint64 // that not every member ended
	leftOut     uint64 // in stretches that the members did not record alike
	roles       map[otf2.CommRef]string
	matched     func(members []operation) // if set, told of each collective that all members have ended
}

type rowKey struct {
	comm     otf2.CommRef
	function string
	dtype    otf2.StringRef
	size     uint64
	grouped  bool
	source   facts.Source
	device   bool
}

type row struct {
	collective    *regions.Collective
	times         durations
	algos, protos map[otf2.StringRef]bool
	min, max      uint32
	calls         map[int]uint64 // by rank
	bytes         float64        // of all, where rows of several sizes are summed up
	least, most   uint64         // size
}

func newRow(c *regions.Collective) *row {
	return &row{
		collective: c, times: durations{Keep: keptTimes}, calls: make(map[int]uint64), min: math.MaxUint32,
		algos: make(map[otf2.StringRef]bool), protos: make(map[otf2.StringRef]bool),
	}
}

// merge adds the operations of one size.
func (r *row) merge(o *row, size uint64) {
	r.times.Merge(&o.times)
	r.bytes += float64(size) * float64(o.times.Count)
	r.least, r.most = min(r.least, size), max(r.most, size)
	r.min, r.max = min(r.min, o.min), max(r.max, o.max)
	maps.Copy(r.algos, o.algos)
	maps.Copy(r.protos, o.protos)
	for rank, n := range o.calls {
		r.calls[rank] += n
	}
}

// key is the row that one member's part belongs to.
func (op *operation) key() rowKey {
	return rowKey{op.comm.Ref, op.Function, op.Datatype, op.Size, op.Grouped, op.Source, op.Device}
}

// absorb takes over what a lane has counted.
func (o *operations) absorb(r *laneReader) {
	if r.events == 0 {
		return
	}
	if o.events == 0 || r.first < o.first {
		o.first = r.first
	}
	o.events += r.events
	o.last = max(o.last, r.last)
	o.alone += r.operations.alone
	o.waits.network.absorb(r.network)
}

func (o *operations) add(op *operation) {
	if o.told != nil {
		fillPart(&o.part, op, o.defs, o.stretches)
		o.told(&o.part)
	}
	if facts.IsMessage(op.Function) {
		o.enter(op.key(), []operation{*op}, float64(op.Duration()))
		if len(o.stretches) > 0 && facts.Excluded(o.stretches, op.comm.Ref, op.pairName(), op.Ordinal) {
			o.waits.notAlike(op)
		} else {
			o.waits.message(op)
		}
		return
	}
	if facts.Excluded(o.stretches, op.comm.Ref, op.Function, op.Ordinal) {
		o.leftOut++
		return
	}
	o.assembly.add(partKey{op.comm.Ref, op.Function, op.Ordinal}, op, o.expected[op.comm.Ref])
}

// abandon counts a collective that not all members have ended.
func (o *operations) abandon(members []operation) {
	o.unfinished++
	o.waits.unfinished(members)
}

// finish takes a collective that all members have ended.
func (o *operations) finish(members []operation) {
	key, sum := members[0].key(), 0.0
	for i := range members {
		m := &members[i]
		sum += float64(m.End - m.Begin)
		key.source = min(key.source, m.Source)
		key.grouped = key.grouped || m.Grouped
		key.device = key.device || m.Device
		key.size = max(key.size, m.Size)
	}
	o.enter(key, members, sum/float64(len(members)))
	o.waits.collective(members)
	if o.matched != nil {
		o.matched(members)
	}
}

func (o *operations) enter(key rowKey, members []operation, time float64) {
	r := o.rows[key]
	if r == nil {
		r = newRow(members[0].Collective)
		o.rows[key] = r
	}
	r.times.Add(time)
	for i := range members {
		m := &members[i]
		r.calls[m.rank]++
		r.algos[m.Algo] = true
		r.protos[m.Proto] = true
		r.min, r.max = min(r.min, m.Channels), max(r.max, m.Channels)
	}
}

// table makes the rows of the report, ordered by communicator, operation, datatype, size. classOf gives the
// class that a size is summed up in; nil: sizes stand for themselves.
func (o *operations) table(classOf func(uint64) *SizeClass) []OperationRow {
	type classKey struct {
		rowKey
		class *SizeClass
	}
	sums := make(map[classKey]*row)
	for key, r := range o.rows {
		k := classKey{rowKey: key}
		if classOf != nil {
			k.class, k.size = classOf(key.size), 0
		}
		sum := sums[k]
		if sum == nil {
			sum = newRow(r.collective)
			sum.least, sum.most = key.size, key.size
			sums[k] = sum
		}
		sum.merge(r, key.size)
	}
	rows := make([]OperationRow, 0, len(sums))
	for key, r := range sums {
		comm := o.comms[key.comm]
		out := OperationRow{
			Communicator: comm.Name, Comm: key.comm, Role: o.roles[key.comm], Ranks: comm.Size(), Operation: key.function,
			Datatype: o.defs.String(key.dtype), Size: key.size, Class: key.class, Grouped: key.grouped, Device: key.device, TimingSource: key.source.String(),
			Algorithms: o.names(r.algos), Protocols: o.names(r.protos), MinChannels: r.min, MaxChannels: r.max,
			Count: r.times.Count, MinCallsPerRank: math.MaxUint64,
		}
		out.Time, out.Approximate = timesOf(&r.times)
		for _, n := range r.calls {
			out.Calls += n
			out.MinCallsPerRank, out.MaxCallsPerRank = min(out.MinCallsPerRank, n), max(out.MaxCallsPerRank, n)
		}
		if len(r.calls) < comm.Size() {
			out.MinCallsPerRank = 0
		}
		size := float64(key.size)
		if key.class != nil {
			size = r.bytes / float64(max(r.times.Count, 1))
			out.Size = uint64(math.Round(size))
			out.MinSize, out.MaxSize = &r.least, &r.most
		}
		if !key.grouped && key.source.HasLength() && out.Time.Avg > 0 {
			out.AlgBW = size / out.Time.Avg // bytes per ns are GB/s
			out.BusBW = out.AlgBW
			if r.collective != nil {
				out.BusBW *= r.collective.BusFactor(float64(comm.Size()))
			}
		}
		rows = append(rows, out)
	}
	slices.SortFunc(rows, func(a, b OperationRow) int {
		return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Datatype, b.Datatype),
			a.Class.compare(b.Class), cmp.Compare(a.Size, b.Size), cmp.Compare(boolCount(a.Grouped), boolCount(b.Grouped)),
			cmp.Compare(a.TimingSource, b.TimingSource), cmp.Compare(boolCount(a.Device), boolCount(b.Device)))
	})
	return rows
}

func (o *operations) names(refs map[otf2.StringRef]bool) []string {
	names := []string{}
	for ref := range refs {
		if d := o.defs.StringDef(ref); d != nil && d.Text != "" {
			names = append(names, d.Text)
		}
	}
	slices.Sort(names)
	return names
}
