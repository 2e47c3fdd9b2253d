// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overtime"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The sums over all operations.

// ledger has the sums of the whole job.
type ledger struct {
	waited  float64 // ns over all members, start-up left out
	startUp float64
	small   float64   // part of waited, in operations whose arrivals differ by no more than their uncertainty
	costs   []float64 // by cause, ns that others waited; in total waited, and what start-up caused
	delays  []float64 // by cause, upper bound on the ns by which operations would have begun earlier
	beside  []float64 // by cause, part of costs that cost nothing, as hosts or GPUs worked meanwhile
	// through is the part of waited, by paradigm of the operation, for ranks that were late because they had waited in
	// one of another paradigm.
	through [worlds]float64

	// over and charged receive the waiting that ranks caused; nil: not wanted.
	over    *overtime.Line
	charged func(rank int, of Kind, begin, end otf2.Timestamp, ns float64) // nil: not wanted

	own         []float64           // by rank, ns between operations
	ownBy       [][ownKinds]float64 // own by kinds
	longest     []longest           // by rank
	waits       waiting             // over all ranks
	bursts      []burst             // by rank
	passed      []inheritedLateness // by rank
	burstsOf    []bursts            // by rank, bursts that have ended
	rows        []steadiness        // by rank
	paces       []pace              // by rank
	fresh       []freshness         // by rank
	occurrences [][]Occurrence      // by rank, the most expensive ones, as a heap
	kept        int                 // limit on the occurrences of each rank
}

// waiting adds up how long ranks waited, in all operations (all) and in any operation (any): where operations run
// concurrently, a rank waits in several at once.
type waiting struct {
	until    []otf2.Timestamp // by rank
	all, any float64          // ns
}

func (w *waiting) add(rank int32, from otf2.Timestamp, ns uint64) {
	until := from + otf2.Timestamp(ns)
	w.all += float64(ns)
	if since := max(from, w.until[rank]); until > since {
		w.any += float64(until - since)
		w.until[rank] = until
	}
}

// atOnce returns the average number of operations in which a waiting rank waited, at least 1.
func (w *waiting) atOnce() float64 {
	if w.any <= 0 {
		return 1
	}
	return max(1, w.all/w.any)
}

// Occurrence is an occasion on which a rank was late by itself.
type Occurrence struct {
	At       otf2.Timestamp // when it came
	Comm     otf2.CommRef
	Function string
	Ordinal  uint64
	Nth      uint64  // number among the analyzed operations of this function on the communicator
	Kind     Kind    // the kind with most of the lateness
	Late     float64 // ns after the member it is compared with
	Called   float64 // ns that it was called after that one; NaN: unknown
	Cost     float64 // ns that others waited for it because of what it did itself
	Message  bool    // it was late to a message, for the rank at the other end
	Stated   bool    // Uncertainty is known
	MayWait  bool    // the operation before may not have ended yet, see Local.MayLast
	During   Phase   // phase in which it was called; nil: none, or unknown
	// Uncertainty is the uncertainty of Late, in ns.
	Uncertainty uint64

	late, early *Kernels // kernels that ran before it, and before the one that it is compared with
}

// keptOccurrences limits the occurrences of all ranks together; each rank may keep leastOccurrences to
// mostOccurrences.
const (
	keptOccurrences  = 1 << 15
	leastOccurrences = 16
	mostOccurrences  = 256
)

func newLedger(n causesOf) ledger {
	return ledger{
		costs: make([]float64, n.all()), delays: make([]float64, n.all()), beside: make([]float64, n.all()),
		waits: waiting{until: make([]otf2.Timestamp, n)}, own: make([]float64, n),
		ownBy: make([][ownKinds]float64, n), longest: make([]longest, n), occurrences: make([][]Occurrence, n),
		bursts: make([]burst, n), passed: make([]inheritedLateness, n), burstsOf: make([]bursts, n),
		rows:  make([]steadiness, n),
		paces: make([]pace, n), fresh: make([]freshness, n),
		kept: min(max(keptOccurrences/max(int(n), 1), leastOccurrences), mostOccurrences),
	}
}

