// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Beginnings and ends that concern several parts of the model: of communicator ranks (docs/nccl-profiler-api.md §5.3)
// and of threads.

// Comm announces communicator rank i, before any record that names it; up to API v3, where NCCL tells which
// communicator it is with the first operation, before the first Coll or P2p. A rank is announced once.
func (m *Model) Comm(i int, c experiment.Comm, gpu experiment.GPU) {
	m.changed = true
	r := m.ranks.announce(i, c, gpu)
	m.resumeComm(r)
	m.process.Comms[i] = r.Comm
}

// finalizeComm ends a communicator rank: NCCL delivers everything that belongs to it before it calls finalize
// (docs/nccl-profiler-api.md §5.3).
func (m *Model) finalizeComm(t uint64, c *commRank) {
	for _, p := range c.queue {
		m.ops.progress(p, t)
	}
	m.ranks.leave(c)
	m.ops.resolveCalls(c, noGroup)
	c.FinalTime, c.final = t, true
	m.ranks.kin.finalize(c)
	if n := c.net; n != nil {
		m.net.closeNet(n, t)
	}
	m.closeComm(c, t, drainEnded)
}

// closeComm writes what is left of a communicator rank that is gone, and ends its rows; later, if its plans still wait
// for what CUPTI tells of their kernels.
func (m *Model) closeComm(c *commRank, now uint64, mode drainMode) {
	m.ops.drain(c, now, mode)
	if len(c.queue) > 0 {
		return
	}
	if c.created {
		m.fail(c.loc.w.CommDestroy(c.loc.at(c.FinalTime), nil, otf2.CommRef(c.index)))
	}
	m.forget(c)
	c.closed = true
	m.ranks.snapshotComm(c)
	m.releaseRows(c)
}

// releaseRows gives the rows of a communicator rank that is gone to later ones. What still comes of it is not drawn.
func (m *Model) releaseRows(c *commRank) {
	rows := []**location{&c.loc, &c.enqueue}
	if n := c.net; n != nil {
		rows = append(rows, &n.send.loc, &n.recv.loc)
		c.net = nil
	}
	for _, l := range rows {
		m.over(l)
	}
	for _, l := range c.channels {
		m.over(&l)
	}
	c.channels, c.sequences = nil, nil
}

// forget drops what is kept of a communicator rank that is gone: calls captured in graphs (all of which are
// destroyed before finalize, docs/nccl-profiler-api.md §5.3), and events that were never ended.
func (m *Model) forget(c *commRank) {
	m.ops.forget(c)
	m.threads.forget(c)
	m.cuda.Forget(&c.kernels)
	c.captured = bounded.New[*call](0)
	c.calls, c.queue, c.followed, c.stamps = callList{}, nil, 0, gpuclock.Filter{Clock: c.stamps.Clock}
	if n := c.net; n != nil {
		n.loose = bounded.New[*proxyStep](maxSteps)
	}
}

// endThread closes what a thread has open: its ring has another owner from here on, or the data ends.
func (m *Model) endThread(th *thread, t uint64) {
	m.net.endCtrl(th, t, true)
	m.threads.end(th, t)
}
