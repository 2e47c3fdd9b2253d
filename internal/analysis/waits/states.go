// SPDX-License-Identifier: Apache-2.0

// Package waits finds who waited for whom in collectives and messages, by Scalasca's definitions, from the operations
// that package analysis brings together, and what network transfers waited for.
package waits

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/efficiency"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overtime"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/transfers"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// States says in detail who waited for whom in collectives and messages, and what network transfers waited for.
//
// A member arrives at an operation when its GPU begins it. Waits are defined as by Scalasca for MPI:
//
//	collective      each member waits from its own begin to that of the last one
//	late broadcast  in a Broadcast or Scatter, each member waits for the root
//	early reduce    in a Reduce or Gather, the root waits for the last of the others
//	late sender     the receiver of a message waits until its sender begins
//	late receiver   the sender waits until the receiver begins
//
// No wait is longer than the operation on the member that waits. The operations of one kernel plan have one time: the
// first of the collectives on a communicator counts, and the message whose other end came last. Only times of the same
// source are compared: GPU times, or else times of network activity (any times, in archives without TIMING_SOURCE). All
// other operations are only counted, in NotCompared. Times of enqueueing do not show the execution; they only show who
// called last, in Enqueue.
//
// The first collective of each communicator is only in StartUp, as in ByRank.
type States struct {
	Collectives uint64               `json:"collectives"` // compared collectives
	Messages    uint64               `json:"messages"`    // compared messages
	Times       map[string]uint64    `json:"times"`       // compared operations, by the source of their times
	NotCompared NotCompared          `json:"not_compared"`
	Hosts       int                  `json:"hosts"`            // hosts whose clocks are compared
	Clocks      *property.HostClocks `json:"clocks,omitempty"` // how exact they are; nil: clocks are as recorded
	StartUp     StartUp              `json:"start_up"`
	Total       Sums                 `json:"total"`

	Kinds         []Group    `json:"kinds"`
	Paradigms     []Paradigm `json:"paradigms,omitempty"` // empty if there is only NCCL
	Ranks         []Row      `json:"ranks"`
	GPUs          []Row      `json:"gpus"`
	HostRows      []Row      `json:"by_host"`
	Communicators []Group    `json:"communicators"`
	Operations    []Group    `json:"operations"`
	// Pairs has a row for each communicator and operation.
	Pairs []Pair `json:"communicator_operations"`
	// OverTime divides Total's waiting into windows of time, from the begin to the end of the run.
	OverTime       []overtime.Window `json:"over_time"`
	Phases         []Group           `json:"phases"` // phases of the application, as listed in Phases
	Worst          []Instance        `json:"worst"`  // the most expensive operations
	Slow           Slow              `json:"slow"`   // links and GPUs
	Network        []NetworkRow      `json:"network"`
	Enqueue        EnqueueArrival    `json:"enqueue"`
	NetworkUnknown uint64            `json:"network_unknown"` // network rows whose rank is unknown

	// Efficiency is how well the ranks' time was used; nil: not calculated.
	Efficiency *efficiency.Result `json:"efficiency"`
	Verdict    *verdict.Verdict   `json:"verdict"` // what made the ranks wait; nil: not calculated
}

// NotCompared counts everything that is in no wait.
type NotCompared struct {
	// NoTimes counts collectives without comparable times of two members, including the root if there is one.
	NoTimes    uint64 `json:"no_times"`
	Unfinished uint64 `json:"unfinished"` // collectives that not every member ended
	Members    uint64 `json:"members"`    // members without comparable times, in collectives that were compared
	Messages   uint64 `json:"messages"`   // messages without comparable times at both ends
	Unmatched  uint64 `json:"unmatched"`  // ends of messages without the other end
	// Inconsistent counts ends of messages, and members of collectives, that members recorded differently.
	Inconsistent uint64 `json:"not_alike"`
}

// Sums adds up waits.
type Sums struct {
	Parts  uint64 `json:"parts"` // compared operations of members; the messages of one plan count once
	Time   uint64 `json:"time_ns"`
	Waits  uint64 `json:"waits"`
	Waited uint64 `json:"waited_ns"`
	// Uncertainty is the sum of the waits' uncertainties, where known.
	Uncertainty uint64 `json:"uncertainty_ns"`
	Unstated    uint64 `json:"unstated"` // waits with unknown uncertainty
	Below       uint64 `json:"below"`    // waits no longer than their uncertainty
	BelowTime   uint64 `json:"below_ns"` // part of Waited in these waits
}

