// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/experiment"
)

// What one model takes over from another that died in the midst of a process: ordinals, calls without their operations, threads. What it
// writes for that is shard.json's Resume (package experiment).
//
// A model that goes on where another one died has the same queues of plans, so that operations get the numbers that they would have
// had. Of what was in them it knows how many of each kind there were: those are gone, and leave holes in their sequences.

// gone are operations of a plan that another model had in memory.
type gone struct {
	operations map[string][]byte // by the keys of sequences, see experiment.Plan
	group      int64             // the latest one of their calls
}

// heritage is what another model left of a communicator rank.
type heritage struct {
	calls []experiment.Call
	plans []experiment.Plan
}

// resume takes over what another model left of the process.
func (ts *threads) resume() {
	last := ts.opts.Resume
	if last == nil {
		return
	}
	application := make(map[int]bool)
	for _, l := range last.Locations {
		tid := l.Present().TID
		application[tid] = application[tid] || l.Kind == experiment.KindThread && tid != 0
	}
	left := &last.Resume
	for ring, tid := range left.Threads {
		th := ts.thread(ring)
		th.tid, th.application = tid, application[tid]
	}
	ts.heritage, ts.past = make(map[int]*heritage), 1
	of := func(comm int) *heritage {
		if ts.heritage[comm] == nil {
			ts.heritage[comm] = new(heritage)
		}
		return ts.heritage[comm]
	}
	for _, l := range left.Calls {
		h := of(l.Comm)
		h.calls, ts.past = append(h.calls, l), max(ts.past, l.Group+1)
		ts.begins(l.Start) // then, what becomes of it will
	}
	for _, l := range left.Plans {
		h := of(l.Comm)
		h.plans, ts.past = append(h.plans, l), max(ts.past, l.Group+1)
		if l.Open {
			ts.begins(l.Start)
		}
	}
	for _, l := range left.Groups {
		ts.past = max(ts.past, l.Number+1)
	}
	for _, l := range left.Groups {
		th := ts.thread(l.Ring)
		th.group = &groupCall{handle: l.Handle, thread: th, number: ts.earlier(l.Number), start: last.LastTime, depth: 2, graph: l.Graph, resumed: true}
		ts.groups[l.Handle] = th.group
	}
}

// earlier is the number here of a group of calls of another model's: below all of this one's.
func (ts *threads) earlier(group int64) int64 {
	if group == 0 {
		return ungrouped
	}
	return group - ts.past
}

// told is the form of a group's number in descriptions.
func told(group int64) int64 {
	if group == ungrouped {
		return 0
	}
	return group
}

// resumeThread gives a thread of the application its row again.
func (ts *threads) resumeThread(th *thread) {
	if th.application && th.loc == nil {
		th.application = false
		ts.threadLocation(th)
	}
}

// resumeComm goes on with the ordinals of a communicator rank, with its calls, and with its plans.
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
		q := c.sequence(key)
		q.Sequence, q.blank = s, s.Count > 0 && s.Last == 0
	}
	h := m.threads.heritage[c.index]
	if h == nil {
		return
	}
	for _, l := range h.calls {
		call := &call{
			before: m.threads.earlier(l.Group), handle: l.Handle, parent: l.Parent, comm: c, p2p: l.P2P, name: l.Function, count: l.Count, datatype: l.Datatype, root: l.Root,
			stream: l.Stream, tag: l.Tag, start: l.Start, stop: l.Stop,
		}
		if l.Open {
			call.group = m.threads.groups[l.Parent]
		}
		m.ops.calls[l.Handle] = call
		c.calls = append(c.calls, call)
	}
	for _, l := range h.plans {
		m.resumePlan(c, &l, last.LastTime)
	}
	m.ops.drain(c, last.LastTime, drainDue)
}

func (m *Model) resumePlan(c *commRank, l *experiment.Plan, t uint64) {
	p := &plan{comm: c, handle: l.Handle, start: l.Start, captureOnly: l.Captured, gone: &gone{maps.Clone(l.Gone), m.threads.earlier(l.Group)}}
	join(&p.gone.operations, l.Ops)
	switch {
	case !l.Open:
		p.start, p.stop, p.stopped = t, t, true
	case l.Copied != "":
		ce := m.threads.newCE(l.Handle, c, l.Copied, l.Start, 0)
		ce.plan, m.threads.thread(l.Ring).ce = p, ce
	default:
		m.ops.plans[p.handle] = p
	}
	c.issue(p, t)
}