// commLedger counts the operations of a communicator by the cost of the lateness that began in them: which member was
// late most by itself. Levels are powers of two.
type commLedger struct {
	led    [][Levels]uint32  // by member, operations that are remembered
	struck []counted         // by member, occasions, which are bursts of operations
	ranks  []int32           // in the world, by member; −1: not seen
	calls  map[string]uint64 // number of operations by function

	// For messages, which have two members each:
	lost map[pairKey]*counted // by the member that was late (a) and the one that waited (b), up to mostPairs
	made map[ownCalls]uint64  // number of launches
}

// Levels is the number of levels: the lowest is for costs below 2 µs, the highest for 8 s and more.
const (
	Levels      = 24
	lowestLevel = 11
)

// Level returns the level of a cost in ns.
func Level(ns float64) int {
	return min(max(bits.Len64(uint64(ns))-lowestLevel, 0), Levels-1)
}

func newCommLedger(members int) commLedger {
	c := commLedger{led: make([][Levels]uint32, members), struck: make([]counted, members),
		ranks: make([]int32, members), calls: make(map[string]uint64)}
	for i := range c.ranks {
		c.ranks[i] = -1
	}
	return c
}

// see records the ranks of the members.
func (c *commLedger) see(members []Member) {
	for i := range members {
		c.ranks[members[i].Arrival.Rank] = members[i].Local.Rank
	}
}

// addCosts adds up the costs of an operation whose blames have been explained.
func (e *Engine) addCosts(op *Operation, c *comm, members []Member) {
	e.struck = e.struck[:0]
	begin, end := e.came[e.order[0]].Begin, e.came[e.order[len(e.order)-1]].Begin
	for k := range e.blames {
		b := &e.blames[k]
		m := &members[b.member]
		s := e.charge(b, m.Local.Rank, begin, end)
		e.ledger.through[worldOf(m.Source)] += b.charge * b.through
		if b.charge <= 0 || m.Outside {
			continue
		}
		s.local, s.ledger, s.member, s.waiter = &m.Local, &c.commLedger, int(m.Arrival.Rank), -1
		if s.cost < b.charge/2 && e.byOthers(b, m.Local.Rank) >= mostly {
			s.since(m, &members[b.by], float64(m.Begin-members[b.by].Begin))
			e.ledger.addInheritedLateness(&s, e.why(b))
		}
		if s.cost <= 0 {
			continue
		}
		s.since(m, &members[b.by], s.cost/b.charge*float64(m.Begin-members[b.by].Begin))
		s.fresh, s.worked = e.known(b.fresh, op.Function), e.arrived[b.member].sumOwn()
		e.ledger.addLateOccasion(&s)
		e.struck = append(e.struck, lateMember{s, m, &members[b.by], op.Function, c.calls[op.Function]})
	}
	e.remember(op.Comm, op.Ordinal)
}

// lateMember is a member that came late to an operation by itself.
type lateMember struct {
	lateOccasion
	late, early *Member
	function    string
	nth         uint64
}

// together is the part of the greatest cost in an operation from which on a member was late to it, too.
const together = 0.25

// remember keeps, for each member that was late to an operation by itself, that it was: the one that cost most, and
// those that cost about as much together with it.
func (e *Engine) remember(comm otf2.CommRef, ordinal uint64) {
	most := 0.0
	for i := range e.struck {
		most = max(most, e.struck[i].cost)
	}
	for i := range e.struck {
		s := &e.struck[i]
		if s.cost < together*most {
			continue
		}
		s.ledger.led[s.late.Arrival.Rank][Level(s.cost)]++
		o := occurrence(s.late, s.early)
		o.Comm, o.Function, o.Ordinal, o.Nth, o.Kind, o.Cost = comm, s.function, ordinal, s.nth, s.kind, s.cost
		if s.waiter >= 0 {
			o.At, o.Late, o.Message = s.late.There, float64(s.late.There-s.early.Begin), true
		}
		e.ledger.remember(s.late.Local.Rank, &o)
	}
}

