// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// WaitStates tells in detail who waited for whom in collectives and messages, and on what transfers over the
// network waited.
//
// A member arrives at an operation when its GPU begins it. Waits are those that Scalasca defines for MPI:
//
//	collective      each member waits from its own begin to that of the last one
//	late broadcast  of a Broadcast or Scatter: each member waits for its root
//	early reduce    of a Reduce or Gather: the root waits for the last of the others
//	late sender     the receiver of a message waits until its sender begins
//	late receiver   the sender waits until the receiver begins
//
// No wait is longer than the operation on the one that waits. Operations of one kernel plan have one time: of
// the collectives on a communicator the first counts, of the messages the one whose other end came last. Only
// times of one kind are compared, those of GPUs or else those of network activity (any, in archives that do not
// know TIMING_SOURCE). All else is not compared, and counted. Times of enqueueing say nothing of the execution:
// from them comes only who was called last, in Enqueue.
//
// The first collective of each communicator is in StartUp alone, as in Waits.
type WaitStates struct {
	Collectives uint64            `json:"collectives"` // compared
	Messages    uint64            `json:"messages"`    // compared
	Times       map[string]uint64 `json:"times"`       // operations compared, by the kind of their times
	NotCompared NotCompared       `json:"not_compared"`
	Hosts       int               `json:"hosts"` // whose clocks are compared
	StartUp     StartUp           `json:"start_up"`
	Total       WaitSums          `json:"total"`

	Kinds          []WaitGroup    `json:"kinds"`
	Ranks          []WaitRow      `json:"ranks"`
	GPUs           []WaitRow      `json:"gpus"`
	HostRows       []WaitRow      `json:"by_host"`
	Communicators  []WaitGroup    `json:"communicators"`
	Operations     []WaitGroup    `json:"operations"`
	Phases         []WaitGroup    `json:"phases"` // of the application, as Phases lists them
	Worst          []WaitInstance `json:"worst"`  // the collectives that cost the most
	Network        []NetworkWait  `json:"network"`
	Enqueue        EnqueueArrival `json:"enqueue"`
	NetworkUnknown uint64         `json:"network_unknown"` // network rows of which nobody knows whose they are
}

// NotCompared counts what is in no wait.
type NotCompared struct {
	NoTimes    uint64 `json:"no_times"`   // collectives without comparable times of two members, the root among them if it matters
	Unfinished uint64 `json:"unfinished"` // collectives that not every member ended
	Members    uint64 `json:"members"`    // members without comparable times of collectives that were compared
	Messages   uint64 `json:"messages"`   // without comparable times at both ends
	Unmatched  uint64 `json:"unmatched"`  // ends of messages whose other end is not there
	NotAlike   uint64 `json:"not_alike"`  // ends of messages, and members of collectives, that were not recorded alike
}

// WaitSums adds up waits.
type WaitSums struct {
	Parts  uint64 `json:"parts"` // members' operations that were compared; messages of one plan are one
	Time   uint64 `json:"time_ns"`
	Waits  uint64 `json:"waits"`
	Waited uint64 `json:"waited_ns"`
	// Uncertainty is the sum of what the waits may be off by, of those of which it is known.
	Uncertainty uint64 `json:"uncertainty_ns"`
	Unstated    uint64 `json:"unstated"` // waits of which it is not
	Below       uint64 `json:"below"`    // waits that are not longer than their uncertainty
	BelowTime   uint64 `json:"below_ns"` // waited in them; part of Waited
}

// WaitRow is the waiting of a rank, GPU or host. Caused is what others, or other ranks of it, waited for it.
type WaitRow struct {
	Name string `json:"name"`
	Host string `json:"host"`
	WaitSums
	Blame

	NoData bool `json:"no_data,omitempty"` // nothing was recorded of it
}

// WaitGroup is the waiting in operations of one kind, communicator or function. Skew and transfer are of its
// collectives: from the first to the last member's begin, and from there to the last end.
type WaitGroup struct {
	Name string `json:"name"`
	WaitSums
	Collectives uint64  `json:"collectives"`
	SkewAvg     float64 `json:"skew_avg_ns"`
	SkewMax     uint64  `json:"skew_max_ns"`
	TransferAvg float64 `json:"transfer_avg_ns"`
	skew        float64
	transfer    float64
}