// resumable tells what another model would need to go on.
func (m *Model) resumable() (r experiment.Resume) {
	copying := make(map[*plan]int) // rings of threads that enqueue copies
	for ring, th := range m.threads.byRing {
		r.Threads = append(r.Threads, th.tid)
		if g := th.group; g != nil {
			r.Groups = append(r.Groups, experiment.Group{Ring: ring, Handle: g.handle, Number: g.number, Graph: g.graph})
		}
		if th.ce != nil && th.ce.plan != nil {
			copying[th.ce.plan] = ring
		}
	}
	for _, c := range m.ranks.live {
		first := len(r.Plans)
		for _, p := range c.queue {
			if l, ok := p.left(copying); ok {
				r.Plans = append(r.Plans, l)
				r.Plans = joinPlans(r.Plans, first)
			}
		}
		if c.final {
			continue
		}
		for _, call := range c.calls {
			r.Calls = append(r.Calls, experiment.Call{
				Comm: c.index, Handle: call.handle, Parent: call.parent, P2P: call.p2p, Function: call.name, Count: call.count, Datatype: call.datatype,
				Root: call.root, Stream: call.stream, Tag: call.tag, Start: call.start, Stop: call.stop, Group: told(call.groupNumber()), Open: !call.over(),
			})
		}
	}
	return r
}

// left describes what another model would need of a plan; false: nothing.
func (p *plan) left(copying map[*plan]int) (l experiment.Plan, ok bool) {
	if p.measurement != 0 || p.captureOnly && p.stopped {
		return l, false
	}
	l = experiment.Plan{Comm: p.comm.index, Group: told(p.newest()), Open: !p.stopped}
	if p.gone != nil {
		l.Gone = make(map[string][]byte, len(p.gone.operations))
		for key, marks := range p.gone.operations {
			l.Gone[key] = slices.Clone(marks)
		}
	}
	if len(p.ops) > 0 && !p.captureOnly {
		l.Ops = make(map[string][]byte)
		for _, op := range p.ops {
			key := op.sequenceKey()
			l.Ops[key] = binary.LittleEndian.AppendUint32(l.Ops[key], op.mark())
		}
	}
	if l.Open {
		l.Captured, l.Handle, l.Start = p.captureOnly, p.handle, p.start
		if ring, ok := copying[p]; ok {
			l.Ring, l.Copied = ring, p.copied()
		}
	}
	return l, true
}

// joinPlans makes one of the third to last plan and the one before the last, if all three, behind the first, have been enqueued: calls
// can only come in between the last two.
func joinPlans(all []experiment.Plan, first int) []experiment.Plan {
	n := len(all)
	if n-first < 3 || all[n-1].Open || all[n-2].Open || all[n-3].Open {
		return all
	}
	into, of := &all[n-3], &all[n-2]
	if len(into.Ops) > 0 && len(of.Gone) > 0 { // their order would not be known
		return all
	}
	join(&into.Ops, of.Ops)
	join(&into.Gone, of.Gone)
	into.Group = max(into.Group, of.Group)
	all[n-2] = all[n-1]
	return all[:n-1]
}

// join puts operations behind others, whose lists are written on: nobody else may have them.
func join(into *map[string][]byte, of map[string][]byte) {
	if *into == nil {
		*into = of
		return
	}
	for key, marks := range of {
		(*into)[key] = append((*into)[key], marks...)
	}
}

// copied is the function that a plan has copy engines carry out.
func (p *plan) copied() string {
	for _, op := range p.ops {
		return op.name
	}
	for key := range p.gone.operations {
		return experiment.FunctionOf(key)
	}
	return ""
}

// loseGone leaves the places of the operations of a plan that are gone.
func (c *commRank) loseGone(p *plan) {
	if p.gone == nil {
		return
	}
	for key, marks := range p.gone.operations {
		for ; len(marks) >= experiment.MarkSize; marks = marks[experiment.MarkSize:] {
			c.sequence(key).lose(binary.LittleEndian.Uint32(marks))
		}
	}
}

// newest is the latest group of calls that a plan's operations, and those that are gone, are of.
func (p *plan) newest() int64 {
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
