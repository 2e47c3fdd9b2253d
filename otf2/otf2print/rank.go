// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// appendRank writes a rank of a communicator with the location behind it: 3 ("host thread" <3>).
func (n *names) appendRank(b []byte, at otf2.LocationRef, comm otf2.CommRef, rank uint64) []byte {
	if uint32(rank) == 1<<32-1 {
		return append(b, "UNDEFINED"...)
	}
	b = strconv.AppendUint(b, rank, 10)
	b = append(b, " ("...)
	if loc, ok := n.rankLocation(at, comm, rank); ok {
		b = n.appendRef(b, otf2.DefLocation, uint64(loc))
	} else {
		b = append(b, "INVALID"...)
	}
	return append(b, ')')
}

// rankLocation finds the location of a rank as an event of location at means it.
func (n *names) rankLocation(at otf2.LocationRef, comm otf2.CommRef, rank uint64) (otf2.LocationRef, bool) {
	var group *otf2.Group
	if c := n.defs.Comm(comm); c != nil {
		group = n.defs.Group(c.Group)
	} else if c := n.defs.InterComm(comm); c != nil {
		group = n.defs.Group(c.GroupA) // ranks of an inter-communicator are those of the other side
		if group != nil && n.member(group, at) {
			group = n.defs.Group(c.GroupB)
		}
	}
	if group == nil {
		return 0, false
	}
	switch group.Type {
	case otf2.GroupTypeCommSelf:
		return at, rank == 0
	case otf2.GroupTypeCommGroup:
		return n.groupLocation(group, rank)
	}
	return 0, false
}

// groupLocation finds the location of a rank of a COMM_GROUP.
func (n *names) groupLocation(group *otf2.Group, rank uint64) (otf2.LocationRef, bool) {
	world := n.world[group.Paradigm]
	if world == nil {
		return 0, false
	}
	if group.Flags&otf2.GroupFlagGlobalMembers == 0 {
		if rank >= uint64(len(group.Members)) {
			return 0, false
		}
		rank = group.Members[rank]
	}
	if rank >= uint64(len(world.Members)) {
		return 0, false
	}
	return otf2.LocationRef(world.Members[rank]), true
}

// member reports whether a location belongs to a COMM_GROUP.
func (n *names) member(group *otf2.Group, loc otf2.LocationRef) bool {
	world := n.world[group.Paradigm]
	if world == nil {
		return false
	}
	return slices.ContainsFunc(group.Members, func(m uint64) bool {
		return m < uint64(len(world.Members)) && otf2.LocationRef(world.Members[m]) == loc
	})
}

// commOfWindow is the communicator of a window.
func (n *names) commOfWindow(win otf2.RmaWinRef) otf2.CommRef {
	if w := n.defs.RmaWin(win); w != nil {
		return w.Comm
	}
	return otf2.UndefinedComm
}
