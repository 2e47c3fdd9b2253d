// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Activity is an element of a path.
type Activity uint8

// Activities. The first ones are a rank's own, divided as in package causes.
const (
	Application Activity = iota // on the host, until NCCL was called
	Call                        // in NCCL's call
	GPU                         // from the call to the begin on the GPU: earlier work of the stream
	Own                         // of the rank, if the time of its call is unknown
	StartUp                     // until the first operation on a communicator has ended
	After                       // after the last operation
	Unknown                     // what came before is unknown
	Operation                   // in an operation, from the last arrival on
	numActivities
)

var activityNames = [numActivities]string{"application", "NCCL call", "GPU", "own", "start-up",
	"after the last operation", "unknown", "operation"}

// String returns the activity's name in tables.
func (a Activity) String() string { return activityNames[a] }

const ownActivities = 4

// Path follows the critical paths of a run. It is for one goroutine.
type Path struct {
	ranks   []rank
	tree    tree
	names   map[Named]int32 // of operations, starting with numActivities
	named   []Named
	last    int32 // the one looked up last; 0: none
	pairs   map[pairKey]pair
	kernels kernels
	tracer  Tracer // if set, receives each step

	candidates     []candidate
	candidateOf    []int32  // by rank
	excess         []uint64 // by rank, ns
	taken          uint32   // number of candidates that replaced others
	turn           uint32   // number of operations
	groups         []group
	spare          []*gains
	came, adjusted []arrival

	totals  [ownActivities]uint64 // over all ranks, ns
	working uint64                // in operations, without waiting
	seen    int                   // number of ranks with operations
}

// Named identifies an operation by its communicator and function.
type Named struct {
	Comm     otf2.CommRef
	Function string
}

// New returns a path for a number of ranks of the world.
func New(ranks int) *Path {
	p := &Path{
		ranks: make([]rank, ranks), names: make(map[Named]int32), pairs: make(map[pairKey]pair),
		candidateOf: make([]int32, ranks), excess: make([]uint64, ranks),
		candidates: make([]candidate, 1+min(ranks, mostCandidates)),
	}
	for i := range p.candidateOf {
		p.candidateOf[i] = nobody
	}
	for i := range p.candidates {
		p.candidates[i].rank = nobody
		if i > 0 && ranks <= mostCandidates {
			p.candidates[i].rank = int32(i - 1)
			p.candidateOf[i-1] = int32(i)
		}
	}
	return p
}

// arrival describes how a rank comes to an operation.
type arrival struct {
	rank        int32
	begin, end  otf2.Timestamp
	before      *departure // nil: unknown
	seq         uint32     // of before
	gain        *gains
	own         int64 // ns that it came later than by because of what it did itself
	by          int32
	local       int64 // part of own since the operation before
	hidden      int64 // ns that it may have worked while it waited in the operation before
	worked      uint64
	uncertainty uint64
}

func (p *Path) arrive(m *causes.Local, begin, end otf2.Timestamp) arrival {
	a := arrival{rank: m.Rank, begin: begin, end: max(begin, end)}
	if m.Rank < 0 {
		return a
	}
	a.before = p.before(m, begin)
	from := m.Ended
	if a.before != nil {
		a.seq, a.gain, a.worked, from = a.before.seq, a.before.gain, a.before.own, max(from, a.before.end)
	}
	if from < begin {
		a.local = int64(begin - from)
		a.worked += uint64(a.local)
	}
	if b := a.before; b != nil && (!m.Called || m.Ready < from) && uint64(a.local) < b.wait/hiddenPart {
		a.hidden = int64(b.wait)
	}
	return a
}

// hiddenPart: a rank that has already called its next operation, and begins it in less than this part of its last
// wait, may have done the work between both during the wait, on another stream.
const hiddenPart = 8

// before returns how a rank left the operation before the given one; nil if unknown.
func (p *Path) before(m *causes.Local, begin otf2.Timestamp) *departure {
	r := &p.ranks[m.Rank]
	x, ok := r.find(m.Before)
	if !ok && m.Before != 0 { // take the last known one before it
		for i := range r.left {
			if y := &r.left[i]; y.seq != 0 && y.end <= begin && (x == nil || y.end > x.end) {
				x = y
			}
		}
	}
	if x == nil || x.seq == 0 || p.tree.nodes[x.node].at > begin {
		return nil
	}
	return x
}

