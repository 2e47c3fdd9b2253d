// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"math"
	"slices"

	"ncclotf2/otf2"
)

// Report is what Operations found.
type Report struct {
	Summary    Summary        `json:"summary"`
	Operations []OperationRow `json:"operations"`
	Phases     []PhaseRow     `json:"phases"` // see Phases
	Waits      Waits          `json:"waits"`
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
	Ranks        int          `json:"ranks"`
	Operation    string       `json:"operation"`
	Datatype     string       `json:"datatype"`
	Size         uint64       `json:"size"` // bytes, as nccl-tests counts them
	// Grouped: launched together with others by one kernel plan. NCCL stamps a plan as a whole, so
	// Time is the plan's and there is no bandwidth.
	Grouped bool `json:"grouped"`
	// Device: a buffer of theirs is known to be in a GPU's memory.
	Device bool `json:"device"`
	// TimingSource is what the times are: "gpu", "network", "enqueue" (not the execution), or "". It is
	// the weakest among the members'.
	TimingSource string   `json:"timing_source"`
	Algorithms   []string `json:"algorithms"`
	Protocols    []string `json:"protocols"`
	MinChannels  uint32   `json:"min_channels"` // 0: not known
	MaxChannels  uint32   `json:"max_channels"`

	Calls           uint64  `json:"calls"` // of all ranks
	MinCallsPerRank uint64  `json:"min_calls_per_rank"`
	MaxCallsPerRank uint64  `json:"max_calls_per_rank"`
	Count           uint64  `json:"operations"` // that every member has ended; of these are the times
	Time            Times   `json:"time"`
	AlgBW           float64 `json:"algbw"` // GB/s, size / average time; 0: not known
	BusBW           float64 `json:"busbw"` // GB/s, algbw × nccl-tests' factor; 0: not known
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

func timesOf(all []float64) Times {
	if len(all) == 0 {
		return Times{}
	}
	slices.Sort(all)
	t := Times{Min: all[0], Max: all[len(all)-1], P50: percentile(all, 50), P99: percentile(all, 99)}
	for _, v := range all {
		t.Total += v
	}
	t.Avg = t.Total / float64(len(all))
	return t
}

// percentile is the nearest-rank percentile of an ascending list.
func percentile(all []float64, p float64) float64 {
	return all[max(0, int(math.Ceil(p/100*float64(len(all))))-1)]
}

// Operations reads all events of an archive and gives its summary, the operations with their times
// and bandwidths, the application's phases, and who waited for whom.
//
// Operations that the archive says were not recorded alike by all members are left out of everything
// that compares members, and counted. The error is that of the archive's definitions only.
func Operations(a *otf2.Archive) (*Report, error) {
	ps := propertiesOf(a.Anchor)
	comms := communicators(a.Defs)
	o := &operations{
		defs: a.Defs, stretches: ps.stretches(), rows: make(map[rowKey]*row),
		pending: make(map[pendingKey]*pendingOperation), expected: make(map[otf2.CommRef]int),
		waits: newWaitCounter(a.Defs, comms),
	}
	for ref, c := range comms {
		for _, l := range c.members {
			if d := a.Defs.Location(l); d != nil && d.Events > 0 {
				o.expected[ref]++
			}
		}
	}
	reader := newOperationReader(a.Defs, comms, o.add)
	phases := newPhaseCounter(a.Defs)
	report := new(Report)
	for ev, err := range a.Events(nil) {
		if err != nil {
			report.Problems = append(report.Problems, err.Error())
			continue
		}
		o.events++
		o.count(ev.Time)
		reader.event(ev)
		if phases.wanted() {
			phases.event(ev)
		}
	}
	for _, p := range o.pending {
		o.unfinished++
		o.waits.leftOut += boolCount(p.collective != nil)
	}
	report.Operations = o.table()
	report.Phases = phases.result()
	report.Waits = o.waits.result()
	report.Summary = o.summary(a, ps, comms)
	report.Summary.Alone = reader.alone
	return report, nil
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
	stretches   []stretch
	rows        map[rowKey]*row
	pending     map[pendingKey]*pendingOperation
	expected    map[otf2.CommRef]int // members with data
	waits       *waitCounter
	events      uint64
	first, last otf2.Timestamp
	unfinished  uint64 // that not every member ended
	leftOut     uint64 // in stretches that the members did not record alike
	free        []*pendingOperation
}

type rowKey struct {
	comm     otf2.CommRef
	function string
	dtype    otf2.StringRef
	size     uint64
	grouped  bool
	source   source
	device   bool
}

type row struct {
	collective    *collective
	times         []float64
	algos, protos map[otf2.StringRef]bool
	min, max      uint32
	calls         map[int]uint64 // by rank
}

type pendingKey struct {
	comm     otf2.CommRef
	function string
	ordinal  uint64
}

// pendingOperation is a collective that some members have ended.
type pendingOperation struct {
	collective *collective
	members    []memberPart
}

// memberPart is one member's share of a collective.
type memberPart struct {
	location   otf2.LocationRef
	rank       int
	begin, end otf2.Timestamp
	source     source
	key        rowKey
	details    details
	leads      bool
	grouped    bool
}

func (o *operations) count(t otf2.Timestamp) {
	if o.events == 1 || t < o.first {
		o.first = t
	}
	o.last = max(o.last, t)
}

func (o *operations) add(op *operation) {
	key := rowKey{op.comm.ref, op.function, op.dtype, op.size, op.grouped, op.source, op.device}
	if op.function == "Send" || op.function == "Recv" {
		o.enter(key, op.comm, op.collective, []memberPart{{rank: op.rank, details: op.details}}, float64(op.duration()))
		return
	}
	if excluded(o.stretches, op.comm.ref, op.function, op.ordinal) {
		o.leftOut++
		return
	}
	pk := pendingKey{op.comm.ref, op.function, op.ordinal}
	p := o.pending[pk]
	if p == nil {
		if n := len(o.free); n > 0 {
			p, o.free = o.free[n-1], o.free[:n-1]
		} else {
			p = new(pendingOperation)
		}
		p.collective, p.members = op.collective, p.members[:0]
		o.pending[pk] = p
	}
	p.members = append(p.members, memberPart{
		location: op.location, rank: op.rank, begin: op.begin, end: op.end, source: op.source,
		key: key, details: op.details, leads: op.leads, grouped: op.grouped,
	})
	if len(p.members) < o.expected[op.comm.ref] {
		return
	}
	delete(o.pending, pk)
	o.finish(op.comm, p)
	o.free = append(o.free, p)
}

// finish takes a collective that all members have ended.
func (o *operations) finish(comm *communicator, p *pendingOperation) {
	key, sum := p.members[0].key, 0.0
	for i := range p.members {
		m := &p.members[i]
		sum += float64(m.end - m.begin)
		key.source = min(key.source, m.source)
		key.grouped = key.grouped || m.grouped
		key.device = key.device || m.details.device
		key.size = max(key.size, m.key.size)
	}
	o.enter(key, comm, p.collective, p.members, sum/float64(len(p.members)))
	o.waits.collective(comm.ref, p.members)
}

func (o *operations) enter(key rowKey, comm *communicator, c *collective, members []memberPart, time float64) {
	r := o.rows[key]
	if r == nil {
		r = &row{
			collective: c, calls: make(map[int]uint64, len(members)), min: math.MaxUint32,
			algos: make(map[otf2.StringRef]bool), protos: make(map[otf2.StringRef]bool),
		}
		o.rows[key] = r
	}
	r.times = append(r.times, time)
	for i := range members {
		m := &members[i]
		r.calls[m.rank]++
		r.algos[m.details.algo] = true
		r.protos[m.details.proto] = true
		r.min, r.max = min(r.min, m.details.channels), max(r.max, m.details.channels)
	}
}

// table makes the rows of the report, ordered by communicator, operation, datatype, size.
func (o *operations) table() []OperationRow {
	comms := communicators(o.defs)
	rows := make([]OperationRow, 0, len(o.rows))
	for key, r := range o.rows {
		comm := comms[key.comm]
		out := OperationRow{
			Communicator: comm.name, Comm: key.comm, Ranks: comm.size(), Operation: key.function,
			Datatype: o.defs.String(key.dtype), Size: key.size, Grouped: key.grouped, Device: key.device, TimingSource: key.source.String(),
			Algorithms: o.names(r.algos), Protocols: o.names(r.protos), MinChannels: r.min, MaxChannels: r.max,
			Count: uint64(len(r.times)), Time: timesOf(r.times), MinCallsPerRank: math.MaxUint64,
		}
		for _, n := range r.calls {
			out.Calls += n
			out.MinCallsPerRank, out.MaxCallsPerRank = min(out.MinCallsPerRank, n), max(out.MaxCallsPerRank, n)
		}
		if len(r.calls) < comm.size() {
			out.MinCallsPerRank = 0
		}
		if !key.grouped && key.source != sourceEnqueue && out.Time.Avg > 0 {
			out.AlgBW = float64(key.size) / out.Time.Avg // bytes per ns are GB/s
			out.BusBW = out.AlgBW
			if r.collective != nil {
				out.BusBW *= r.collective.factor(float64(comm.size()))
			}
		}
		rows = append(rows, out)
	}
	slices.SortFunc(rows, func(a, b OperationRow) int {
		return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Datatype, b.Datatype),
			cmp.Compare(a.Size, b.Size), cmp.Compare(boolCount(a.Grouped), boolCount(b.Grouped)), cmp.Compare(a.TimingSource, b.TimingSource),
			cmp.Compare(boolCount(a.Device), boolCount(b.Device)))
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