// Row is the waiting of a rank, GPU or host. Caused is the waiting of others for it, for a GPU or host including its
// own ranks.
type Row struct {
	Name string `json:"name"`
	Host string `json:"host"`
	Sums
	Blame

	NoData bool `json:"no_data,omitempty"` // it has no data

	// GoesBack is the waiting of others, in ns, that a rank caused by what it did itself, from package causes; nil:
	// not calculated, or not a rank.
	GoesBack *float64 `json:"goes_back_ns,omitempty"`
}

// Group is the waiting in operations of one kind, communicator or function. Skew is the time from the first to the
// last begin in its collectives, and Transfer the time from there to the last end.
type Group struct {
	Name string `json:"name"`
	Sums
	Collectives uint64  `json:"collectives"`
	SkewAvg     float64 `json:"skew_avg_ns"`
	SkewMax     uint64  `json:"skew_max_ns"`
	TransferAvg float64 `json:"transfer_avg_ns"`
	skew        float64
	transfer    float64
}

// Paradigm is the waiting in operations of one paradigm.
type Paradigm struct {
	Group
	// Through is the part of the waiting, in ns, for ranks that were late because they had waited in operations of
	// another paradigm.
	Through float64 `json:"through_others_ns"`
}

// Pair is the waiting in the operations of one function on one communicator.
type Pair struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	Group                     // named after the operation
}

// Instance is one collective, or one launch of messages on the rank that waited.
type Instance struct {
	Communicator string         `json:"communicator"`
	Operation    string         `json:"operation"`
	Ordinal      uint64         `json:"ordinal"`
	Since        otf2.Timestamp `json:"since"` // the first begin
	At           otf2.Timestamp `json:"at"`    // the last begin
	Rank         string         `json:"rank"`
	Host         string         `json:"host"`
	// Phase is the application's phase in which that rank called the operation; "": none, or unknown.
	Phase       string  `json:"phase"`
	Caused      uint64  `json:"caused_ns"`
	Skew        uint64  `json:"skew_ns"`
	Transfer    uint64  `json:"transfer_ns"`
	Uncertainty *uint64 `json:"uncertainty_ns"` // of Caused; null unless it is known for all waits
}

// EnqueueArrival says who came last in operations for which only the times of enqueueing are known. This is not
// waiting: the GPU may have been busy with something else.
type EnqueueArrival struct {
	Collectives uint64       `json:"collectives"`
	Messages    uint64       `json:"messages"`
	SkewAvg     float64      `json:"skew_avg_ns"` // of both
	SkewMax     uint64       `json:"skew_max_ns"`
	Ranks       []EnqueueRow `json:"ranks"`
	skew        float64
}

// EnqueueRow is one rank's share: how often it enqueued last, and the total time after the first rank.
type EnqueueRow struct {
	Rank    string `json:"rank"`
	Host    string `json:"host"`
	Parts   uint64 `json:"parts"`
	Last    uint64 `json:"last"`
	Behind  uint64 `json:"behind_ns"`
	MaxLate uint64 `json:"max_behind_ns"`

	NoData bool `json:"no_data,omitempty"` // it has no data
}

// waitMessages is the row of message launches in which nobody waited.
const (
	waitMessages = lateness.NumWaitKinds
	numWaitKinds = waitMessages + 1
)

func waitKindName(k lateness.WaitKind) string {
	if k == waitMessages {
		return "messages without waiting"
	}
	return k.String()
}

const maxWorst = 20