// extend extends a rank's path up to the begin of an operation.
func (p *Path) extend(a *arrival, m *causes.Local, starting bool) int32 {
	from := min(m.Ended, a.begin)
	step := Step{Rank: a.rank, Start: from}
	var n int32
	if b := a.before; b == nil || b.seq != a.seq { // it is no longer kept
		n = p.tree.grow(noNode, a.rank, from, a.begin)
		p.tree.nodes[n].lost = m.Before != 0
	} else {
		n = p.tree.grow(b.node, a.rank, 0, a.begin)
		x, until := &p.tree.nodes[n], min(b.end, a.begin)
		before := &p.tree.nodes[b.node]
		step.Before, step.What, step.Start, step.In = before.step, b.what, before.at, uint64(until-before.at)
		x.add(key{b.rank, b.what}, step.In)
		if from > until { // part of the previous operation is unknown
			step.Unknown = uint64(from - until)
			x.add(key{nobody, int32(Unknown)}, step.Unknown)
		}
		from = max(from, until)
	}
	x := &p.tree.nodes[n]
	if starting {
		step.StartUp = uint64(a.begin - from)
		x.add(key{nobody, int32(StartUp)}, step.StartUp)
		p.trace(n, &step)
		return n
	}
	step.Own = m.Own(from, a.begin)
	for k, ns := range step.Own {
		x.add(key{a.rank, int32(k)}, ns)
		if Activity(k) == GPU {
			p.busy(x, a, m, ns)
		}
	}
	p.trace(n, &step)
	return n
}

// spend counts a member's time.
func (p *Path) spend(a *arrival, m *causes.Local, wait uint64, starting bool) {
	r := &p.ranks[a.rank]
	if r.covered == 0 {
		p.seen++
	}
	if !starting && r.covered != 0 {
		if from := max(m.Ended, r.covered); from < a.begin {
			for k, ns := range m.Own(from, a.begin) {
				p.totals[k] += ns
			}
		}
		if from := max(a.begin, r.covered); from < a.end {
			took := uint64(a.end - from)
			p.working += took - min(took, wait)
		}
	}
	r.covered = max(r.covered, a.end)
}

func (p *Path) name(comm otf2.CommRef, function string) int32 {
	k := Named{comm, function}
	// Consecutive operations often have the same name.
	if at := p.last - int32(numActivities); at >= 0 && p.named[at] == k {
		return p.last
	}
	n, ok := p.names[k]
	if !ok {
		n = int32(numActivities) + int32(len(p.named))
		p.names[k] = n
		p.named = append(p.named, k)
	}
	p.last = n
	return n
}

// leave stores how a member left an operation: on a path up to some moment, and then in the operation.
func (p *Path) leave(a *arrival, m *causes.Local, node, what int32, g *gains, wait uint64) {
	p.put(a.rank, departure{seq: m.Seq, node: node, what: what, rank: nobody, end: a.end, gain: g, own: a.worked,
		wait: wait})
}

// Collective takes a collective; see causes.Follower.
func (p *Path) Collective(op *causes.Operation, members []causes.Member, came []facts.Arrival, late *facts.Lateness,
	delays []causes.Delay, first bool) {
	what := p.name(op.Comm, op.Function)
	if first {
		what = int32(StartUp)
	}
	p.came = p.came[:0]
	for i := range members {
		m := &members[i]
		a := p.arrive(&m.Local, m.Begin, m.End)
		a.uncertainty = m.Uncertainty
		p.came = append(p.came, a)
	}
	if late == nil || members[late.Last].Local.Rank < 0 {
		for i := range members {
			p.alone(&p.came[i], &members[i].Local, what, first)
		}
		return
	}
	for _, d := range delays {
		a := &p.came[d.Member]
		a.own, a.by = max(0, int64(d.Own+0.5)-p.came[d.By].hidden), d.By
	}
	last := &p.came[late.Last]
	node := p.extend(last, &members[late.Last].Local, first)
	p.doubt(node, late, members)
	p.tree.take(node)
	shared := p.gained(p.compared(members, late), int32(late.Last))
	shared.take()
	for i := range members {
		a, m := &p.came[i], &members[i]
		if a.rank < 0 {
			continue
		}
		p.spend(a, &m.Local, came[i].Wait, first)
		switch {
		case m.Source != late.Source:
			p.alone(a, &m.Local, what, first)
		case i == late.Last, a.end >= last.begin && (came[i].Wait > 0 || a.begin == last.begin):
			p.leave(a, &m.Local, node, what, shared, came[i].Wait)
		default:
			p.early(i, members, came, late, what, first)
		}
	}
	p.release(shared)
	p.tree.drop(node)
}

// compared returns the arrivals. Members without comparable times count as having come long before.
func (p *Path) compared(members []causes.Member, late *facts.Lateness) []arrival {
	if late.Compared == len(members) {
		return p.came
	}
	p.adjusted = append(p.adjusted[:0], p.came...)
	for i := range members {
		if a := &p.adjusted[i]; members[i].Source != late.Source {
			a.begin, a.own, a.gain = 0, 0, nil
		}
	}
	return p.adjusted
}

