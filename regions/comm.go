// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Communicator ranks of the process. Two of them with one id are different ranks of one communicator
// (docs/nccl-profiler-api.md §5.1, §5.2).

// commRank is one communicator rank of this process, from its init to its finalize.
type commRank struct {
	description.Comm
	index int    // in the shard's list; the local communicator id
	label string // short name, for rows of the timeline

	life     rankLife
	origin   rankOrigin
	rows     rankRows
	net      *netRank           // nil before the first event of it
	calls    callList           // calls outside captures without operations so far, in the application's order
	captured bounded.Map[*call] // kept for the replays of their graphs
	queue    planQueue
	reports  rankReports
	gpu      rankGPU
	ordinals ordinals

	outstanding outstanding
	begun       uint64                // when the latest operation or call began
	overtaken   []description.Pending // operations written before their end, see rememberOvertaken
}

// rankReports is what a communicator rank reported so far, which shows what else is to be expected of it.
type rankReports struct {
	kernelsSeen    bool // there has been a KernelCh event
	kernelTimeouts int  // plans in a row closed by the limit without any KernelCh
	quietPlans     int  // plans in a row without network traffic
	silentGraphs   bool // marked: graphs whose replays are not reported
}

// maxLabel keeps names of rows within 24 characters, "NCCL enqueue " or " rank 9999" included.
const maxLabel = 13

// maxCaptured bounds the captured calls that a communicator rank keeps: NCCL does not report when a graph is destroyed.
const maxCaptured = 65536

// ranks holds the communicator ranks of the process, and the GPUs that they run on.
type ranks struct {
	*board
	all      []*commRank           // by index
	live     []*commRank           // ranks that are not closed, in order
	left     []description.Pending // incomplete operations of finalized communicator ranks
	clocks   []*gpuclock.Clock     // by index into process.GPUs
	reported []description.GPU     // what CUDA reported of the GPUs, by their indices
	family   family                // relations of all announced ranks
	bytes    int                   // memory of all queues
	masked   bool                  // something else than the plugin has changed the activation mask
}

// announceRank adds the description of a communicator rank.
func (rs *ranks) announceRank(i int, c description.Comm, gpu description.GPU) *commRank {
	r := rs.rankOf(uint32(i))
	r.Comm, r.life.announced = c, true
	switch {
	case c.Name != "":
		r.label = c.Name
	case c.ID != 0:
		r.label = fmt.Sprintf("comm %08x", uint32(c.ID>>32))
	}
	if len(r.label) > maxLabel {
		r.label = r.label[:maxLabel]
	}
	if c.ID != 0 {
		rs.family.addRank(r)
	}
	r.GPU = rs.gpuOf(r, gpu)
	rs.family.recordPlace(r)
	r.gpu.stamps.Clock = rs.clocks[r.GPU]
	r.gpu.kernels.GPU, r.gpu.kernels.Known = r.GPU, true
	r.Location = -1
	return r
}

// rankOf returns the communicator rank that a record names, nil if it is not of this process. Up to API v3 it may not
// have been announced yet; nothing of it is written before.
func (rs *ranks) rankOf(aux uint32) *commRank {
	if aux >= shm.CommMax {
		return nil
	}
	for len(rs.all) <= int(aux) {
		rs.all = append(rs.all, nil)
		rs.process.Comms = append(rs.process.Comms, description.Comm{Location: -1})
	}
	c := rs.all[aux]
	if c == nil {
		c = &commRank{
			Comm: description.Comm{Location: -1}, index: int(aux), label: fmt.Sprintf("comm #%d", aux),
			gpu:      rankGPU{stamps: gpuclock.Filter{Clock: gpuclock.New(false)}},
			captured: bounded.New[*call](maxCaptured), queue: planQueue{allBytes: &rs.bytes},
			ordinals: ordinals{sequences: make(map[string]*numbering), lasting: rs.opts.Lasting,
				order: numbering{lasting: rs.opts.Lasting}},
		}
		rs.all[aux] = c
		at, _ := slices.BinarySearchFunc(rs.live, c.index,
			func(o *commRank, i int) int { return cmp.Compare(o.index, i) })
		rs.live = slices.Insert(rs.live, at, c)
	}
	return c
}

func (rs *ranks) initComm(t uint64, c *commRank) {
	if c.life.final {
		rs.countOddity(oddAfterFinalize)
		return
	}
	c.InitTime = t
	rs.createComm(t, c)
}

// createComm writes CommCreate before any other event of a communicator rank: at its init, or at its first event if an
// earlier collector took the init record and died.
func (b *board) createComm(t uint64, c *commRank) {
	if c.NRanks < 2 || c.life.created {
		return
	}
	if loc := b.rankLocation(c); loc != nil {
		c.life.created = true
		b.keepError(loc.w.CommCreate(loc.raiseTime(t), nil, otf2.CommRef(c.index)))
	}
}

// endRow ends a row of a communicator rank.
func (b *board) endRow(l **location) {
	if *l == nil {
		return
	}
	if b.opts.Lasting {
		b.sink.Finished((*l).Number)
	} else {
		b.releaseRow(*l)
	}
	*l = b.gone
}

// removeClosed frees the state of closed communicator ranks; their list entries stay.
func (rs *ranks) removeClosed() {
	rs.live = slices.DeleteFunc(rs.live, func(c *commRank) bool {
		if c.life.closed {
			rs.all[c.index] = closedRank
			rs.family.leavePlace(c)
		}
		return c.life.closed
	})
}

// closedRank stands for all closed communicator ranks; their events are not drawn.
var closedRank = &commRank{index: -1, life: rankLife{final: true, closed: true}}

// afterFinalize reports whether the communicator rank of an event is finalized, so that the event cannot be drawn.
// Proxy threads that several communicators share keep reporting under the first one's name (docs/nccl-profiler-api.md
// §5.3). A group call belongs to its thread, not to the communicator that it names.
func (rs *ranks) afterFinalize(r *shm.Record) bool {
	if int64(r.Aux) >= int64(len(rs.all)) {
		return false
	}
	c := rs.all[r.Aux]
	if c == nil || !c.life.final {
		return false
	}
	rs.countOddity(oddAfterFinalize)
	switch r.Type {
	case shm.EventCollApi, shm.EventP2pApi, shm.EventColl, shm.EventP2p, shm.EventCeColl:
		rs.loseUndrawn(r.Type)
	}
	return r.Type != shm.EventGroupApi
}