// Counter sums up waiting.
type Counter struct {
	ranks []Rank // from collectives only
	rows  []Row
	gpus  []string
	Arrivals
	counted uint64

	comms      map[otf2.CommRef]*Group
	paradigms  map[string]*Group
	operations map[string]*Group
	phases     map[analysis.Phase]*Group
	pairs      map[pairOf]*Group
	last       [5]*Group // the groups used last, for lastOf
	lastOf     pairOf
	kinds      [numWaitKinds]Group
	names      map[otf2.CommRef]string

	begun facts.StartUps
	// first has the first collective of each communicator until a second follows: an only collective is not start-up.
	first   map[otf2.CommRef]*Arrival
	startUp []Arrival
	out     States
	enqueue []EnqueueRow

	Over *overtime.Line // if set, receives the waits

	See    func(*Wait)            // if set, receives each wait
	Paired func(a, b *MessageEnd) // if set, receives the two ends of each message
	// Met, if set, receives the launches of the two ends of each message, and whether their times are comparable. Lost
	// receives the launch of an end whose other end does not come.
	Met  func(a, b *causes.Local, compared bool)
	Lost func(*causes.Local)

	messages messageTable
	plans    map[otf2.LocationRef]*messagePlan // the last plan of each location
	Network  *NetworkPhases
	slow     *slowness
	Slowed   []transfers.Charge // what made the last collective longer; valid until the next one

	Shown func(rank int) bool // if set, the ranks of the world that have rows; sums include all
}

// pairOf is a function on a communicator.
type pairOf struct {
	comm     otf2.CommRef
	function string
}

// Arrivals compares the arrivals of members at collectives.
type Arrivals struct {
	Of      map[otf2.LocationRef]int // rank of the world
	unknown bool                     // there is no TIMING_SOURCE, so all times count as one kind
	came    []lateness.Arrival
	work    Arrival
}

// Arrival describes how the members of one collective arrived.
type Arrival struct {
	comm      *membership.Communicator
	function  string
	ordinal   uint64
	kind      lateness.WaitKind
	source    facts.Source
	Parts     []part
	Culprit   int // rank of the world that the others waited for
	at        otf2.Timestamp
	since     otf2.Timestamp // the first begin of all members, including those without comparable times
	lastBegin otf2.Timestamp
	caused    uint64
	skew      uint64
	transfer  uint64
	outside   bool // it is not selected
}

// part is one member's share, if its time is known.
type part struct {
	place       Place
	Rank        int               // index into waitCounter.ranks
	member      int               // rank in the communicator
	during      analysis.Occasion // nil: no phase, or unknown
	Begin       otf2.Timestamp
	Time, Waits uint64
	uncertainty uint64 // of the wait
	stated      bool
}

// NewCounter returns a counter of the waits in an archive; clocks says how exact its hosts' clocks are.
func NewCounter(defs *otf2.Definitions, clocks *property.HostClocks,
	comms map[otf2.CommRef]*membership.Communicator) *Counter {
	ranks, of := placement.Ranks(defs, comms)
	w := &Counter{
		Arrivals: Arrivals{Of: of, unknown: !attribute.Find(defs).Has(regions.AttrTimingSource)},
		first:    make(map[otf2.CommRef]*Arrival), begun: make(facts.StartUps),
		paradigms: make(map[string]*Group), comms: make(map[otf2.CommRef]*Group), operations: make(map[string]*Group),
		phases: make(map[analysis.Phase]*Group),
		pairs:  make(map[pairOf]*Group),
		names:  make(map[otf2.CommRef]string), plans: make(map[otf2.LocationRef]*messagePlan),
		Network: NewNetworkPhases(defs),
	}
	w.slow = newSlowness(defs, ranks, of)
	hosts := make(map[string]bool)
	for _, r := range ranks {
		w.ranks = append(w.ranks, Rank{Rank: r.Name, Host: r.Host, NoData: r.Absent})
		w.rows = append(w.rows, Row{Name: r.Name, Host: r.Host, NoData: r.Absent})
		w.enqueue = append(w.enqueue, EnqueueRow{Rank: r.Name, Host: r.Host, NoData: r.Absent})
		w.gpus = append(w.gpus, r.Gpu)
		if !r.Absent {
			hosts[r.Host] = true
		}
	}
	for ref, c := range comms {
		w.names[ref] = c.Name
	}
	w.out.Hosts, w.out.Clocks = len(hosts), clocks
	w.out.Times = make(map[string]uint64)
	for k := range w.kinds {
		w.kinds[k].Name = waitKindName(lateness.WaitKind(k))
	}
	return w
}