// WaitInstance is one collective.
type WaitInstance struct {
	Communicator string         `json:"communicator"`
	Operation    string         `json:"operation"`
	Ordinal      uint64         `json:"ordinal"`
	At           otf2.Timestamp `json:"at"` // the last begin
	Rank         string         `json:"rank"`
	Host         string         `json:"host"`
	Caused       uint64         `json:"caused_ns"`
	Skew         uint64         `json:"skew_ns"`
	Transfer     uint64         `json:"transfer_ns"`
	Uncertainty  *uint64        `json:"uncertainty_ns"` // of Caused; null if it is not stated for all waits
}

// EnqueueArrival tells who came last where it is only known when operations were enqueued. That is no waiting:
// the GPU may have been busy with something else.
type EnqueueArrival struct {
	Collectives uint64       `json:"collectives"`
	SkewAvg     float64      `json:"skew_avg_ns"`
	SkewMax     uint64       `json:"skew_max_ns"`
	Ranks       []EnqueueRow `json:"ranks"`
	skew        float64
}

// EnqueueRow is one rank's share: how often it enqueued last, and how long after the first in all.
type EnqueueRow struct {
	Rank    string `json:"rank"`
	Host    string `json:"host"`
	Parts   uint64 `json:"parts"`
	Last    uint64 `json:"last"`
	Behind  uint64 `json:"behind_ns"`
	MaxLate uint64 `json:"max_behind_ns"`

	NoData bool `json:"no_data,omitempty"` // nothing was recorded of it
}

// waitMessages is the row of launches of messages in which nobody waited, beside those of the causes of waiting.
const (
	waitMessages = facts.NumWaitKinds
	numWaitKinds = waitMessages + 1
)

func waitKindName(k facts.WaitKind) string {
	if k == waitMessages {
		return "messages without waiting"
	}
	return k.String()
}

const maxWorst = 20

// waitCounter sums up waiting.
type waitCounter struct {
	ranks []RankWait // of collectives alone
	rows  []WaitRow
	gpus  []string
	arrivals
	counted uint64

	comms      map[otf2.CommRef]*WaitGroup
	operations map[string]*WaitGroup
	phases     map[*phaseNode]*WaitGroup
	kinds      [numWaitKinds]WaitGroup
	names      map[otf2.CommRef]string

	first   map[otf2.CommRef]*arrival // of each communicator, until a second follows
	startUp []arrival
	out     WaitStates
	enqueue []EnqueueRow

	see    func(*Wait)            // if set, told of each wait
	paired func(a, b *messageEnd) // if set, told of the two ends of each message

	messages messageTable
	plans    map[otf2.LocationRef]*messagePlan // the last of each location
	network  *networkPhases
}

// arrivals tells how members came to collectives.
type arrivals struct {
	of      map[otf2.LocationRef]int // rank of the world
	unknown bool                     // times of all kinds are taken for one, there is no TIMING_SOURCE
	came    []facts.Arrival
	work    arrival
}

// arrival is how the members of one collective came to it.
type arrival struct {
	comm      *facts.Communicator
	function  string
	ordinal   uint64
	kind      facts.WaitKind
	source    facts.Source
	parts     []part
	culprit   int // rank of the world for which the others waited
	at        otf2.Timestamp
	lastBegin otf2.Timestamp
	caused    uint64
	skew      uint64
	transfer  uint64
}

// part is one timed member's share.
type part struct {
	place       WaitPlace
	rank        int // index into waitCounter.ranks
	member      int // rank in the communicator
	phase       *phaseNode
	begin       otf2.Timestamp
	time, waits uint64
	uncertainty uint64 // of the wait
	stated      bool
}

