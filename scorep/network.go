// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// network is the RMA window of a communicator's transfers; a put names its receiver by rank. The members of the
// window's communicator are, in this order:
//
//   - for each rank, the location that shows what it receives. If there is none, the location of the rank's
//     operations or a location without events takes its place.
//   - the locations that show what the ranks send, by rank
//   - the locations of processes that send on behalf of other processes' ranks (PXN), by rank and process
//
// The location property property.Rank is the rank whose transfers a sending or receiving location shows. Event files
// have no RmaWinCreate and RmaWinDestroy, as the window's flags state.
type network struct {
	of    *jobs.Communicator // nil if the communicator is unknown
	name  string
	ranks int
	recv  map[int]*endpoint
	send  []*endpoint
	ref   otf2.RmaWinRef
}

// endpoint is a location that shows transfers of a communicator rank.
type endpoint struct {
	part   *jobs.Process
	number uint32
	rank   int
	pxn    int // 1 if the rank is another process's, else 0
}

func (e *endpoint) location() otf2.LocationRef { return locationOf(e.part, e.number) }

// owner is a communicator rank as a process knows it: an index into its Comms, or into its Foreign.
type owner struct {
	part          *jobs.Process
	comm, foreign int
}

// networks holds an archive's networks.
type networks struct {
	*roster
	*origins
	all     []*network
	windows map[*jobs.Process][]*network // by the process's local window id
}

// plan finds the network of each window and network location, and sorts the networks in the order of their
// communicators. Networks of unknown communicators come last. It returns an error if there are more ranks without data
// than jobs.MaxAbsent.
func (ns *networks) plan(on target) error {
	ns.windows = make(map[*jobs.Process][]*network)
	order, of := ns.networkOrder()
	if err := ns.collect(of); err != nil {
		return err
	}
	slices.SortStableFunc(ns.all, func(x, y *network) int {
		place := func(n *network) int {
			if n.of == nil {
				return math.MaxInt
			}
			return order[n.of]
		}
		return cmp.Compare(place(x), place(y))
	})
	for _, n := range ns.all {
		slices.SortStableFunc(n.send, func(x, y *endpoint) int {
			return cmp.Or(cmp.Compare(x.pxn, y.pxn), cmp.Compare(x.rank, y.rank),
				cmp.Compare(x.part.Index, y.part.Index))
		})
		for rank := range n.ranks {
			if !n.standsForRank(rank) && ns.world.Unknown == nil {
				index := on.nextGroup(ns.world)
				ns.world.AddUnknown(1).Index = index
			}
		}
	}
	return nil
}

// networkOrder returns the order of communicators, and a function that returns, or creates, the network of an owner:
// its communicator's, or a separate one if the communicator is unknown.
func (ns *networks) networkOrder() (order map[*jobs.Communicator]int, of func(owner) *network) {
	home := make(map[owner]*jobs.Communicator)
	order = make(map[*jobs.Communicator]int)
	for i, in := range slices.Concat(ns.instances, ns.run.Communicators) {
		if _, known := order[in]; known {
			continue
		}
		order[in] = i
		for m := range in.Present() {
			home[owner{m.Process, m.Index, -1}] = in
		}
	}
	byInstance := make(map[*jobs.Communicator]*network)
	byOwner := make(map[owner]*network)
	return order, func(o owner) *network {
		in := home[o]
		if m := ns.origins.of[o]; m != nil {
			in = home[owner{m.Process, m.Index, -1}]
		}
		n := byOwner[o]
		if in != nil {
			n = byInstance[in]
		}
		if n != nil {
			return n
		}
		n = newNetwork(in, o)
		if in != nil {
			byInstance[in] = n
		} else {
			byOwner[o] = n
		}
		ns.all = append(ns.all, n)
		return n
	}
}

// collect adds the processes' endpoints and windows to their networks.
func (ns *networks) collect(of func(owner) *network) error {
	free := jobs.Absentees(jobs.MaxAbsent)
	for _, p := range ns.ordered() {
		for i := range p.Shard.Locations {
			if o, e, ok := endpointOf(p, &p.Shard.Locations[i]); ok {
				of(o).add(e, p.Shard.Locations[i].Kind)
			}
		}
		for o, e := range laterEndpoints(p) {
			of(o).add(e.endpoint, e.kind)
		}
		for i, w := range p.Shard.Wins {
			n := of(owner{p, w.Comm, w.Foreign})
			if err := free.Count(w.Ranks-n.ranks, p, "window", i); err != nil {
				return err
			}
			n.ranks = max(n.ranks, w.Ranks)
			ns.windows[p] = append(ns.windows[p], n)
		}
	}
	return nil
}