// Collective adds a collective that all its members have ended.
func (w *Counter) Collective(members []analysis.Operation) {
	w.Slowed = nil
	for i := range members {
		if !members[i].Leads {
			return // its plan has been counted with its first collective
		}
	}
	startUp := w.begun.AddCollective(members[0].Communicator.Ref, members[0].Ordinal)
	a, outside := w.Arrive(members), members[0].Local.Outside
	if a == nil && outside {
		return
	}
	if a == nil {
		w.out.NotCompared.NoTimes++
		if _, ok := lateness.Comparable(w.came, w.unknown); !ok {
			w.enqueued(members)
		}
		return
	}
	a.outside = outside
	if !outside {
		w.out.NotCompared.Members += uint64(len(members) - len(a.Parts))
	}
	if !outside && !a.comm.Calls {
		w.Slowed = w.slow.collective(members, a.lastBegin, a.transfer)
	}
	if startUp {
		kept := *a
		w.first[a.comm.Ref] = &kept
		w.work.Parts = nil
		return
	}
	if held := w.first[a.comm.Ref]; held != nil {
		if !held.outside {
			w.startUp = append(w.startUp, *held)
			w.reportWaits(held, true)
		}
		delete(w.first, a.comm.Ref)
	}
	if !outside && !a.comm.Calls {
		w.slow.held(a, w.Slowed)
	}
	w.count(a)
}

// Arrive compares the members' arrivals at a collective. It returns nil if their times are not comparable. The result
// is valid until the next call.
func (w *Arrivals) Arrive(members []analysis.Operation) *Arrival {
	w.came = w.came[:0]
	for i := range members {
		m := &members[i]
		w.came = append(w.came, lateness.Arrival{Rank: m.Rank, Begin: m.Begin, End: m.End, Source: m.Source,
			Root: int64(m.Root) == int64(m.Rank), Certain: m.Certain()})
	}
	op := &members[0]
	l, ok := lateness.Compare(lateness.WaitKindOf(op.Collective), w.came, w.unknown)
	if !ok {
		return nil
	}
	by := &members[l.Awaited]
	a := &w.work
	*a = Arrival{
		comm: op.Communicator, function: named(op.Communicator, op.Function), ordinal: op.Ordinal, source: l.Source,
		kind: l.Kind, Parts: a.Parts[:0],
		Culprit: w.Of[by.Location], at: by.Begin, caused: l.Caused, since: members[l.Last].Begin,
		lastBegin: members[l.Last].Begin, skew: uint64(members[l.Last].Begin - l.First),
		transfer: uint64(l.End - min(l.End, members[l.Last].Begin)),
	}
	for i := range members {
		m := &members[i]
		a.since = min(a.since, m.Begin)
		if m.Source != l.Source {
			continue
		}
		a.Parts = append(a.Parts, part{
			Rank: w.Of[m.Location], member: m.Rank, place: placeOf(m), during: m.During, Begin: m.Begin,
			Time: uint64(m.End - m.Begin), Waits: w.came[i].Wait,
			uncertainty: m.Uncertainty + by.Uncertainty, stated: m.Stated && by.Stated,
		})
	}
	return a
}

// Unfinished counts a collective that not every member ended.
func (w *Counter) Unfinished(members []analysis.Operation) {
	if members[0].Local.Outside {
		return
	}
	for i := range members {
		if !members[i].Leads {
			return
		}
	}
	w.out.NotCompared.Unfinished++
}

// Inconsistent counts a part of an operation that its members recorded differently.
func (w *Counter) Inconsistent(op *analysis.Operation) {
	if !op.Local.Outside {
		w.out.NotCompared.Inconsistent++
	}
}

// enqueued counts who enqueued a collective last.
func (w *Counter) enqueued(members []analysis.Operation) {
	n, last := 0, -1
	var first otf2.Timestamp
	for i := range members {
		m := &members[i]
		if m.Source != facts.SourceEnqueue {
			continue
		}
		if n == 0 || m.Begin < first {
			first = m.Begin
		}
		if last < 0 || m.Begin > members[last].Begin || m.Begin == members[last].Begin && m.Rank < members[last].Rank {
			last = i
		}
		n++
	}
	if n < 2 {
		return
	}
	skew := uint64(members[last].Begin - first)
	w.out.Enqueue.Collectives++
	w.out.Enqueue.addSkew(skew)
	for i := range members {
		if m := &members[i]; m.Source == facts.SourceEnqueue {
			w.enqueue[w.Of[m.Location]].add(uint64(m.Begin-first), i == last && skew > 0)
		}
	}
}

