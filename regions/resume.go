// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/takeover"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
)

// Resumption of a process whose earlier model died: ordinals, calls without operations, threads. The state for it is
// shard.json's Resume (package experiment).
//
// The new model has the same queues of plans, so that operations get the ordinals that they would have had. It knows
// only the number of operations of each kind in the queues: these are lost, and leave holes in their sequences.

// gone describes operations of a plan that an earlier model had in memory.
type gone struct {
	operations map[string][]byte // by the keys of sequences, see takeover.Plan
	group      int64             // the latest group of their calls
}

// heritage is the state that an earlier model left of a communicator rank.
type heritage struct {
	calls []takeover.Call
	plans []takeover.Plan
}

// resumeThreads takes over the state that an earlier model left of the process.
func (ts *threads) resumeThreads() {
	last := ts.opts.Resume
	if last == nil {
		return
	}
	application := make(map[int]bool)
	for _, l := range last.Locations {
		tid := l.Present().TID
		application[tid] = application[tid] || l.Kind == description.KindThread && tid != 0
	}
	left := &last.Resume
	for ring, tid := range left.Threads {
		th := ts.threadOfRing(ring)
		th.tid, th.application = tid, application[tid]
	}
	ts.heritage, ts.past = make(map[int]*heritage), 1
	of := func(comm int) *heritage { return keyed.Entry(ts.heritage, comm) }
	for _, l := range left.Calls {
		h := of(l.Comm)
		h.calls, ts.past = append(h.calls, l), max(ts.past, l.Group+1)
		ts.extendTime(l.Start) // then its next events will be known
	}
	for _, l := range left.Plans {
		h := of(l.Comm)
		h.plans, ts.past = append(h.plans, l), max(ts.past, l.Group+1)
		if l.Open {
			ts.extendTime(l.Start)
		}
	}
	for _, l := range left.Groups {
		ts.past = max(ts.past, l.Number+1)
	}
	for _, l := range left.Groups {
		th := ts.threadOfRing(l.Ring)
		th.group = &groupCall{handle: l.Handle, thread: th, number: ts.earlierGroup(l.Number), start: last.LastTime,
			depth: 2, graph: l.Graph, resumed: true}
		ts.groups[l.Handle] = th.group
	}
}

// earlierGroup returns the number in this model of a group of an earlier model: below all of this model's groups.
func (ts *threads) earlierGroup(group int64) int64 {
	if group == 0 {
		return ungrouped
	}
	return group - ts.past
}

// describedGroup returns the form of a group's number in descriptions.
func describedGroup(group int64) int64 {
	if group == ungrouped {
		return 0
	}
	return group
}

// resumeThread returns its earlier row to a thread of the application.
func (ts *threads) resumeThread(th *thread) {
	if th.application && th.loc == nil {
		th.application = false
		ts.threadLocation(th)
	}
}

// resumeComm resumes the ordinals, calls and plans of a communicator rank.
func (m *Model) resumeComm(c *commRank) {
	last := m.opts.Resume
	if last == nil || c.index >= len(last.Comms) {
		return
	}
	was := &last.Comms[c.index]
	if was.InitTime == 0 || was.ID != c.ID || was.Rank != c.Rank {
		return
	}
	c.InitTime, c.begun = was.InitTime, was.Begun
	for key, s := range was.Sequences {
		q := c.ordinals.sequenceOf(key)
		q.Sequence, q.blank = s, s.Count > 0 && s.Last == 0
	}
	h := m.threads.heritage[c.index]
	if h == nil {
		return
	}
	for _, l := range h.calls {
		call := &call{
			before: m.threads.earlierGroup(l.Group), handle: l.Handle, parent: l.Parent, comm: c, p2p: l.P2P,
			arguments: arguments{name: l.Function, count: l.Count, datatype: l.Datatype, root: l.Root, stream: l.Stream,
				tag: l.Tag},
			start: l.Start, stop: l.Stop, stopped: !l.Open,
		}
		if l.Open {
			call.group = m.threads.groups[l.Parent]
		}
		m.ops.calls[l.Handle] = call
		c.calls.addCall(call)
	}
	for _, l := range h.plans {
		m.resumePlan(c, &l, last.LastTime)
	}
	m.ops.writeQueue(c, last.LastTime, drainDue)
}

func (m *Model) resumePlan(c *commRank, l *takeover.Plan, t uint64) {
	p := &plan{comm: c, handle: l.Handle, enqueue: enqueueing{start: l.Start}, captureOnly: l.Captured,
		gone: &gone{maps.Clone(l.Gone), m.threads.earlierGroup(l.Group)}}
	appendOperations(&p.gone.operations, l.Ops)
	switch {
	case !l.Open:
		p.enqueue.start, p.enqueue.stop, p.enqueue.stopped = t, t, true
	case l.Copied != "":
		ce := m.threads.newCE(l.Handle, c, l.Copied, l.Start, 0)
		ce.plan, m.threads.threadOfRing(l.Ring).ce = p, ce
	default:
		m.ops.plans[p.handle] = p
	}
	c.addPlan(p, t)
}

