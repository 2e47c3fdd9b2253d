// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
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
	kernels kernels
	tracer  Tracer // if set, receives each step

	came []arrival

	totals  [ownActivities]uint64 // over all ranks, ns
	working uint64                // in operations, without waiting
	seen    int                   // number of ranks with operations
}

// Named identifies an operation by its communicator and function.
type Named struct {
	Comm     otf2.CommRef
	Function string
}

const nobody = int32(-1)

// New returns a path for a number of ranks of the world.
func New(ranks int) *Path {
	return &Path{ranks: make([]rank, ranks), names: make(map[Named]int32)}
}

// arrival describes how a rank comes to an operation.
type arrival struct {
	rank       int32
	begin, end otf2.Timestamp
	before     *departure // nil: unknown
	seq        uint32     // of before
}

func (p *Path) arrive(m *causes.Local, begin, end otf2.Timestamp) arrival {
	a := arrival{rank: m.Rank, begin: begin, end: max(begin, end)}
	if m.Rank < 0 {
		return a
	}
	a.before = p.departureBefore(m, begin)
	if a.before != nil {
		a.seq = a.before.seq
	}
	return a
}

// departureBefore returns how a rank left the operation before the given one; nil if unknown.
func (p *Path) departureBefore(m *causes.Local, begin otf2.Timestamp) *departure {
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
func (p *Path) leave(a *arrival, m *causes.Local, node, what int32) {
	p.storeDeparture(a.rank, departure{seq: m.Seq, node: node, what: what, rank: nobody, end: a.end})
}

// Collective takes a collective; see causes.Follower.
func (p *Path) Collective(op *causes.Operation, members []causes.Member, came []lateness.Arrival, late *lateness.Result,
	first bool) {
	what := p.name(op.Comm, op.Function)
	if first {
		what = int32(StartUp)
	}
	p.came = p.came[:0]
	for i := range members {
		m := &members[i]
		p.came = append(p.came, p.arrive(&m.Local, m.Begin, m.End))
	}
	if late == nil || members[late.Last].Local.Rank < 0 {
		for i := range members {
			p.alone(&p.came[i], &members[i].Local, what, first)
		}
		return
	}
	last := &p.came[late.Last]
	node := p.extend(last, &members[late.Last].Local, first)
	p.doubt(node, late, members)
	p.tree.addUser(node)
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
			p.leave(a, &m.Local, node, what)
		default:
			p.early(i, members, came, late, what, first)
		}
	}
	p.tree.drop(node)
}

// early makes a member leave that was not held up by the last one.
func (p *Path) early(i int, members []causes.Member, came []lateness.Arrival, late *lateness.Result, what int32,
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
		p.leave(a, &members[i].Local, node, what)
		return
	}
	node := p.extend(&p.came[by], &members[by].Local, first)
	p.leave(a, &members[i].Local, node, what)
}

// doubt counts how certain it is that the last arrival was the last.
func (p *Path) doubt(node int32, late *lateness.Result, members []causes.Member) {
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
func (p *Path) Alone(m *causes.Member) {
	if m.Local.Rank < 0 {
		return
	}
	a := p.arrive(&m.Local, m.Begin, m.End)
	p.alone(&a, &m.Local, int32(Operation), false)
}

func (p *Path) alone(a *arrival, l *causes.Local, what int32, starting bool) {
	if a.rank < 0 {
		return
	}
	p.spend(a, l, 0, starting)
	p.leave(a, l, p.extend(a, l, starting), what)
}

// Launch takes a launch of messages; see causes.Follower.
func (p *Path) Launch(op *causes.Operation, l *causes.Member, others []causes.Other, room *causes.Room) {
	if l.Local.Rank < 0 {
		return
	}
	me := p.arrive(&l.Local, l.Begin, l.End)
	last, at := me, l
	starting := false
	for _, o := range others {
		if o.Local.Rank < 0 || o.There > l.End || o.Local.Rank == l.Local.Rank {
			continue
		}
		starting = starting || o.Begins
		if o.There > last.begin {
			last, at = p.arrive(&o.Local, o.There, o.End), o.Member
		}
	}
	starting = starting && me.before == nil
	if room != nil && room.End > last.begin {
		at = &causes.Member{Local: causes.Local{Rank: room.Rank, Before: room.Seq, Ended: room.End}}
		last = p.arrive(&at.Local, room.End, room.End)
	}
	node := p.extend(&last, &at.Local, starting)
	p.spend(&me, &l.Local, uint64(last.begin-me.begin), starting)
	p.leave(&me, &l.Local, node, p.name(op.Comm, op.Function))
}
