// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// The description of the process at a moment, for shard.json, from which `report --hang` works.

// Snapshot updates the description of the process: communicators, locations, counts and pending operations. The sizes
// of event files, and their numbers of events, are those of the last flush.
func (m *Model) Snapshot() {
	p := m.process
	p.FirstTime, p.LastTime = m.firstTime(), m.last
	if m.changed {
		for _, c := range m.ranks.live {
			m.ranks.snapshotComm(c)
		}
		p.Pending, p.Resume = m.ranks.listPending(), m.resumeState()
		m.changed = false
	}
	p.Locations = p.Locations[:0]
	for _, l := range m.locations {
		s := l.Location
		s.Events, s.Bytes = l.w.Flushed(), l.w.Size()
		p.Locations = append(p.Locations, s)
		if l.w.Events() > 0 {
			p.LastTime = max(p.LastTime, uint64(l.w.LastTime()))
		}
	}
	p.Counts.Starts = shm.ByName(&m.starts)
	p.Counts.Stops = shm.ByName(&m.stops)
	p.Counts.States = make(map[string]uint64)
	for i, n := range m.states {
		if n > 0 {
			p.Counts.States[shm.StateName(uint32(i))] = n
		}
	}
	p.Counts.Oddities = nonZero(m.oddities[:], oddityNames[:])
	if undrawn := shm.ByName(&m.undrawn); len(undrawn) > 0 {
		// counts of other sources stay; a description that is being written keeps its own map
		lost := maps.Clone(p.Counts.Lost)
		if lost == nil {
			lost = make(map[string]map[string]uint64)
		}
		lost[experiment.LostUndrawn] = undrawn
		p.Counts.Lost = lost
	}
	p.Counts.Timing = maps.Clone(m.sources)
	if m.early > 0 {
		p.Counts.Ends = map[string]uint64{experiment.EarlyEnds: m.early}
	}
	p.Counts.CUPTI = m.cuda.Counts()
}

// snapshotComm describes a communicator rank; for the last time when it is closed.
func (rs *ranks) snapshotComm(c *commRank) {
	if c.life.closed && c.ordinals.sequences == nil {
		return
	}
	s := c.Comm
	s.Location = -1
	if c.rows.rank != nil {
		s.Location = int(c.rows.rank.Number)
	}
	if n := c.net; n != nil && n.send.loc != nil && n.recv.loc != nil &&
		(n.send.loc.Comm != c.index || n.recv.loc.Comm != c.index) {
		s.Network = &experiment.NetworkRows{Send: n.send.loc.Number, Recv: n.recv.loc.Number}
	}
	s.Sequences = make(map[string]experiment.Sequence, len(c.ordinals.sequences))
	for k, q := range c.ordinals.sequences {
		s.Sequences[k] = q.Sequence
	}
	s.Held, s.Begun = c.heldBySequence(), c.begun
	rs.process.Comms[c.index] = s
}

// listPending lists what has begun and not ended, communicator by communicator in issue order.
func (rs *ranks) listPending() []experiment.Pending {
	out := slices.Clone(rs.left)
	for _, c := range rs.live {
		if !c.life.final {
			out = c.underWay(append(out, c.overtaken...))
		}
	}
	slices.SortStableFunc(out, func(a, b experiment.Pending) int { return cmp.Compare(a.Comm, b.Comm) })
	return out
}

// ordinalCounter returns a function for the ordinals of operations that are not written yet, to be called in issue
// order.
func (c *commRank) ordinalCounter() func(key string) uint64 {
	next := make(map[string]uint64)
	return func(key string) uint64 {
		n, known := next[key]
		if s := c.ordinals.sequences[key]; s != nil && !known {
			n = s.Count
		}
		next[key] = n + 1
		return n
	}
}

// underWay adds what a communicator rank has begun and not ended, in issue order.
func (c *commRank) underWay(out []experiment.Pending) []experiment.Pending {
	number := c.ordinalCounter()
	for _, p := range c.queue.plans {
		if p.captureOnly {
			continue
		}
		if p.gone != nil {
			for key, marks := range p.gone.operations {
				for range len(marks) / experiment.MarkSize {
					number(key)
				}
			}
		}
		for _, op := range p.ops {
			ordinal := number(op.sequenceKey())
			if p.completion.at == 0 {
				out = append(out, op.describePending(ordinal))
			}
		}
	}
	for call := range c.calls.allCalls() {
		// A message's peer is unknown before its task begins, so it is numbered among all calls of its function.
		state := "called"
		if !call.hasReturned() {
			state = "calling"
		}
		out = append(out, experiment.Pending{
			Comm: c.index, Function: call.name, Ordinal: number(call.name), Since: call.start, State: state,
			Count: call.count, Datatype: call.datatype, Root: int(call.root), Stream: call.stream,
		})
	}
	return out
}

func (op *operation) describePending(ordinal uint64) experiment.Pending {
	p := op.plan
	since, state := p.enqueue.start, "enqueued"
	if op.call != nil && !op.call.graph {
		since = min(since, op.call.start)
	}
	if p.gpu.open > 0 || p.net.open > 0 {
		state = "running"
	}
	stream := op.stream
	if op.call != nil {
		stream = op.call.stream
	}
	count, datatype := op.requestedElements()
	return experiment.Pending{
		Comm: p.comm.index, Function: op.sequenceKey(), Ordinal: ordinal, Since: since, State: state,
		LastNet: op.net.lastPhase,
		Count:   count, Datatype: datatype, Root: int(op.root), Stream: stream, Transfers: op.openTransfers(),
	}
}

// rememberOvertaken remembers a plan that is written although its end was not seen, until a later one on the
// communicator rank has ended. If kernels are not reported at all, that is no evidence.
func (c *commRank) rememberOvertaken(p *plan) {
	if !c.reports.kernelsSeen || p.captureOnly || len(c.overtaken) >= maxOvertaken {
		return
	}
	number := c.ordinalCounter()
	for _, op := range p.ops {
		c.overtaken = append(c.overtaken, op.describePending(number(op.sequenceKey())))
	}
}

// maxOvertaken bounds the operations remembered by overtake; the oldest matter.
const maxOvertaken = 64

// maxLeft bounds the incomplete operations of finalized communicator ranks; the oldest matter.
const maxLeft = 4096

// keepIncomplete remembers what is incomplete when a communicator rank is finalized, as after ncclCommAbort.
func (rs *ranks) keepIncomplete(c *commRank) {
	left := c.underWay(c.overtaken)
	for i := range left {
		left[i].Left = true
	}
	rs.left = append(rs.left, left[:min(len(left), maxOvertaken, maxLeft-len(rs.left))]...)
	c.overtaken = nil
}

// heldBySequence counts the operations of a communicator rank that are complete and not written yet, by sequence.
func (c *commRank) heldBySequence() map[string]uint64 {
	var out map[string]uint64
	for _, p := range c.queue.plans {
		if p.completion.at == 0 || p.captureOnly {
			continue
		}
		for _, op := range p.ops {
			if out == nil {
				out = make(map[string]uint64)
			}
			out[op.sequenceKey()]++
		}
	}
	return out
}

// SeesEnds reports whether a process that records these event types (bits of shm.EventType) sees operations end, not
// only calls.
func SeesEnds(mask uint32) bool { return mask&(1<<shm.EventKernelCh|1<<shm.EventProxyOp) != 0 }