// resumeState returns the state from which another model could resume.
func (m *Model) resumeState() (r takeover.State) {
	copying := make(map[*plan]int) // rings of threads that enqueue copies
	for ring, th := range m.threads.byRing {
		r.Threads = append(r.Threads, th.tid)
		if g := th.group; g != nil {
			r.Groups = append(r.Groups, takeover.Group{Ring: ring, Handle: g.handle, Number: g.number,
				Graph: g.graph})
		}
		if th.ce != nil && th.ce.plan != nil {
			copying[th.ce.plan] = ring
		}
	}
	for _, c := range m.ranks.live {
		left := leftPlans{copying: copying}
		for _, p := range c.queue.plans {
			left.addPlan(p)
		}
		r.Plans = append(r.Plans, left.describeAll()...)
		if c.life.final {
			continue
		}
		for call := range c.calls.allCalls() {
			r.Calls = append(r.Calls, takeover.Call{
				Comm: c.index, Handle: call.handle, Parent: call.parent, P2P: call.p2p, Function: call.name,
				Count: call.count, Datatype: call.datatype,
				Root: call.root, Stream: call.stream, Tag: call.tag, Start: call.start, Stop: call.stop,
				Group: describedGroup(call.groupNumber()), Open: !call.hasReturned(),
			})
		}
	}
	return r
}

// leftPlans describes the plans of a queue for another model. Plans that have been enqueued are joined into one, except
// the last: calls can only come between the last two.
type leftPlans struct {
	copying map[*plan]int // rings of threads that enqueue copies
	plans   []takeover.Plan
	last    *plan // the last plan that has been enqueued
}

// addPlan adds the next plan of the queue.
func (l *leftPlans) addPlan(p *plan) {
	if p.measurement != 0 || p.captureOnly && p.enqueue.stopped {
		return
	}
	if !p.enqueue.stopped {
		l.plans = append(l.describeAll(), l.describePlan(p))
		return
	}
	if n := len(l.plans); l.last != nil && n > 0 && l.last.canJoin(&l.plans[n-1]) {
		l.last.joinInto(&l.plans[n-1])
	} else {
		l.describeAll()
	}
	l.last = p
}

// describeAll returns the descriptions of the added plans.
func (l *leftPlans) describeAll() []takeover.Plan {
	if l.last != nil {
		l.plans, l.last = append(l.plans, l.describePlan(l.last)), nil
	}
	return l.plans
}

func (l *leftPlans) describePlan(p *plan) takeover.Plan {
	d := takeover.Plan{Comm: p.comm.index, Group: describedGroup(p.latestGroup()), Open: !p.enqueue.stopped}
	p.joinInto(&d)
	if d.Open {
		d.Captured, d.Handle, d.Start = p.captureOnly, p.handle, p.enqueue.start
		if ring, ok := l.copying[p]; ok {
			d.Ring, d.Copied = ring, p.copiedFunction()
		}
	}
	return d
}

// canJoin reports whether a plan can share a description with those before it, without losing the order of their
// operations.
func (p *plan) canJoin(before *takeover.Plan) bool {
	return !before.Open && (len(before.Ops) == 0 || p.gone == nil || len(p.gone.operations) == 0)
}

// joinInto adds a plan's operations to a description.
func (p *plan) joinInto(d *takeover.Plan) {
	d.Group = max(d.Group, describedGroup(p.latestGroup()))
	if p.gone != nil {
		for key, marks := range p.gone.operations {
			appendMarks(&d.Gone, key, marks...)
		}
	}
	if p.captureOnly {
		return
	}
	for _, op := range p.ops {
		var mark [takeover.MarkSize]byte
		binary.LittleEndian.PutUint32(mark[:], op.agreementHash())
		appendMarks(&d.Ops, op.sequenceKey(), mark[:]...)
	}
}

// appendMarks appends marks to those of a key.
func appendMarks(to *map[string][]byte, key string, marks ...byte) {
	if *to == nil {
		*to = make(map[string][]byte)
	}
	(*to)[key] = append((*to)[key], marks...)
}

// appendOperations appends operations to others, whose lists it may overwrite.
func appendOperations(into *map[string][]byte, of map[string][]byte) {
	if *into == nil {
		*into = of
		return
	}
	for key, marks := range of {
		(*into)[key] = append((*into)[key], marks...)
	}
}

// copiedFunction returns the function that copy engines carry out for a plan; of several the first by name, so that
// descriptions are deterministic.
func (p *plan) copiedFunction() string {
	if len(p.ops) > 0 {
		return p.ops[0].name
	}
	if p.gone == nil || len(p.gone.operations) == 0 {
		return ""
	}
	return sequence.FunctionOf(slices.Min(slices.Collect(maps.Keys(p.gone.operations))))
}

// loseGone advances the sequences over the lost operations of a plan.
func (c *commRank) loseGone(p *plan) {
	if p.gone == nil {
		return
	}
	for key, marks := range p.gone.operations {
		for ; len(marks) >= takeover.MarkSize; marks = marks[takeover.MarkSize:] {
			c.ordinals.sequenceOf(key).skipLost(binary.LittleEndian.Uint32(marks))
		}
	}
}

// latestGroup returns the latest group of calls among a plan's operations and lost operations.
func (p *plan) latestGroup() int64 {
	newest := int64(ungrouped)
	if p.gone != nil {
		newest = p.gone.group
	}
	for _, op := range p.ops {
		if op.call != nil && !op.call.graph {
			newest = max(newest, op.call.groupNumber())
		}
	}
	return newest
}
