// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"maps"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
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
		lost[loss.Undrawn] = undrawn
		p.Counts.Lost = lost
	}
	p.Counts.Timing = maps.Clone(m.sources)
	if m.early > 0 {
		p.Counts.Ends = map[string]uint64{description.EarlyEnds: m.early}
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
		s.Network = &description.NetworkRows{Send: n.send.loc.Number, Recv: n.recv.loc.Number}
	}
	s.Sequences = make(map[string]sequence.Sequence, len(c.ordinals.sequences))
	for k, q := range c.ordinals.sequences {
		s.Sequences[k] = q.Sequence
	}
	if c.ordinals.order.Count > 0 {
		s.Order = new(c.ordinals.order.Sequence)
	}
	s.Held, s.Begun = c.heldBySequence(), c.begun
	rs.process.Comms[c.index] = s
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