func newWaitCounter(defs *otf2.Definitions, comms map[otf2.CommRef]*facts.Communicator) *waitCounter {
	ranks, of := worldRanks(defs, comms)
	w := &waitCounter{
		arrivals: arrivals{of: of, unknown: !facts.FindAttributes(defs).Has(regions.AttrTimingSource)}, first: make(map[otf2.CommRef]*arrival),
		comms: make(map[otf2.CommRef]*WaitGroup), operations: make(map[string]*WaitGroup), phases: make(map[*phaseNode]*WaitGroup),
		names: make(map[otf2.CommRef]string), plans: make(map[otf2.LocationRef]*messagePlan), network: newNetworkPhases(defs),
	}
	hosts := make(map[string]bool)
	for _, r := range ranks {
		w.ranks = append(w.ranks, RankWait{Rank: r.name, Host: r.host, NoData: r.absent})
		w.rows = append(w.rows, WaitRow{Name: r.name, Host: r.host, NoData: r.absent})
		w.enqueue = append(w.enqueue, EnqueueRow{Rank: r.name, Host: r.host, NoData: r.absent})
		w.gpus = append(w.gpus, r.gpu)
		if !r.absent {
			hosts[r.host] = true
		}
	}
	for ref, c := range comms {
		w.names[ref] = c.Name
	}
	w.out.Hosts = len(hosts)
	w.out.Times = make(map[string]uint64)
	for k := range w.kinds {
		w.kinds[k].Name = waitKindName(facts.WaitKind(k))
	}
	return w
}

// collective takes a collective that all its members have ended.
func (w *waitCounter) collective(members []operation) {
	for i := range members {
		if !members[i].Leads {
			return // its plan has been counted with its first collective
		}
	}
	a := w.arrive(members)
	if a == nil {
		w.out.NotCompared.NoTimes++
		if _, ok := facts.Comparable(w.came, w.unknown); !ok {
			w.enqueued(members)
		}
		return
	}
	w.out.NotCompared.Members += uint64(len(members) - len(a.parts))
	held, seen := w.first[a.comm.Ref]
	switch {
	case !seen:
		kept := *a
		w.first[a.comm.Ref] = &kept
		w.work.parts = nil
		return
	case held != nil:
		w.startUp = append(w.startUp, *held)
		w.tell(held, true)
		w.first[a.comm.Ref] = nil
	}
	w.count(a)
}

// arrive tells how the members came to a collective; nil if their times do not compare. The result is valid until the
// next call.
func (w *arrivals) arrive(members []operation) *arrival {
	w.came = w.came[:0]
	for i := range members {
		m := &members[i]
		w.came = append(w.came, facts.Arrival{Rank: m.rank, Begin: m.Begin, End: m.End, Source: m.Source, Root: int64(m.Root) == int64(m.rank)})
	}
	op := &members[0]
	l, ok := facts.Arrive(facts.WaitKindOf(op.Collective), w.came, w.unknown)
	if !ok {
		return nil
	}
	by := &members[l.Awaited]
	a := &w.work
	*a = arrival{
		comm: op.comm, function: op.Function, ordinal: op.Ordinal, source: l.Source, kind: l.Kind, parts: a.parts[:0],
		culprit: w.of[by.Location], at: by.Begin, caused: l.Caused,
		lastBegin: members[l.Last].Begin, skew: uint64(members[l.Last].Begin - l.First), transfer: uint64(l.End - min(l.End, members[l.Last].Begin)),
	}
	for i := range members {
		m := &members[i]
		if m.Source != l.Source {
			continue
		}
		a.parts = append(a.parts, part{
			rank: w.of[m.Location], member: m.rank, place: placeOf(m), phase: m.phase, begin: m.Begin, time: uint64(m.End - m.Begin), waits: w.came[i].Wait,
			uncertainty: m.Uncertainty + by.Uncertainty, stated: m.Stated && by.Stated,
		})
	}
	return a
}

func (w *waitCounter) unfinished(members []operation) {
	for i := range members {
		if !members[i].Leads {
			return
		}
	}
	w.out.NotCompared.Unfinished++
}

func (w *waitCounter) notAlike(*operation) { w.out.NotCompared.NotAlike++ }