// charge adds up the cost of a member that others waited for between two times, and returns the part that is its own,
// by kinds.
func (e *Engine) charge(b *blame, rank int32, begin, end otf2.Timestamp) (s lateOccasion) {
	l := &e.ledger
	s.kind = Own
	if b.charge <= 0 {
		return s
	}
	if !b.asked {
		l.costs[e.causes.unknown()] += b.charge
		return s
	}
	best := 0.0
	for _, why := range e.why(b) {
		l.costs[why.of] += b.charge * why.ns
		l.delays[why.of] += b.delay * why.ns
		r, of, ok := e.causes.rank(why.of)
		if !ok || int(of) >= ownKinds {
			continue
		}
		l.over.Charge(r, begin, end, b.charge*why.ns)
		if l.charged != nil && why.ns > 0 {
			l.charged(r, of, begin, end, b.charge*why.ns)
		}
		if int32(r) == rank {
			s.cost += b.charge * why.ns
			s.kinds[of] += b.charge * why.ns
			if why.ns > best {
				s.kind, best = of, why.ns
			}
		}
	}
	return s
}

// mostly is the share above which a part of a lateness is most of it.
const mostly = 0.5

// byOthers returns the share of a blame caused by other ranks, as far as it is known.
func (e *Engine) byOthers(b *blame, rank int32) (share float64) {
	for _, why := range e.why(b) {
		if r, of, ok := e.causes.rank(why.of); ok && (int32(r) != rank || int(of) >= ownKinds) ||
			why.of == e.causes.startUp() {
			share += why.ns
		}
	}
	return share
}

// occurrence describes that one member came later than another.
func occurrence(late, early *Member) Occurrence {
	o := Occurrence{
		At: late.Begin, Late: float64(late.Begin - early.Begin), Called: math.NaN(),
		Stated: late.Stated && early.Stated, Uncertainty: late.Uncertainty + early.Uncertainty,
		MayWait: late.MayLast, late: late.Kernels, early: early.Kernels, During: late.During,
	}
	if late.Called && early.Called {
		o.Called = float64(late.Ready) - float64(early.Ready)
	}
	return o
}

// remember keeps an occurrence if its cost is among the greatest of the rank.
func (l *ledger) remember(rank int32, o *Occurrence) {
	all := l.occurrences[rank]
	if len(all) < l.kept {
		all = append(all, *o)
		for i := len(all) - 1; i > 0 && all[i].Cost < all[(i-1)/2].Cost; i = (i - 1) / 2 {
			all[i], all[(i-1)/2] = all[(i-1)/2], all[i]
		}
		l.occurrences[rank] = all
		return
	}
	if o.Cost <= all[0].Cost {
		return
	}
	all[0] = *o
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(all); child++ {
			if all[child].Cost < all[least].Cost {
				least = child
			}
		}
		if least == i {
			return
		}
		all[i], all[least] = all[least], all[i]
		i = least
	}
}

// Result has the causes of all waits. Times are in ns.
type Result struct {
	Waited  float64 // over all members, start-up left out
	StartUp float64 // in the first operations of communicators, and later as a consequence
	Unknown float64 // part of Waited
	Small   float64 // part of Unknown: no longer than the uncertainty of times
	AtOnce  float64 // average number of operations in which a waiting rank waited
	Ranks   []Rank  // by rank of the world
	Comms   []Comm
	// Through is the waiting in operations of NCCL and of MPI for ranks that were late because they had waited in
	// operations of the other one.
	Through Through
}

