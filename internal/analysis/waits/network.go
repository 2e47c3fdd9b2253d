// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lookup"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// NetworkRow says what the transfers of one rank in one communicator waited for: the phases of the oldest transfer
// under way, so that the sums are times of the row, not of each transfer.
type NetworkRow struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`      // of the network
	CommRank     int          `json:"comm_rank"` // in the communicator
	Rank         string       `json:"rank"`      // process that the row belongs to
	Host         string       `json:"host"`
	SendGPU      uint64       `json:"send_gpu_wait_ns"`  // until the GPU had the data ready
	SendPeer     uint64       `json:"send_peer_wait_ns"` // until the receiver was ready
	SendNetwork  uint64       `json:"send_network_ns"`   // until the network had sent it
	RecvNetwork  uint64       `json:"recv_network_ns"`   // until the data had arrived
	RecvFlush    uint64       `json:"recv_flush_ns"`     // until it was visible to the GPU
	RecvGPU      uint64       `json:"recv_gpu_wait_ns"`  // until the GPU had taken it
	Phases       uint64       `json:"phases"`            // number of phases
	Unfinished   uint64       `json:"unfinished"`        // open when the data ended; they are in no time
	// AwaitedBy is how long other ranks' transfers waited until this one was ready to receive.
	AwaitedBy uint64 `json:"awaited_by_ns"`
}

func (n *NetworkRow) phase(p naming.NetPhase) *uint64 {
	return [naming.NumNetPhases]*uint64{&n.SendGPU, &n.SendPeer, &n.SendNetwork, &n.RecvNetwork, &n.RecvFlush,
		&n.RecvGPU}[p]
}

// addLocation adds the sums of a location.
func (n *NetworkRow) addLocation(r *rowState) {
	for p := range r.times {
		*n.phase(naming.NetPhase(p)) += r.times[p]
	}
	n.Phases += r.phases
	n.Unfinished += r.unfinished
}

// NetworkPhases sums up the phases of network rows. A row is in one lane.
type NetworkPhases struct {
	defs    *otf2.Definitions
	regions lookup.ByRegion[phaseOf]
	rows    lookup.ByLocation[*rowState]
}

// phaseOf is the phase of a region.
type phaseOf struct {
	phase naming.NetPhase
	is    bool
}

type rowState struct {
	times      [naming.NumNetPhases]uint64
	phases     uint64
	unfinished uint64
	peerWaits  map[int]uint64 // by the rank that was waited for
	open       int            // open phases
}

// NewNetworkPhases returns sums for an archive's network rows. It takes the regions of some of its processes.
func NewNetworkPhases(defs *otf2.Definitions) *NetworkPhases {
	n := &NetworkPhases{defs: defs}
	for ref, phase := range naming.NetPhaseRegions(defs) {
		n.regions.Set(ref, phaseOf{phase, true})
	}
	return n
}

// Enter takes a region that begins.
func (n *NetworkPhases) Enter(r *facts.Region) {
	if !n.regions.Get(r.Region).is {
		return
	}
	n.row(r.Location).open++
}

func (n *NetworkPhases) row(l otf2.LocationRef) *rowState {
	row := n.rows.Get(l)
	if row == nil {
		row = &rowState{peerWaits: make(map[int]uint64)}
		n.rows.Set(l, row)
	}
	return row
}

// Leave takes a region that ends.
func (n *NetworkPhases) Leave(r *facts.Region) {
	of := n.regions.Get(r.Region)
	if !of.is {
		return
	}
	phase := of.phase
	row := n.rows.Get(r.Location)
	row.open--
	if r.Unfinished || r.Lost {
		row.unfinished++
		return
	}
	took := uint64(r.End - r.Begin)
	row.phases++
	row.times[phase] += took
	if phase == naming.NetSendPeer && r.Peer >= 0 {
		row.peerWaits[int(r.Peer)] += took
	}
}

// Sums adds the phases of transfers that were recorded as sums.
func (n *NetworkPhases) Sums(s *facts.NetSums) {
	row := n.row(s.Location)
	for phase, took := range s.Times {
		row.times[phase] += took
		row.phases += s.Phases[phase]
	}
	if s.Unfinished {
		row.unfinished++
	}
	if waited := s.Times[naming.NetSendPeer]; waited > 0 && s.Peer >= 0 {
		row.peerWaits[s.Peer] += waited
	}
}

// Absorb takes over the rows of another lane.
func (n *NetworkPhases) Absorb(o *NetworkPhases) {
	for l, r := range o.rows.All() {
		r.unfinished += uint64(r.open)
		r.open = 0
		n.rows.Set(l, r)
	}
}

// result lists the phases of each rank; unknown counts the rows whose rank is unknown.
func (n *NetworkPhases) result() (all []NetworkRow, unknown uint64) {
	all = []NetworkRow{}
	if len(n.rows.All()) == 0 {
		return all, 0
	}
	ranks, home := property.NetworkRanks(n.defs), n.homes()
	index := make(map[networkKey]int)
	awaited := make(map[networkKey]uint64)
	for l, r := range n.rows.All() {
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
			c = &membership.Communicator{Ref: otf2.UndefinedComm, Name: ""}
		}
		k := networkKey{c.Ref, rank, n.processOf(l)}
		at, known := index[k]
		if !known {
			at = len(all)
			index[k] = at
			all = append(all, n.named(c, k))
		}
		all[at].addLocation(r)
		for peer, ns := range r.peerWaits {
			awaited[networkKey{c.Ref, peer, 0}] += ns
		}
	}
	slices.SortFunc(all, func(a, b NetworkRow) int {
		return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.CommRank, b.CommRank), cmp.Compare(a.Rank, b.Rank))
	})
	for i := range all { // with PXN a rank may have several rows: the first one gets it
		k := networkKey{all[i].Comm, all[i].CommRank, 0}
		all[i].AwaitedBy = awaited[k]
		delete(awaited, k)
	}
	return all, unknown
}

// networkKey identifies a rank of a communicator, and the process that moved its data.
type networkKey struct {
	comm otf2.CommRef
	rank int
	by   otf2.LocationGroupRef
}

// homes returns the communicators of the networks' locations; nil if a location served several communicators in turn,
// because it is unknown which of them a phase belongs to.
func (n *NetworkPhases) homes() map[otf2.LocationRef]*membership.Communicator {
	home := make(map[otf2.LocationRef]*membership.Communicator)
	for _, c := range membership.AllCommunicators(n.defs) {
		if !c.Network {
			continue
		}
		for l := range c.Ranks {
			if _, several := home[l]; several {
				home[l] = nil
			} else {
				home[l] = c
			}
		}
	}
	return home
}

func (n *NetworkPhases) processOf(l otf2.LocationRef) otf2.LocationGroupRef {
	if d := n.defs.Location(l); d != nil {
		return placement.ProcessOf(n.defs, d.Group)
	}
	return otf2.UndefinedLocationGroup
}

// named returns a row without figures.
func (n *NetworkPhases) named(c *membership.Communicator, k networkKey) NetworkRow {
	w := NetworkRow{Communicator: networkOf(n.defs, c), Comm: c.Ref, CommRank: k.rank,
		Host: placement.HostOf(n.defs, k.by)}
	if g := n.defs.LocationGroup(k.by); g != nil {
		w.Rank = n.defs.String(g.Name)
	}
	return w
}

// networkOf returns the name of the communicator that a network belongs to.
func networkOf(defs *otf2.Definitions, c *membership.Communicator) string {
	if parent := defs.Comm(c.Parent); parent != nil && c.Network {
		return defs.String(parent.Name)
	}
	return c.Name
}