// enqueued looks at when the members enqueued a collective.
func (w *waitCounter) enqueued(members []operation) {
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
		if last < 0 || m.Begin > members[last].Begin || m.Begin == members[last].Begin && m.rank < members[last].rank {
			last = i
		}
		n++
	}
	if n < 2 {
		return
	}
	e := &w.out.Enqueue
	skew := uint64(members[last].Begin - first)
	e.Collectives++
	e.skew += float64(skew)
	e.SkewMax = max(e.SkewMax, skew)
	for i := range members {
		if m := &members[i]; m.Source == facts.SourceEnqueue {
			r := &w.enqueue[w.of[m.Location]]
			r.Parts++
			r.Behind += uint64(m.Begin - first)
			r.MaxLate = max(r.MaxLate, uint64(m.Begin-first))
			if i == last && skew > 0 {
				r.Last++
			}
		}
	}
}

// add takes one part with its wait.
func (s *WaitSums) add(p *part) {
	s.Parts++
	s.Time += p.time
	if p.waits == 0 {
		return
	}
	s.Waits++
	s.Waited += p.waits
	if !p.stated {
		s.Unstated++
		return
	}
	s.Uncertainty += p.uncertainty
	if p.waits <= p.uncertainty {
		s.Below++
		s.BelowTime += p.waits
	}
}

func (s *WaitSums) sum(o *WaitSums) {
	s.Parts += o.Parts
	s.Time += o.Time
	s.Waits += o.Waits
	s.Waited += o.Waited
	s.Uncertainty += o.Uncertainty
	s.Unstated += o.Unstated
	s.Below += o.Below
	s.BelowTime += o.BelowTime
}

func (w *waitCounter) count(a *arrival) {
	w.tell(a, false)
	w.counted++
	w.out.Collectives++
	w.out.Times[timesName(a.source)]++
	groups := [...]*WaitGroup{at(w.comms, a.comm.Ref), at(w.operations, a.function), &w.kinds[a.kind]}
	for _, g := range groups {
		g.Collectives++
		g.skew += float64(a.skew)
		g.SkewMax = max(g.SkewMax, a.skew)
		g.transfer += float64(a.transfer)
	}
	for i := range a.parts {
		p := &a.parts[i]
		r := &w.ranks[p.rank]
		r.Collectives++
		r.Time += p.time
		r.Waited += p.waits
		w.rows[p.rank].add(p)
		for _, g := range groups {
			g.add(p)
		}
		w.inPhases(p)
	}
	if a.caused == 0 {
		return
	}
	w.ranks[a.culprit].blame(a.caused, a.at)
	w.rows[a.culprit].blame(a.caused, a.at)
	w.remember(a)
}

// inPhases counts a part into the phase in which it was called and those around it.
func (w *waitCounter) inPhases(p *part) {
	for n := p.phase; n != nil && n.parent != nil; n = n.parent {
		at(w.phases, n).add(p)
	}
}

func timesName(s facts.Source) string {
	if s == facts.SourceUnknown {
		return "recorded"
	}
	return s.String()
}

// remember keeps the collectives that cost the most.
func (w *waitCounter) remember(a *arrival) {
	worst := w.out.Worst
	if len(worst) == maxWorst && a.caused <= worst[maxWorst-1].Caused {
		return
	}
	one := WaitInstance{
		Communicator: a.comm.Name, Operation: a.function, Ordinal: a.ordinal, At: a.lastBegin,
		Rank: w.ranks[a.culprit].Rank, Host: w.ranks[a.culprit].Host, Caused: a.caused, Skew: a.skew, Transfer: a.transfer,
	}
	sum, stated := uint64(0), true
	for i := range a.parts {
		if p := &a.parts[i]; p.waits > 0 {
			sum += p.uncertainty
			stated = stated && p.stated
		}
	}
	if stated {
		one.Uncertainty = &sum
	}
	at, _ := slices.BinarySearchFunc(worst, one, func(x, y WaitInstance) int {
		return cmp.Or(cmp.Compare(y.Caused, x.Caused), cmp.Compare(x.At, y.At), cmp.Compare(x.Communicator, y.Communicator), cmp.Compare(x.Ordinal, y.Ordinal))
	})
	worst = slices.Insert(worst, at, one)
	w.out.Worst = worst[:min(len(worst), maxWorst)]
}