// Through has ns by paradigm.
type Through struct{ NCCL, MPI float64 }

// Rank is what a rank of the world caused.
type Rank struct {
	Costs [NumKinds]float64 // part of Waited, for this rank
	// Beside is the part of Costs in which the hosts or GPUs of the waiting ranks worked: it delayed nothing.
	Beside [NumKinds]float64
	Delays [NumKinds]float64 // upper bound on how much earlier operations would have begun, without Beside
	// Worked is its own time: on the host, in calls, and on the GPU before operations begin, and also on its host and
	// GPU while it waited. Rarely is what its few longest steps have more than the next one (LeastTimes); it is left
	// out.
	Worked, Rarely float64
	WorkedBy       [ownKinds]float64 // Worked by kinds
	Heaviest       float64           // cost of its most expensive occasion
	// Occurrences has the most expensive occasions on which it was late by itself, in order of time.
	Occurrences []Occurrence
	All         bool // Occurrences is complete
}

// Cost returns how long others waited for the rank because of what it did itself.
func (r *Rank) Cost() (sum float64) {
	for _, k := range OwnKinds {
		sum += r.Costs[k]
	}
	return sum
}

// Ascribe moves a part of the waiting for a rank on which operations took longer than on others to the slow links of
// another one, on which messages came to it.
func (r *Result) Ascribe(rank, to int, part float64) {
	from, by := &r.Ranks[rank], &r.Ranks[to]
	for _, ns := range [...]struct{ from, to *[NumKinds]float64 }{
		{&from.Costs, &by.Costs}, {&from.Beside, &by.Beside}, {&from.Delays, &by.Delays},
	} {
		moved := part * ns.from[Transfer]
		ns.from[Transfer] -= moved
		ns.to[Link] += moved
	}
}

// Transfers returns the part of Waited, in ns, due to operations that took longer, for a known reason or on some
// members than on others.
func (r *Result) Transfers() (sum float64) {
	for i := range r.Ranks {
		for k := Transfer; k < Turns; k++ {
			sum += r.Ranks[i].Costs[k]
		}
	}
	return sum
}

// Comm counts the operations of a communicator by the cost of the lateness that began in them, in powers of two.
type Comm struct {
	Ref   otf2.CommRef
	Ranks []int32          // in the world, by member; −1: unknown
	Led   [][Levels]uint32 // by member: operations to which it was late by itself, most or together with others
	// Struck has, by member, the occasions on which it was late by itself; a burst of operations with one origin is
	// one occasion.
	Struck [][Levels]float32
	Calls  map[string]uint64 // number of operations by function
	// Took has, for messages, the occasions that a member took part in, by member; nil: the row is for collectives.
	Took []occasions
	lost map[pairKey]*[Levels]float32
	made map[ownCalls]uint64
}

// Part returns how many occasions of a level a member of messages took part in, and on how many of them it would be
// the late one if all participants were alike.
func (c *Comm) Part(member, level int) (times, expected float64) {
	t := &c.Took[member]
	return float64(t.times[level]), float64(t.expected[level])
}

// Count returns the number of operations of a function, for messages the number of the member's launches with it.
func (c *Comm) Count(member int, function string) uint64 {
	if c.Took != nil {
		return c.made[ownCalls{member, function}]
	}
	return c.Calls[function]
}

// Waited returns on how many occasions of a level a member of messages waited for others that were late by themselves.
func (c *Comm) Waited(member, level int, whom func(rank int) bool) (n float64) {
	for i, rank := range c.Ranks {
		if rank >= 0 && whom(int(rank)) {
			if levels := c.lost[pairKey{int32(i), int32(member)}]; levels != nil {
				n += float64(levels[level])
			}
		}
	}
	return n
}