// early makes a member leave that was not held up by the last one.
func (p *Path) early(i int, members []causes.Member, came []facts.Arrival, late *facts.Lateness, what int32,
	first bool) {
	a := &p.came[i]
	by := -1
	if came[i].Wait > 0 {
		until := a.begin + otf2.Timestamp(came[i].Wait)
		for k := range members {
			if b := p.came[k].begin; k != i && members[k].Source == late.Source && p.came[k].rank >= 0 && b > a.begin &&
				b <= until && (by < 0 || b > p.came[by].begin) {
				by = k
			}
		}
	}
	if by < 0 {
		node := p.extend(a, &members[i].Local, first)
		p.leave(a, &members[i].Local, node, what, a.gain, came[i].Wait)
		return
	}
	node := p.extend(&p.came[by], &members[by].Local, first)
	two := []arrival{*a, p.came[by]}
	two[0].own, two[1].by = 0, 0
	p.leave(a, &members[i].Local, node, what, p.gained(two, 1), came[i].Wait)
}

// doubt counts how certain it is that the last arrival was the last.
func (p *Path) doubt(node int32, late *facts.Lateness, members []causes.Member) {
	last := &members[late.Last]
	x := &p.tree.nodes[node]
	if !last.Stated {
		x.unstated++
		return
	}
	for i := range members {
		m := &members[i]
		if i != late.Last && m.Source == late.Source && m.Stated &&
			last.Begin-m.Begin <= otf2.Timestamp(last.Uncertainty+m.Uncertainty) {
			for k := range x.list {
				if e := &x.list[k]; e.rank >= 0 && !e.isKernel() {
					x.doubtful += e.ns
				}
			}
			return
		}
	}
}

// Alone takes an operation that is not compared; see causes.Follower.
func (p *Path) Alone(l *causes.Local, begin, end otf2.Timestamp) {
	if l.Rank < 0 {
		return
	}
	a := p.arrive(l, begin, end)
	p.alone(&a, l, int32(Operation), false)
}

func (p *Path) alone(a *arrival, l *causes.Local, what int32, starting bool) {
	if a.rank < 0 {
		return
	}
	p.fresh(a.gain)
	p.spend(a, l, 0, starting)
	p.leave(a, l, p.extend(a, l, starting), what, a.gain, 0)
}

// pairKey identifies the rank of a launch, and a rank at the other end of its messages.
type pairKey struct {
	comm otf2.CommRef
	a, b int32
}

// pair has how long both had worked when they last met.
type pair struct{ a, b uint64 }

// mostPairs limits the pairs that are kept.
const mostPairs = 1 << 14

// Launch takes a launch of messages; see causes.Follower.
func (p *Path) Launch(comm otf2.CommRef, function string, l *causes.Member, others []*causes.Member) {
	if l.Local.Rank < 0 {
		return
	}
	p.came = append(p.came[:0], p.arrive(&l.Local, l.Begin, l.End))
	me := &p.came[0]
	me.uncertainty = l.Uncertainty
	what := p.name(comm, function)
	last, at := 0, l
	starting := false
	before := int32(-1) // the last one that came before it
	for _, o := range others {
		if o.Local.Rank < 0 || o.There > l.End || o.Local.Rank == l.Local.Rank {
			continue
		}
		a := p.arrive(&o.Local, o.There, o.End)
		a.uncertainty = o.Uncertainty
		met, known := p.meet(comm, &p.came[0], &a)
		mine, theirs := int64(p.came[0].worked-met.a), int64(a.worked-met.b)
		switch {
		case !known:
			starting = true
		case o.There > l.Begin:
			a.own, a.by = max(0, theirs-mine), 0
		case o.There < l.Begin:
			p.came[0].own, before = max(0, mine-theirs), int32(len(p.came))
		}
		p.came = append(p.came, a)
		if o.There > p.came[last].begin {
			last, at = len(p.came)-1, o
		}
	}
	me = &p.came[0]
	me.by = max(before, 0)
	starting = starting && me.before == nil
	node := p.extend(&p.came[last], &at.Local, starting)
	g := p.gained(p.came, int32(last))
	wait := uint64(p.came[last].begin - me.begin)
	p.spend(me, &l.Local, wait, starting)
	p.leave(me, &l.Local, node, what, g, 0)
}

// meet records that two ranks meet, and returns the state at their previous meeting; known is false if there was none.
func (p *Path) meet(comm otf2.CommRef, a, b *arrival) (met pair, known bool) {
	k := pairKey{comm, a.rank, b.rank}
	met, known = p.pairs[k]
	if known || len(p.pairs) < mostPairs {
		p.pairs[k] = pair{a.worked, b.worked}
	}
	return met, known
}