// enqueuedMessage counts who enqueued its end of a message last: b, if not both did so at a time.
func (w *Counter) enqueuedMessage(a, b *MessageEnd) {
	if a.source != facts.SourceEnqueue || b.source != facts.SourceEnqueue {
		return
	}
	if b.Begin < a.Begin {
		a, b = b, a
	}
	skew := uint64(b.Begin - a.Begin)
	w.out.Enqueue.Messages++
	w.out.Enqueue.addSkew(skew)
	w.enqueue[a.Plan.Rank].add(0, false)
	w.enqueue[b.Plan.Rank].add(skew, skew > 0)
}

func (e *EnqueueArrival) addSkew(ns uint64) {
	e.skew += float64(ns)
	e.SkewMax = max(e.SkewMax, ns)
}

// add adds an operation that the rank enqueued so many ns after the first one.
func (r *EnqueueRow) add(behind uint64, last bool) {
	r.Parts++
	r.Behind += behind
	r.MaxLate = max(r.MaxLate, behind)
	if last {
		r.Last++
	}
}

// LastCaller returns the rank that made most of the difference between the calls of operations without times, and was
// last so often that this is no accident; ok is false if there is none.
func (e *EnqueueArrival) LastCaller() (rank int, ok bool) {
	all := uint64(0)
	for i := range e.Ranks {
		r := &e.Ranks[i]
		if all += r.Behind; r.Behind > e.Ranks[rank].Behind {
			rank = i
		}
	}
	if len(e.Ranks) == 0 {
		return 0, false
	}
	r := &e.Ranks[rank]
	return rank, r.Last >= causes.LeastTimes && 2*r.Last > r.Parts && 4*r.Behind > 3*all
}

// add adds one part with its wait.
func (s *Sums) add(p *part) {
	s.Parts++
	s.Time += p.Time
	if p.Waits == 0 {
		return
	}
	s.Waits++
	s.Waited += p.Waits
	if !p.stated {
		s.Unstated++
		return
	}
	s.Uncertainty += p.uncertainty
	if p.Waits <= p.uncertainty {
		s.Below++
		s.BelowTime += p.Waits
	}
}

func (s *Sums) sum(o *Sums) {
	s.Parts += o.Parts
	s.Time += o.Time
	s.Waits += o.Waits
	s.Waited += o.Waited
	s.Uncertainty += o.Uncertainty
	s.Unstated += o.Unstated
	s.Below += o.Below
	s.BelowTime += o.BelowTime
}

// groups returns the sums for an operation. Consecutive operations often have the same function and communicator.
func (w *Counter) groups(comm *membership.Communicator, function string, kind lateness.WaitKind) *[5]*Group {
	if of := (pairOf{comm.Ref, function}); w.last[0] == nil || w.lastOf != of {
		w.lastOf = of
		w.last = [...]*Group{
			keyed.Entry(w.comms, comm.Ref), keyed.Entry(w.paradigms, comm.Paradigm()),
			keyed.Entry(w.operations, function), keyed.Entry(w.pairs, of), nil,
		}
	}
	w.last[4] = &w.kinds[kind]
	return &w.last
}

func (w *Counter) count(a *Arrival) {
	if a.outside {
		return
	}
	w.reportWaits(a, false)
	w.counted++
	w.out.Collectives++
	w.out.Times[timesName(a.source)]++
	groups := w.groups(a.comm, a.function, a.kind)
	for _, g := range groups {
		g.Collectives++
		g.skew += float64(a.skew)
		g.SkewMax = max(g.SkewMax, a.skew)
		g.transfer += float64(a.transfer)
	}
	var all Sums
	for i := range a.Parts {
		p := &a.Parts[i]
		r := &w.ranks[p.Rank]
		r.Collectives++
		r.Time += p.Time
		r.Waited += p.Waits
		w.rows[p.Rank].add(p)
		all.add(p)
		w.inPhases(p)
		w.Over.Add(p.Begin, p.Waits)
	}
	for _, g := range groups {
		g.sum(&all)
	}
	if a.caused == 0 {
		return
	}
	w.ranks[a.Culprit].blame(a.caused, a.at)
	w.rows[a.Culprit].blame(a.caused, a.at)
	w.remember(a)
}

