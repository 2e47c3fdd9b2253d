// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// groupNetwork is the region group of network phases.
const groupNetwork = regions.GroupNetwork

// network is where the transfers of a communicator rank are drawn.
type network struct {
	send, recv *otf2.EventWriter // recv nil for foreign ones
	win        otf2.RmaWinRef
	transfers  uint64
}

// Network makes the two network locations of a communicator rank, and its window.
func (p *Process) Network(comm int) {
	c := &p.Shard.Comms[comm]
	label := c.Name
	if label == "" {
		label = fmt.Sprintf("comm %x", c.ID)
	}
	p.network[comm] = &network{
		send: p.Location(description.KindNetSend, otf2.LocationTypeCPUThread, label+regions.SendRow, comm),
		recv: p.Location(description.KindNetRecv, otf2.LocationTypeCPUThread, label+regions.RecvRow, comm),
		win:  p.window(description.Win{Comm: comm, Foreign: -1}),
	}
}

// Foreign adds a communicator rank of another process whose transfers this process sends, and returns
// its index.
func (p *Process) Foreign(f description.ForeignComm) int {
	i := len(p.Shard.Foreign)
	p.Shard.Foreign = append(p.Shard.Foreign, f)
	w := p.Location(description.KindNetSend, otf2.LocationTypeCPUThread, fmt.Sprintf("PXN %04x.%d send", f.Tag, f.Index),
		-1)
	p.Shard.Locations[len(p.Shard.Locations)-1].Foreign = i
	p.network[-1-i] = &network{send: w, win: p.window(description.Win{Comm: -1, Foreign: i})}
	return i
}

func (p *Process) window(w description.Win) otf2.RmaWinRef {
	p.Shard.Wins = append(p.Shard.Wins, w)
	return otf2.RmaWinRef(len(p.Shard.Wins) - 1)
}

// Put draws a transfer of a communicator rank to a peer; comm −1 − i stands for foreign rank i.
func (p *Process) Put(comm, peer int, begin, end, bytes uint64) {
	n := p.network[comm]
	region := p.Region(regions.NameSendNetwork, groupNetwork, otf2.RegionRoleDataTransfer)
	w := &p.Shard.Wins[n.win]
	w.Ranks = max(w.Ranks, peer+1)
	p.check(n.send.Enter(otf2.Timestamp(begin), nil, region))
	p.check(n.send.RmaPut(otf2.Timestamp(begin), nil, n.win, uint32(peer), bytes, n.transfers))
	p.check(n.send.RmaOpCompleteNonBlocking(otf2.Timestamp(end), nil, n.win, n.transfers))
	p.check(n.send.Leave(otf2.Timestamp(end), nil, region))
	n.transfers++
}

// Arrival draws the receiving end of a transfer, which has no record of its own.
func (p *Process) Arrival(comm int, begin, end uint64) {
	region := p.Region(regions.NameRecvNetwork, groupNetwork, otf2.RegionRoleDataTransfer)
	p.check(p.network[comm].recv.Enter(otf2.Timestamp(begin), nil, region))
	p.check(p.network[comm].recv.Leave(otf2.Timestamp(end), nil, region))
}
