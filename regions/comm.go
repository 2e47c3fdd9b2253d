// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// commRank is one communicator rank of this process, from its init to its finalize.
type commRank struct {
	experiment.Comm
	index     int    // in the shard's list; the local communicator id
	label     string // short name, for rows of the timeline
	announced bool   // by Comm
	lasting   bool   // Options.Lasting
	created   bool   // CommCreate has been written
	ending    bool   // nothing more will come: what is left is being written
	final     bool   // NCCL has told all
	closed    bool   // and all of it is written

	loc, enqueue *location
	channels     map[uint8]*location

	off      bool               // recording is, as the row last said or is about to say
	calls    []*call            // not captured, in the order of the application; no operation seen yet
	captured bounded.Map[*call] // kept for the replays of their graphs
	queue    []*plan            // in issue order, not yet written
	headAt   uint64             // when the present head of the queue became it
	issued   uint64             // plans so far
	enqueued uint64             // when the last of them had been enqueued
	stamps   gpuclock.Filter    // on the clock of its GPU

	kernelsSeen    bool // there has been a KernelCh event
	kernelTimeouts int  // plans in a row closed by the limit without any KernelCh
	quietPlans     int  // plans in a row without network traffic
	silentGraphs   bool // marked: graphs whose replays are not reported

	kernels     cuda.Rank // what CUPTI tells of
	differing   bool      // marked: NCCL and CUPTI do not agree when kernels ran
	sequences   map[string]*sequence
	outstanding outstanding
	begun       uint64               // when the latest operation or call began
	overtaken   []experiment.Pending // operations written before their end, see overtake
}

// maxLabel keeps names of rows within 24 characters, "NCCL enqueue " or " rank 9999" included.
const maxLabel = 13

// maxCaptured bounds the captured calls that a communicator rank keeps: NCCL does not tell when a graph is gone.
const maxCaptured = 65536

// Comm announces communicator rank i, before any record that names it; up to API v3, where NCCL tells which
// communicator it is with the first operation, before the first Coll or P2p. A rank is announced once.
func (m *Model) Comm(i int, c experiment.Comm, gpu experiment.GPU) {
	r := m.comm(uint32(i))
	r.Comm, r.announced = c, true
	switch {
	case c.Name != "":
		r.label = c.Name
	case c.ID != 0:
		r.label = fmt.Sprintf("comm %08x", uint32(c.ID>>32))
	}
	if len(r.label) > maxLabel {
		r.label = r.label[:maxLabel]
	}
	r.GPU = m.gpu(r, gpu)
	r.stamps.Clock = m.clocks[r.GPU]
	r.kernels.GPU, r.kernels.Known = r.GPU, true
	r.Location = -1
	m.resumeComm(r)
	m.process.Comms[i] = r.Comm
}

// gpu finds or adds the device that a communicator rank runs on. Where CUDA told nothing, ranks of
// one communicator are on different devices, and the i-th rank of each communicator on the same one.
func (m *Model) gpu(c *commRank, gpu experiment.GPU) int {
	unknown := 0
	if gpu.UUID == "" && gpu.Device < 0 && c.ID != 0 {
		for _, o := range m.live {
			if o != c && o.announced && o.ID == c.ID && !o.final {
				unknown++
			}
		}
	}
	for i, g := range m.told {
		if g == (experiment.GPU{Device: gpu.Device}) && gpu.Device >= 0 { // known by its kernels only so far
			known := &m.process.GPUs[i]
			m.told[i], known.UUID, known.PCI = gpu, cmp.Or(gpu.UUID, known.UUID), cmp.Or(gpu.PCI, known.PCI)
			return i
		}
		if g != gpu {
			continue
		}
		if unknown == 0 {
			return i
		}
		unknown--
	}
	m.told = append(m.told, gpu)
	m.process.GPUs = append(m.process.GPUs, gpu)
	m.clocks = append(m.clocks, gpuclock.New(m.opts.Paradigm == otf2.ParadigmHIP))
	return len(m.process.GPUs) - 1
}

// deviceNumber finds or adds the device of a CUDA ordinal.
func (m *Model) deviceNumber(device int) int {
	for i, g := range m.told {
		if g.Device == device {
			return i
		}
	}
	m.told = append(m.told, experiment.GPU{Device: device})
	m.process.GPUs = append(m.process.GPUs, experiment.GPU{Device: device})
	m.clocks = append(m.clocks, gpuclock.New(m.opts.Paradigm == otf2.ParadigmHIP))
	return len(m.process.GPUs) - 1
}

