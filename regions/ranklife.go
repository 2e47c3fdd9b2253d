// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Begin and end of communicator ranks (docs/nccl-profiler-api.md §5.3) and of threads, which concern several parts of
// the model.

// rankLife is how far a communicator rank has come.
type rankLife struct {
	announced bool // by Comm
	created   bool // CommCreate has been written
	off       bool // recording is off, by the last event written or queued
	ending    bool // no more events will come: the rest is being written
	final     bool // NCCL has reported all
	closed    bool // and all of it is written
}

// Comm announces communicator rank i, before any record that names it; up to API v3, where NCCL reports the
// communicator with its first operation, before the first Coll or P2p. Each rank is announced once.
func (m *Model) Comm(i int, c description.Comm, gpu description.GPU) {
	m.changed = true
	r := m.ranks.announceRank(i, c, gpu)
	m.resumeComm(r)
	m.process.Comms[i] = r.Comm
}

// finalizeComm ends a communicator rank: NCCL delivers everything that belongs to it before it calls finalize
// (docs/nccl-profiler-api.md §5.3).
func (m *Model) finalizeComm(t uint64, c *commRank) {
	for _, p := range c.queue.plans {
		m.ops.noteCompletion(p, t)
	}
	m.ranks.keepIncomplete(c)
	m.ops.resolveCalls(c, noGroup)
	c.FinalTime, c.life.final = t, true
	m.ranks.family.removeRank(c)
	if n := c.net; n != nil {
		m.net.closeNet(n, t)
	}
	m.closeComm(c, t, drainEnded)
}

// closeComm writes the rest of a communicator rank that is gone, and ends its rows; later if its plans still wait for
// CUPTI's records of their kernels.
func (m *Model) closeComm(c *commRank, now uint64, mode drainMode) {
	m.ops.writeQueue(c, now, mode)
	if len(c.queue.plans) > 0 {
		return
	}
	if c.life.created {
		m.keepError(c.rows.rank.w.CommDestroy(c.rows.rank.raiseTime(c.FinalTime), nil, otf2.CommRef(c.index)))
	}
	m.dropRank(c)
	c.life.closed = true
	m.ranks.snapshotComm(c)
	m.releaseRows(c)
}

// releaseRows frees the rows of a communicator rank that is gone for later ranks. Later events of it are not drawn.
func (m *Model) releaseRows(c *commRank) {
	rows := []**location{&c.rows.rank, &c.rows.enqueue}
	if n := c.net; n != nil {
		rows = append(rows, &n.send.loc, &n.recv.loc)
		c.net = nil
	}
	for _, l := range rows {
		m.endRow(l)
	}
	for _, l := range c.rows.channels {
		m.endRow(&l)
	}
	c.rows.channels, c.ordinals.sequences = nil, nil
}

// dropRank drops the state of a communicator rank that is gone: calls captured in graphs (all of which are destroyed
// before finalize, docs/nccl-profiler-api.md §5.3), and events that never ended.
func (m *Model) dropRank(c *commRank) {
	m.ops.dropRankEvents(c)
	m.threads.dropLaunches(c)
	m.cuda.DropLaunches(&c.gpu.kernels)
	c.captured = bounded.New[*call](0)
	c.calls, c.queue.plans, c.queue.followed, c.gpu.stamps = callList{}, nil, 0,
		gpuclock.Filter{Clock: c.gpu.stamps.Clock}
	if n := c.net; n != nil {
		n.loose = bounded.New[*proxyStep](maxSteps)
	}
}

// endThread closes everything that a thread has open: its ring gets another owner, or the data ends.
func (m *Model) endThread(th *thread, t uint64) {
	m.net.endCtrl(th, t, true)
	m.threads.endThread(th, t)
}