// inPhases adds a part to the phase in which it was called and those around it.
func (w *Counter) inPhases(p *part) {
	if p.during == nil {
		return
	}
	for n := p.during.Phase(); n != nil; n = n.Around() {
		keyed.Entry(w.phases, n).add(p)
	}
}

func timesName(s facts.Source) string {
	if s == facts.SourceUnknown {
		return "recorded"
	}
	return s.String()
}

// remember keeps a collective if it is among the most expensive ones.
func (w *Counter) remember(a *Arrival) {
	if !w.isBad(a.caused) {
		return
	}
	one := Instance{
		Communicator: a.comm.Name, Operation: a.function, Ordinal: a.ordinal,
		Since: a.lastBegin - otf2.Timestamp(a.skew), At: a.lastBegin,
		Rank: w.ranks[a.Culprit].Rank, Host: w.ranks[a.Culprit].Host, Caused: a.caused, Skew: a.skew,
		Transfer: a.transfer,
	}
	for i := range a.Parts {
		if p := &a.Parts[i]; p.Rank == a.Culprit {
			one.Phase = pathOf(p.during)
		}
	}
	sum, stated := uint64(0), true
	for i := range a.Parts {
		if p := &a.Parts[i]; p.Waits > 0 {
			sum += p.uncertainty
			stated = stated && p.stated
		}
	}
	if stated {
		one.Uncertainty = &sum
	}
	w.keep(&one)
}

// rememberLaunch does the same for a launch of messages.
func (w *Counter) rememberLaunch(p *messagePlan) {
	if !w.isBad(p.Waits) {
		return
	}
	one := Instance{
		Communicator: p.Comm.Name, Operation: p.function, Ordinal: p.ordinal, Since: p.Begin, At: p.at,
		Rank: w.ranks[p.culprit].Rank, Host: w.ranks[p.culprit].Host, Caused: p.Waits, Skew: uint64(p.at - p.Begin),
		Transfer: p.Time - p.Waits, Phase: pathOf(p.awaited),
	}
	if p.stated {
		uncertainty := p.uncertainty
		one.Uncertainty = &uncertainty
	}
	w.keep(&one)
}

// pathOf returns the path of an occasion, which may be nil.
func pathOf(o analysis.Occasion) string {
	if o == nil {
		return ""
	}
	return o.Path()
}

// isBad reports whether an operation with that cost would be kept.
func (w *Counter) isBad(caused uint64) bool {
	worst := w.out.Worst
	return len(worst) < maxWorst || caused >= worst[maxWorst-1].Caused
}

func (w *Counter) keep(one *Instance) {
	worst := w.out.Worst
	at, _ := slices.BinarySearchFunc(worst, *one, func(x, y Instance) int {
		return cmp.Or(
			cmp.Compare(y.Caused, x.Caused), cmp.Compare(x.At, y.At), cmp.Compare(x.Communicator, y.Communicator),
			cmp.Compare(x.Operation, y.Operation),
			cmp.Compare(x.Ordinal, y.Ordinal), cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Since, y.Since),
		)
	})
	worst = slices.Insert(worst, at, *one)
	w.out.Worst = worst[:min(len(worst), maxWorst)]
}