// Result returns the sums. The engine cannot be used afterwards.
func (e *Engine) Result() *Result {
	e.finish()
	l := &e.ledger
	anew := l.newLatenessShares()
	r := &Result{Waited: l.waited, StartUp: l.startUp, Unknown: l.costs[e.causes.unknown()], Small: l.small,
		AtOnce: l.waits.atOnce(), Ranks: make([]Rank, e.causes), Through: Through{l.through[0], l.through[1]}}
	later := l.costs[e.causes.startUp()]
	r.Waited -= later
	r.StartUp += later
	for i := range r.Ranks {
		rank := &r.Ranks[i]
		for k := range NumKinds {
			of := e.causes.of(int32(i), k)
			rank.Costs[k], rank.Beside[k] = l.costs[of], min(l.beside[of], l.costs[of])
			if cost := rank.Costs[k]; cost > 0 {
				rank.Delays[k] = l.delays[of] * (cost - rank.Beside[k]) / cost
			}
		}
		rare := l.longest[i].rare()
		rank.Rarely = sum(rare[:])
		rank.Worked = max(l.own[i]-e.aside.own[i]-rank.Rarely, 0)
		for k := range rank.WorkedBy {
			rank.WorkedBy[k] = l.ownBy[i][k] - e.aside.ownBy[i][k] - rare[k]
		}
		early := e.ranks[i].computedEarly()
		rank.Worked, rank.WorkedBy[GPU] = rank.Worked+early, rank.WorkedBy[GPU]+early
		rank.Heaviest = l.burstsOf[i].heaviest(anew[i])
		rank.Occurrences, rank.All = l.occurrences[i], len(l.occurrences[i]) < l.kept
		slices.SortFunc(rank.Occurrences, func(a, b Occurrence) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Ordinal, b.Ordinal))
		})
	}
	for i := range r.Ranks {
		l.move(e.causes, r, i, 1-anew[i])
	}
	for ref, c := range e.comms {
		r.Comms = append(r.Comms, c.result(ref, anew))
		if c.ends != nil {
			r.Comms = append(r.Comms, c.ends.result(ref, anew))
		}
	}
	slices.SortFunc(r.Comms, func(a, b Comm) int {
		return cmp.Or(cmp.Compare(a.Ref, b.Ref), cmp.Compare(len(a.Took), len(b.Took)))
	})
	return r
}

// move charges what a rank carried along to the kinds that it began with.
func (l *ledger) move(causes causesOf, r *Result, i int, part float64) {
	left := r.Ranks[i].move(&l.burstsOf[i].moved, part)
	given := l.burstsOf[i].given
	all := 0.0
	for _, ns := range given {
		all += ns
	}
	for of, ns := range given {
		rank, kind, ok := causes.rank(of)
		switch {
		case ok:
			r.Ranks[rank].Costs[kind] += part * ns
			r.Ranks[rank].Delays[kind] += left * ns / all
		case of == causes.startUp():
			r.StartUp += part * ns
			r.Waited -= part * ns
		default:
			r.Unknown += part * ns
		}
	}
}

// result returns the row of a communicator; anew is by rank.
func (c *commLedger) result(ref otf2.CommRef, anew []float64) Comm {
	r := Comm{Ref: ref, Ranks: c.ranks, Led: c.led, Struck: make([][Levels]float32, len(c.ranks)), Calls: c.calls,
		made: c.made}
	own := make([]occasions, len(c.ranks))
	for i, rank := range c.ranks {
		if rank >= 0 {
			c.struck[i].into(&own[i], anew[rank])
			r.Struck[i] = own[i].times
		}
	}
	if c.lost == nil {
		return r
	}
	r.Took, r.lost = own, make(map[pairKey]*[Levels]float32, len(c.lost))
	for key, counted := range c.lost {
		var o occasions
		counted.into(&o, anew[c.ranks[key.a]])
		r.lost[key] = &o.times
		took := &own[key.b]
		for level := range o.times {
			took.times[level] += o.times[level]
			took.expected[level] += o.expected[level]
		}
	}
	return r
}
