// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"maps"
	"strings"

	"ncclotf2/otf2"
	"ncclotf2/scorep"
)

// networkSuffix ends the names of communicators and windows of networks.
const networkSuffix = " network"

// communicator is a communicator with its members resolved to locations.
type communicator struct {
	ref     otf2.CommRef
	name    string
	members []otf2.LocationRef       // by rank; empty for a self communicator
	ranks   map[otf2.LocationRef]int // the reverse
	events  bool                     // its creation and destruction are in the event streams
	self    bool                     // one member, the location of the event
	global  bool                     // ranks in events count in the list of all locations
	network bool                     // of the transfers of another communicator, see package scorep
	parent  otf2.CommRef
	threads bool // of threads, which have no operations of this kind
	nccl    bool // of NCCL, in an archive that has communicators of others, too
	// nth tells, of locations that stand for several ranks of the world without data, which one the member is; nil: there are
	// no such among the members.
	nth []int32
}

// place is the index of a member among the ranks of the world, as worldRanks gives them.
func (c *communicator) place(of map[otf2.LocationRef]int, rank int) (int, bool) {
	at, ok := of[c.members[rank]]
	if ok && c.nth != nil {
		at += int(c.nth[rank])
	}
	return at, ok
}

// rankOf is the rank of a location, −1 if it is no member.
func (c *communicator) rankOf(l otf2.LocationRef) int {
	if c.self {
		return 0
	}
	if r, ok := c.ranks[l]; ok {
		return r
	}
	return -1
}

func (c *communicator) size() int {
	if c.self {
		return 1
	}
	return len(c.members)
}

// communicators resolves the communicators of an archive, by id, without those of networks and of threads.
func communicators(defs *otf2.Definitions) map[otf2.CommRef]*communicator {
	all := allCommunicators(defs)
	maps.DeleteFunc(all, func(_ otf2.CommRef, c *communicator) bool { return c.network || c.threads })
	return all
}

// ofThreads tells whether a paradigm's communicators are teams of threads, or lists of all that a tool measured.
func ofThreads(defs *otf2.Definitions, p otf2.Paradigm) bool {
	if p == otf2.ParadigmMeasurementSystem {
		return true
	}
	d := defs.ParadigmDef(p)
	return d != nil && (d.Class == otf2.ParadigmClassThreadForkJoin || d.Class == otf2.ParadigmClassThreadCreateWait)
}

// allCommunicators resolves all communicators. Those whose group is not defined or has members that
// are not are left out; Check tells why.
func allCommunicators(defs *otf2.Definitions) map[otf2.CommRef]*communicator {
	networks := make(map[otf2.CommRef]bool)
	for _, w := range defs.RmaWins {
		c := defs.Comm(w.Comm)
		if c != nil && w.Name == c.Name && c.Flags == otf2.CommFlagNone && strings.HasSuffix(defs.String(c.Name), networkSuffix) {
			networks[w.Comm] = true
		}
	}
	locations, absent := make(map[otf2.Paradigm][]uint64), make(map[otf2.Paradigm][]int32)
	for _, g := range defs.Groups {
		if g.Type == otf2.GroupTypeCommLocations {
			locations[g.Paradigm] = g.Members
			absent[g.Paradigm] = absentOf(defs, g.Members)
		}
	}
	all := make(map[otf2.CommRef]*communicator, len(defs.Comms))
	for _, def := range defs.Comms {
		c := &communicator{
			ref: def.Self, name: defs.String(def.Name), events: def.Flags&otf2.CommFlagCreateDestroyEvents != 0,
			network: networks[def.Self], parent: def.Parent,
		}
		g := defs.Group(def.Group)
		if g == nil {
			continue
		}
		c.nccl, c.threads = g.Paradigm == scorep.ParadigmNCCL, ofThreads(defs, g.Paradigm)
		switch g.Type {
		case otf2.GroupTypeCommSelf:
			c.self = true
		case otf2.GroupTypeCommGroup:
			c.global = g.Flags&otf2.GroupFlagGlobalMembers != 0
			c.ranks = make(map[otf2.LocationRef]int, len(g.Members))
			world, nth := locations[g.Paradigm], absent[g.Paradigm]
			for rank, i := range g.Members {
				if i >= uint64(len(world)) {
					c = nil
					break
				}
				if nth != nil && nth[i] > 0 && c.nth == nil {
					c.nth = make([]int32, len(g.Members))
				}
				if c.nth != nil {
					c.nth[rank] = nth[i]
				}
				l := otf2.LocationRef(world[i])
				c.members = append(c.members, l)
				if _, twice := c.ranks[l]; !twice {
					c.ranks[l] = rank
				}
			}
		default:
			continue
		}
		if c != nil {
			all[def.Self] = c
		}
	}
	return all
}

// membership lists the communicators that each location is a member of, in the order of their ids.
func membership(defs *otf2.Definitions, comms map[otf2.CommRef]*communicator) map[otf2.LocationRef][]*communicator {
	of := make(map[otf2.LocationRef][]*communicator)
	for _, d := range defs.Comms {
		if c := comms[d.Self]; c != nil {
			for l := range c.ranks {
				of[l] = append(of[l], c)
			}
		}
	}
	return of
}