// Result returns the waits in collectives by rank, and all waits in detail.
func (w *Counter) Result() (ByRank, *States) {
	for _, comm := range slices.Sorted(maps.Keys(w.first)) {
		w.count(w.first[comm])
	}
	clear(w.first)
	w.endMessages()
	d := &w.out
	short := ByRank{
		Collectives: w.counted, LeftOut: d.NotCompared.NoTimes + d.NotCompared.Unfinished, Hosts: d.Hosts,
		Clocks: d.Clocks,
		Ranks:  w.ranks, StartUp: startUpOf(w.ranks, w.startUp),
	}
	for i := range w.ranks {
		short.Total += w.ranks[i].Waited
	}
	d.StartUp = short.StartUp
	d.Ranks = w.rows
	for i := range d.Ranks {
		d.Total.sum(&d.Ranks[i].Sums)
	}
	d.GPUs = w.gather(func(i int) (name, host string) { return w.gpus[i], w.rows[i].Host })
	d.HostRows = w.gather(func(i int) (name, host string) {
		if w.rows[i].NoData {
			return "", ""
		}
		return w.rows[i].Host, w.rows[i].Host
	})
	d.Communicators = finished(w.comms, func(ref otf2.CommRef) string { return w.names[ref] }, cmp.Compare)
	itself := func(name string) string { return name }
	d.Operations = finished(w.operations, itself, cmp.Compare)
	if all := finished(w.paradigms, itself, cmp.Compare); len(all) > 1 {
		for _, g := range all {
			d.Paradigms = append(d.Paradigms, Paradigm{Group: g})
		}
	}
	d.Pairs = w.pairRows()
	d.Phases = finished(w.phases, analysis.Phase.Path, func(a, b analysis.Phase) int {
		return cmp.Compare(a.Path(), b.Path())
	})
	d.Phases = joined(d.Phases)
	d.Kinds = []Group{}
	for k := range w.kinds {
		if g := &w.kinds[k]; g.Parts > 0 {
			g.finish()
			d.Kinds = append(d.Kinds, *g)
		}
	}
	if d.OverTime == nil {
		d.OverTime = []overtime.Window{}
	}
	if d.Worst == nil {
		d.Worst = []Instance{}
	}
	d.Network, d.NetworkUnknown = w.Network.result()
	d.Slow = w.slow.result(w.rows, w.gpus)
	e := &d.Enqueue
	e.Ranks = []EnqueueRow{}
	if n := e.Collectives + e.Messages; n > 0 {
		e.SkewAvg = e.skew / float64(n)
		e.Ranks = w.enqueue
	}
	if w.Shown != nil {
		short.Ranks, d.Ranks, e.Ranks = shown(short.Ranks, w.Shown), shown(d.Ranks, w.Shown), shown(e.Ranks, w.Shown)
	}
	return short, d
}

// shown returns the rows of some ranks.
func shown[T any](rows []T, is func(rank int) bool) []T {
	some := []T{}
	for rank := range rows {
		if is(rank) {
			some = append(some, rows[rank])
		}
	}
	return some
}

// pairRows lists the functions of each communicator.
func (w *Counter) pairRows() []Pair {
	list := []Pair{}
	for _, of := range slices.SortedFunc(maps.Keys(w.pairs),
		func(a, b pairOf) int { return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.function, b.function)) }) {
		g := w.pairs[of]
		g.Name = of.function
		g.finish()
		list = append(list, Pair{w.names[of.comm], of.comm, *g})
	}
	return list
}

// gather sums up ranks by name and host; it leaves out ranks without a name.
func (w *Counter) gather(of func(i int) (name, host string)) []Row {
	index := make(map[[2]string]int)
	all := []Row{}
	for i := range w.rows {
		name, host := of(i)
		if name == "" || w.Shown != nil && !w.Shown(i) {
			continue
		}
		at, known := index[[2]string{name, host}]
		if !known {
			at = len(all)
			index[[2]string{name, host}] = at
			all = append(all, Row{Name: name, Host: host})
		}
		r, o := &all[at], &w.rows[i]
		r.sum(&o.Sums)
		r.Blame.merge(&o.Blame)
	}
	return all
}

func (g *Group) finish() {
	if g.Collectives > 0 {
		g.SkewAvg, g.TransferAvg = g.skew/float64(g.Collectives), g.transfer/float64(g.Collectives)
	}
}

// finished lists groups in the order of their keys.
func finished[K comparable](all map[K]*Group, name func(K) string, order func(a, b K) int) []Group {
	list := []Group{}
	for _, k := range slices.SortedFunc(maps.Keys(all), order) {
		g := all[k]
		g.Name = name(k)
		g.finish()
		list = append(list, *g)
	}
	return list
}

// joined merges neighbors with the same name: each lane has its own nodes of a phase.
func joined(all []Group) []Group {
	out := all[:0]
	for i := range all {
		if n := len(out); n > 0 && out[n-1].Name == all[i].Name {
			out[n-1].sum(&all[i].Sums)
		} else {
			out = append(out, all[i])
		}
	}
	return out
}

// Explain adds the causes of the waits.
func (w *States) Explain(r *causes.Result) {
	for i := range w.Paradigms {
		p := &w.Paradigms[i]
		if p.Through = r.Through.NCCL; p.Name != membership.ParadigmNCCL {
			p.Through = r.Through.MPI
		}
	}
}