// result gives the waits by rank in collectives, and all in detail.
func (w *waitCounter) result() (Waits, *WaitStates) {
	for _, comm := range slices.Sorted(maps.Keys(w.first)) {
		if only := w.first[comm]; only != nil { // the one collective of a communicator is not its start-up
			w.count(only)
		}
	}
	clear(w.first)
	w.endMessages()
	d := &w.out
	short := Waits{
		Collectives: w.counted, LeftOut: d.NotCompared.NoTimes + d.NotCompared.Unfinished, Hosts: d.Hosts,
		Ranks: w.ranks, StartUp: startUpOf(w.ranks, w.startUp),
	}
	for i := range w.ranks {
		short.Total += w.ranks[i].Waited
	}
	d.StartUp = short.StartUp
	d.Ranks = w.rows
	for i := range d.Ranks {
		d.Total.sum(&d.Ranks[i].WaitSums)
	}
	d.GPUs = w.gather(func(i int) (name, host string) { return w.gpus[i], w.rows[i].Host })
	d.HostRows = w.gather(func(i int) (name, host string) {
		if w.rows[i].NoData {
			return "", ""
		}
		return w.rows[i].Host, w.rows[i].Host
	})
	d.Communicators = finished(w.comms, func(ref otf2.CommRef) string { return w.names[ref] }, cmp.Compare)
	d.Operations = finished(w.operations, func(name string) string { return name }, cmp.Compare)
	d.Phases = finished(w.phases, (*phaseNode).path, func(a, b *phaseNode) int {
		return cmp.Compare(a.path(), b.path())
	})
	d.Phases = joined(d.Phases)
	d.Kinds = []WaitGroup{}
	for k := range w.kinds {
		if g := &w.kinds[k]; g.Parts > 0 {
			g.finish()
			d.Kinds = append(d.Kinds, *g)
		}
	}
	if d.Worst == nil {
		d.Worst = []WaitInstance{}
	}
	d.Network, d.NetworkUnknown = w.network.result()
	e := &d.Enqueue
	e.Ranks = []EnqueueRow{}
	if e.Collectives > 0 {
		e.SkewAvg = e.skew / float64(e.Collectives)
		e.Ranks = w.enqueue
	}
	return short, d
}

// gather adds up ranks by a name and host; those without a name are left out.
func (w *waitCounter) gather(of func(i int) (name, host string)) []WaitRow {
	index := make(map[[2]string]int)
	all := []WaitRow{}
	for i := range w.rows {
		name, host := of(i)
		if name == "" {
			continue
		}
		at, known := index[[2]string{name, host}]
		if !known {
			at = len(all)
			index[[2]string{name, host}] = at
			all = append(all, WaitRow{Name: name, Host: host})
		}
		r, o := &all[at], &w.rows[i]
		r.sum(&o.WaitSums)
		r.Blame.merge(&o.Blame)
	}
	return all
}

func (g *WaitGroup) finish() {
	if g.Collectives > 0 {
		g.SkewAvg, g.TransferAvg = g.skew/float64(g.Collectives), g.transfer/float64(g.Collectives)
	}
}

// finished lists groups in the order of their keys.
func finished[K comparable](all map[K]*WaitGroup, name func(K) string, order func(a, b K) int) []WaitGroup {
	list := []WaitGroup{}
	for _, k := range slices.SortedFunc(maps.Keys(all), order) {
		g := all[k]
		g.Name = name(k)
		g.finish()
		list = append(list, *g)
	}
	return list
}

// joined adds up neighbours of one name: lanes have their own nodes of a phase.
func joined(all []WaitGroup) []WaitGroup {
	out := all[:0]
	for i := range all {
		if n := len(out); n > 0 && out[n-1].Name == all[i].Name {
			out[n-1].sum(&all[i].WaitSums)
		} else {
			out = append(out, all[i])
		}
	}
	return out
}