// comm returns the communicator rank a record names, nil if it is none of this process's. Up to API v3 it
// may not have been announced yet; nothing of it is written before.
func (m *Model) comm(aux uint32) *commRank {
	if aux >= shm.CommMax {
		return nil
	}
	for len(m.comms) <= int(aux) {
		m.comms = append(m.comms, nil)
		m.process.Comms = append(m.process.Comms, experiment.Comm{Location: -1})
	}
	c := m.comms[aux]
	if c == nil {
		c = &commRank{
			Comm: experiment.Comm{Location: -1}, index: int(aux), label: fmt.Sprintf("comm #%d", aux), stamps: gpuclock.Filter{Clock: gpuclock.New(false)},
			captured: bounded.New[*call](maxCaptured), sequences: make(map[string]*sequence), lasting: m.opts.Lasting,
		}
		m.comms[aux] = c
		at, _ := slices.BinarySearchFunc(m.live, c.index, func(o *commRank, i int) int { return cmp.Compare(o.index, i) })
		m.live = slices.Insert(m.live, at, c)
	}
	return c
}

func (m *Model) initComm(t uint64, c *commRank) {
	if c.final {
		m.oddity(OddAfterFinalize)
		return
	}
	c.InitTime = t
	m.createComm(t, c)
}

// createComm writes that a communicator rank is there, before anything is: at its init, or, where another collector had
// taken that record and died, when something of it is first written.
func (m *Model) createComm(t uint64, c *commRank) {
	if c.NRanks < 2 || c.created {
		return
	}
	if loc := m.rankLocation(c); loc != nil {
		c.created = true
		m.fail(loc.w.CommCreate(loc.at(t), nil, otf2.CommRef(c.index)))
	}
}

// finalizeComm ends a communicator rank: NCCL delivers everything that belongs to it before it calls finalize
// (notes on the API, §5.3).
func (m *Model) finalizeComm(t uint64, c *commRank) {
	for _, p := range c.queue {
		m.progress(p, t)
	}
	m.leave(c)
	m.resolveCalls(c, noGroup)
	c.FinalTime, c.final = t, true
	if n := m.netAt(c); n != nil {
		m.closeNet(n, t)
	}
	m.closeComm(c, t, drainEnded)
}

// closeComm writes what is left of a communicator rank that is gone, and ends its rows; later, if its plans still wait
// for what CUPTI tells of their kernels.
func (m *Model) closeComm(c *commRank, now uint64, mode drainMode) {
	m.drain(c, now, mode)
	if len(c.queue) > 0 {
		return
	}
	if c.created {
		m.fail(c.loc.w.CommDestroy(c.loc.at(c.FinalTime), nil, otf2.CommRef(c.index)))
	}
	m.forget(c)
	c.closed = true
	m.snapshotComm(c)
	m.releaseRows(c)
}

// releaseRows gives the rows of a communicator rank that is gone to later ones. What still comes of it is not drawn.
func (m *Model) releaseRows(c *commRank) {
	rows := []**location{&c.loc, &c.enqueue}
	if n := m.netAt(c); n != nil {
		rows = append(rows, &n.send.loc, &n.recv.loc)
		m.nets[c.index] = nil
	}
	for _, l := range rows {
		m.over(l)
	}
	for _, l := range c.channels {
		m.over(&l)
	}
	c.channels, c.sequences = nil, nil
}

// over ends a row of a communicator rank.
func (m *Model) over(l **location) {
	if *l == nil {
		return
	}
	if m.opts.Lasting {
		m.sink.Finished((*l).Number)
	} else {
		m.release(*l)
	}
	*l = m.gone
}

// forget drops what is kept of a communicator rank that is gone: calls captured in graphs (all of which are
// destroyed before finalize, notes on the API, §5.3), and events that were never ended.
func (m *Model) forget(c *commRank) {
	maps.DeleteFunc(m.plans, func(_ uint64, p *plan) bool { return p.comm == c })
	maps.DeleteFunc(m.calls, func(_ uint64, call *call) bool { return call.comm == c })
	m.cuda.Forget(&c.kernels)
	m.launches.RemoveFunc(func(_ uint64, l *launch) bool { return l.comm == c })
	m.kernels.RemoveFunc(func(_ uint64, k *kernel) bool { return k.comm == c })
	m.phases.RemoveFunc(func(_ uint64, k *kernel) bool { return k.comm == c })
	c.captured = bounded.New[*call](0)
	c.calls, c.queue, c.stamps = nil, nil, gpuclock.Filter{Clock: c.stamps.Clock}
	if n := m.netAt(c); n != nil {
		n.loose = bounded.New[*proxyStep](maxSteps)
	}
}