// endpointOf returns the owner and endpoint of a location; false if the location shows no transfers.
func endpointOf(p *jobs.Process, l *description.Location) (owner, *endpoint, bool) {
	switch {
	case jobs.ForeignWork(l):
		return owner{p, -1, l.Foreign}, &endpoint{p, l.Number, p.Shard.Foreign[l.Foreign].Rank, 1}, true
	case l.Comm >= 0 && (l.Kind == description.KindNetSend || l.Kind == description.KindNetRecv):
		return owner{p, l.Comm, -1}, &endpoint{p, l.Number, p.Shard.Comms[l.Comm].Rank, 0}, true
	}
	return owner{}, nil, false
}

// sharedEndpoint is a location that showed transfers of other communicator ranks before.
type sharedEndpoint struct {
	*endpoint
	kind description.LocationKind
}

// laterEndpoints yields the network locations that the process's communicator ranks took over from earlier ones.
func laterEndpoints(p *jobs.Process) func(yield func(owner, sharedEndpoint) bool) {
	return func(yield func(owner, sharedEndpoint) bool) {
		for i := range p.Shard.Comms {
			c := &p.Shard.Comms[i]
			if c.Network == nil {
				continue
			}
			for _, row := range []struct {
				number uint32
				kind   description.LocationKind
			}{{c.Network.Send, description.KindNetSend}, {c.Network.Recv, description.KindNetRecv}} {
				if !yield(owner{p, i, -1}, sharedEndpoint{&endpoint{p, row.number, c.Rank, 0}, row.kind}) {
					return
				}
			}
		}
	}
}

func newNetwork(in *jobs.Communicator, o owner) *network {
	n := &network{of: in, ranks: 1, recv: make(map[int]*endpoint)}
	switch {
	case in != nil:
		n.name, n.ranks = in.Name+" network", in.Nranks
	case o.foreign >= 0:
		f := o.part.Shard.Foreign[o.foreign]
		n.name = fmt.Sprintf("unknown (PXN %04x.%d) network", f.Tag, f.Index)
	default:
		n.name = fmt.Sprintf("unknown (%s communicator %d) network", o.part.Name, o.comm)
	}
	return n
}

func (n *network) add(e *endpoint, kind description.LocationKind) {
	n.ranks = max(n.ranks, e.rank+1)
	if kind == description.KindNetSend {
		n.send = append(n.send, e)
	} else if n.recv[e.rank] == nil {
		n.recv[e.rank] = e
	}
}

// standsForRank reports whether a location is known that can represent the rank.
func (n *network) standsForRank(rank int) bool {
	if n.recv[rank] != nil || n.of == nil || rank >= len(n.of.Members) {
		return n.recv[rank] != nil
	}
	m := n.of.Members[rank]
	return m == nil || m.Comm().Rank == rank
}

// members returns the locations of a network's communicator, in the order that network describes.
func (ns *networks) members(n *network) []seat {
	all := make([]seat, 0, n.ranks+len(n.send))
	for rank := range n.ranks {
		e := n.recv[rank]
		switch {
		case e != nil:
			all = append(all, seat{e.location(), 0})
		case !n.standsForRank(rank):
			all = append(all, seat{placeLocation(ns.world.Unknown), 0})
		default:
			all = append(all, ns.seats.seatOf(n.of, rank))
		}
	}
	for _, e := range n.send {
		all = append(all, seat{e.location(), 0})
	}
	return all
}

// nameRanks adds property.Rank to each network location that shows the transfers of only one rank.
func (d *definer) nameRanks() {
	for _, p := range d.ordered() {
		several := make(map[uint32]bool) // ranks, on a location
		first := make(map[uint32]int)
		for i := range p.Shard.Locations {
			if _, e, ok := endpointOf(p, &p.Shard.Locations[i]); ok {
				first[e.number] = e.rank
			}
		}
		for _, e := range laterEndpoints(p) {
			if rank, ok := first[e.number]; ok && rank != e.rank {
				several[e.number] = true
			}
		}
		for i := range p.Shard.Locations {
			if _, e, ok := endpointOf(p, &p.Shard.Locations[i]); ok && e.rank >= 0 && !several[e.number] {
				d.LocationProperties = append(d.LocationProperties, otf2.LocationProperty{
					Location: e.location(), Name: d.text(property.Rank.Key()), Type: otf2.TypeUint32,
					Value: otf2.Value(e.rank),
				})
			}
		}
	}
}
