// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"

	"ncclotf2/otf2"
	"ncclotf2/shard"
)

// commRank is one communicator rank of this process, from its init to its finalize.
type commRank struct {
	shard.Comm
	index   int    // in the shard's list; the local communicator id
	label   string // short name, for rows of the timeline
	gpu     *gpuClock
	created bool // CommCreate has been written
	final   bool

	loc, enqueue *location

	calls   []*call          // not captured, in the order of the application; no operation seen yet
	queue   []*plan          // in issue order, not yet written
	headAt  uint64           // when the present head of the queue became it
	lastEnd uint64           // end of the last interval that a GPU clock gave
	stamps  map[uint8]uint64 // channel → greatest end stamp of the plans written so far

	kernelsSeen    bool // there has been a KernelCh event
	kernelTimeouts int  // plans in a row closed by the limit without any KernelCh

	implausible int  // plans whose GPU times cannot be true
	parted      bool // NCCL's host and device counters have parted: no stamp is trusted any more

	sequences map[string]*sequence
	request   uint64 // last request id of this location
}

// maxLabel keeps names of rows within 24 characters, "NCCL enqueue " or " rank 9999" included.
const maxLabel = 13

// Comm announces communicator rank i, before any record that names it. A rank is announced once.
func (m *Model) Comm(i int, c shard.Comm, gpu shard.GPU) {
	for len(m.comms) <= i {
		m.comms = append(m.comms, nil)
		m.process.Comms = append(m.process.Comms, shard.Comm{Location: -1})
	}
	r := &commRank{Comm: c, index: i, label: c.Name, sequences: make(map[string]*sequence), stamps: make(map[uint8]uint64)}
	if r.label == "" {
		r.label = fmt.Sprintf("comm %08x", uint32(c.ID>>32))
	}
	if len(r.label) > maxLabel {
		r.label = r.label[:maxLabel]
	}
	r.GPU = m.gpu(c, gpu)
	r.gpu = m.clocks[r.GPU]
	r.Location = -1
	m.comms[i] = r
	m.process.Comms[i] = r.Comm
}

// gpu finds or adds the device that a communicator rank runs on. Where CUDA told nothing, ranks of
// one communicator are on different devices, and the i-th rank of each communicator on the same one.
func (m *Model) gpu(c shard.Comm, gpu shard.GPU) int {
	unknown := 0
	if gpu.UUID == "" && gpu.Device < 0 {
		for _, o := range m.comms {
			if o != nil && o.ID == c.ID && !o.final {
				unknown++
			}
		}
	}
	for i, g := range m.process.GPUs {
		if g != gpu {
			continue
		}
		if unknown == 0 {
			return i
		}
		unknown--
	}
	m.process.GPUs = append(m.process.GPUs, gpu)
	m.clocks = append(m.clocks, &gpuClock{})
	return len(m.process.GPUs) - 1
}

// comm returns the communicator rank a record names, nil if it is none of this process's.
func (m *Model) comm(aux uint32) *commRank {
	if int64(aux) >= int64(len(m.comms)) {
		return nil
	}
	return m.comms[aux]
}

func (m *Model) initComm(t uint64, c *commRank) {
	c.InitTime = t
	if c.NRanks < 2 || c.created {
		return
	}
	if loc := m.rankLocation(c); loc != nil {
		c.created = true
		m.fail(loc.w.CommCreate(loc.at(t), nil, otf2.CommRef(c.index)))
	}
}

// finalizeComm writes what is left of a communicator rank: NCCL delivers everything that belongs to
// it before it calls finalize (notes on the API, §5.3).
func (m *Model) finalizeComm(t uint64, c *commRank) {
	m.resolveCalls(c, noGroup)
	m.drain(c, t, drainAll)
	c.FinalTime, c.final = t, true
	if c.created {
		m.fail(c.loc.w.CommDestroy(c.loc.at(t), nil, otf2.CommRef(c.index)))
	}
}
