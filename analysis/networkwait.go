// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// netPhase is what the oldest transfer of a network row waits for.
type netPhase uint8

const (
	netSendGPU netPhase = iota
	netSendPeer
	netSend
	netRecv
	netRecvFlush
	netRecvGPU
	numNetPhases
)

// netPhaseNames are the regions of the group regions.GroupNetwork that package regions draws.
var netPhaseNames = [numNetPhases]string{
	regions.NameSendGPUWait, regions.NameSendPeerWait, regions.NameSendNetwork, regions.NameRecvNetwork, regions.NameRecvFlush, regions.NameRecvGPUWait,
}

// NetworkWait is what the transfers of one rank in one communicator waited for: the phases of the oldest
// transfer under way, so that their sums are times of the row, not of each transfer.
type NetworkWait struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`      // of the network
	CommRank     int          `json:"comm_rank"` // in the communicator
	Rank         string       `json:"rank"`      // the process whose row it is
	Host         string       `json:"host"`
	SendGPU      uint64       `json:"send_gpu_wait_ns"`  // until the GPU had the data ready
	SendPeer     uint64       `json:"send_peer_wait_ns"` // until the receiver was ready
	SendNetwork  uint64       `json:"send_network_ns"`   // until the network had sent it
	RecvNetwork  uint64       `json:"recv_network_ns"`   // until the data had arrived
	RecvFlush    uint64       `json:"recv_flush_ns"`     // until it was visible to the GPU
	RecvGPU      uint64       `json:"recv_gpu_wait_ns"`  // until the GPU had taken it
	Phases       uint64       `json:"phases"`            // how many
	Unfinished   uint64       `json:"unfinished"`        // open when the data ended; they are in no time
	// AwaitedBy is how long other ranks' transfers waited until this one was ready to receive.
	AwaitedBy uint64 `json:"awaited_by_ns"`
}

func (n *NetworkWait) phase(p netPhase) *uint64 {
	return [numNetPhases]*uint64{&n.SendGPU, &n.SendPeer, &n.SendNetwork, &n.RecvNetwork, &n.RecvFlush, &n.RecvGPU}[p]
}

// networkPhases sums up the phases of network rows. A row is in one lane.
type networkPhases struct {
	defs    *otf2.Definitions
	regions map[otf2.RegionRef]netPhase
	peer    attributeID
	cutOff  attributeID
	rows    map[otf2.LocationRef]*networkRow
}

type networkRow struct {
	times      [numNetPhases]uint64
	phases     uint64
	unfinished uint64
	peerWaits  map[int]uint64 // by the rank that was waited for
	open       bool
	region     otf2.RegionRef
	begin      otf2.Timestamp
	peer       int
}

func newNetworkPhases(defs *otf2.Definitions) *networkPhases {
	n := &networkPhases{
		defs: defs, regions: make(map[otf2.RegionRef]netPhase), rows: make(map[otf2.LocationRef]*networkRow),
		peer: findAttribute(defs, regions.AttrPeer), cutOff: findAttribute(defs, regions.AttrUnfinished),
	}
	for ref := range regionsOf(defs, regions.GroupNetwork, otf2.ParadigmCUDA, otf2.ParadigmHIP) {
		if i := slices.Index(netPhaseNames[:], defs.String(defs.Region(ref).Name)); i >= 0 {
			n.regions[ref] = netPhase(i)
		}
	}
	return n
}

func (n *networkPhases) event(ev *otf2.Event) {
	if len(n.regions) == 0 || ev.Kind != otf2.EventEnter && ev.Kind != otf2.EventLeave {
		return
	}
	region := otf2.RegionRef(ev.Args[0])
	phase, ok := n.regions[region]
	if !ok {
		return
	}
	r := n.rows[ev.Location]
	if r == nil {
		r = &networkRow{peerWaits: make(map[int]uint64)}
		n.rows[ev.Location] = r
	}
	if ev.Kind == otf2.EventEnter {
		r.unfinished += boolCount(r.open)
		r.open, r.region, r.begin, r.peer = true, region, ev.Time, -1
		if p, ok := n.peer.of(ev); ok {
			r.peer = int(p)
		}
		return
	}
	if !r.open || r.region != region || ev.Time < r.begin {
		return
	}
	r.open = false
	if cut, _ := n.cutOff.of(ev); cut != 0 {
		r.unfinished++
		return
	}
	took := uint64(ev.Time - r.begin)
	r.phases++
	r.times[phase] += took
	if phase == netSendPeer && r.peer >= 0 {
		r.peerWaits[r.peer] += took
	}
}

// absorb takes over the rows of another lane.
func (n *networkPhases) absorb(o *networkPhases) {
	for l, r := range o.rows {
		r.unfinished += boolCount(r.open)
		r.open = false
		n.rows[l] = r
	}
}

// result lists what is known of each rank; unknown counts the rows of which nobody knows whose they are.
func (n *networkPhases) result() (all []NetworkWait, unknown uint64) {
	all = []NetworkWait{}
	if len(n.rows) == 0 {
		return all, 0
	}
	ranks := facts.NetworkRanks(n.defs)
	home := make(map[otf2.LocationRef]*facts.Communicator)
	for _, c := range facts.AllCommunicators(n.defs) {
		if c.Network {
			for l := range c.Ranks {
				if _, several := home[l]; several { // one after the other: which of them a phase was of is not told
					home[l] = nil
				} else {
					home[l] = c
				}
			}
		}
	}
	type key struct {
		comm otf2.CommRef
		rank int
		by   otf2.LocationGroupRef
	}
	index := make(map[key]int)
	awaited := make(map[key]uint64)
	for l, r := range n.rows {
		c, rank := home[l], -1
		if v, ok := ranks[l]; ok {
			rank = v
		} else {
			unknown++
		}
		if c == nil {
			if rank >= 0 {
				unknown++
			}
			c = &facts.Communicator{Ref: otf2.UndefinedComm, Name: ""}
		}
		process := otf2.UndefinedLocationGroup
		if d := n.defs.Location(l); d != nil {
			process = processOf(n.defs, d.Group)
		}
		k := key{c.Ref, rank, process}
		at, known := index[k]
		if !known {
			at = len(all)
			index[k] = at
			w := NetworkWait{Communicator: networkOf(n.defs, c), Comm: c.Ref, CommRank: rank, Host: hostOf(n.defs, process)}
			if g := n.defs.LocationGroup(process); g != nil {
				w.Rank = n.defs.String(g.Name)
			}
			all = append(all, w)
		}
		w := &all[at]
		for p := range r.times {
			*w.phase(netPhase(p)) += r.times[p]
		}
		w.Phases += r.phases
		w.Unfinished += r.unfinished
		for peer, ns := range r.peerWaits {
			awaited[key{c.Ref, peer, 0}] += ns
		}
	}
	slices.SortFunc(all, func(a, b NetworkWait) int {
		return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.CommRank, b.CommRank), cmp.Compare(a.Rank, b.Rank))
	})
	for i := range all { // a rank may have several rows with PXN: the first of them has it
		k := key{all[i].Comm, all[i].CommRank, 0}
		all[i].AwaitedBy = awaited[k]
		delete(awaited, k)
	}
	return all, unknown
}

// networkOf names the communicator that a network belongs to.
func networkOf(defs *otf2.Definitions, c *facts.Communicator) string {
	if parent := defs.Comm(c.Parent); parent != nil && c.Network {
		return defs.String(parent.Name)
	}
	return c.Name
}
