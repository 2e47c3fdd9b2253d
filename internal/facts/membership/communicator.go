// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"maps"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// NetworkSuffix ends the names of communicators and windows of networks.
const NetworkSuffix = " network"

// Communicator is a communicator whose members are resolved to locations.
type Communicator struct {
	Ref     otf2.CommRef
	Name    string
	Members []otf2.LocationRef       // by rank; empty for a self communicator
	Ranks   map[otf2.LocationRef]int // the reverse
	Events  bool                     // CommCreate and CommDestroy are in the event streams
	Self    bool                     // its one member is the location of the event
	Global  bool                     // ranks in events count in the list of all locations
	Network bool                     // it carries the transfers of another communicator, see package scorep
	Parent  otf2.CommRef
	Threads bool // of threads, which have no operations of this kind
	NCCL    bool // of NCCL, in an archive that has communicators of others, too
	Calls   bool // of MPI, as another tool recorded it: its operations are calls of threads
	// nth is the index of each member among the absent ranks that its location stands for; nil: no member is absent.
	nth []int32

	missing map[otf2.LocationRef]map[string][]uint64 // see Missing
}

// WorldIndex returns the index of a member among the ranks of the world. `of` maps locations to indexes; a location
// that stands for several ranks has the index of the first.
func (c *Communicator) WorldIndex(of map[otf2.LocationRef]int, rank int) (int, bool) {
	at, ok := of[c.Members[rank]]
	if ok && c.nth != nil {
		at += int(c.nth[rank])
	}
	return at, ok
}

// RankOf returns the rank of a location, −1 if it is not a member.
func (c *Communicator) RankOf(l otf2.LocationRef) int {
	if c.Self {
		return 0
	}
	if r, ok := c.Ranks[l]; ok {
		return r
	}
	return -1
}

// Size returns the number of ranks, including those without data.
func (c *Communicator) Size() int {
	if c.Self {
		return 1
	}
	return len(c.Members)
}

// Communicators returns the communicators of an archive by id, except those of networks and of threads.
func Communicators(defs *otf2.Definitions) map[otf2.CommRef]*Communicator {
	all := AllCommunicators(defs)
	maps.DeleteFunc(all, func(_ otf2.CommRef, c *Communicator) bool { return c.Network || c.Threads })
	return all
}

// ofThreads reports whether communicators of a paradigm are teams of threads, or lists of everything that a tool
// measured.
func ofThreads(defs *otf2.Definitions, p otf2.Paradigm) bool {
	if p == otf2.ParadigmMeasurementSystem {
		return true
	}
	d := defs.ParadigmDef(p)
	return d != nil && (d.Class == otf2.ParadigmClassThreadForkJoin || d.Class == otf2.ParadigmClassThreadCreateWait)
}

// AllCommunicators resolves all communicators, by id. It leaves out those whose group or members are not defined; Check
// reports them.
func AllCommunicators(defs *otf2.Definitions) map[otf2.CommRef]*Communicator {
	networks := make(map[otf2.CommRef]bool)
	for _, w := range defs.RmaWins {
		c := defs.Comm(w.Comm)
		if c != nil && w.Name == c.Name && c.Flags == otf2.CommFlagNone &&
			strings.HasSuffix(defs.String(c.Name), NetworkSuffix) {
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
	ours := attribute.Find(defs).Has(regions.AttrTimingSource)
	isNCCL := func(g *otf2.Group) bool { return ours && regions.IsParadigmNCCL(g.Paradigm) }
	markedNCCL := ours && !slices.ContainsFunc(defs.Groups, func(g otf2.Group) bool { return isNCCL(&g) })
	all := make(map[otf2.CommRef]*Communicator, len(defs.Comms))
	for _, def := range defs.Comms {
		c := &Communicator{
			Ref: def.Self, Name: defs.String(def.Name), Events: def.Flags&otf2.CommFlagCreateDestroyEvents != 0,
			Network: networks[def.Self], Parent: def.Parent,
		}
		g := defs.Group(def.Group)
		if g == nil {
			continue
		}
		c.NCCL, c.Threads = isNCCL(g), ofThreads(defs, g.Paradigm)
		switch g.Type {
		case otf2.GroupTypeCommSelf:
			c.Self = true
		case otf2.GroupTypeCommGroup:
			c.Global = g.Flags&otf2.GroupFlagGlobalMembers != 0
			c.Ranks = make(map[otf2.LocationRef]int, len(g.Members))
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
				c.Members = append(c.Members, l)
				if _, twice := c.Ranks[l]; !twice {
					c.Ranks[l] = rank
				}
			}
		default:
			continue
		}
		if c != nil {
			c.Calls = !markedNCCL && g.Paradigm == otf2.ParadigmMPI && ofCPUs(defs, c.Members)
			all[def.Self] = c
		}
	}
	readMissing(defs, all)
	return all
}

// ofCPUs reports whether the first defined member of a communicator is a thread; members of NCCL communicators are GPU
// rows.
func ofCPUs(defs *otf2.Definitions, members []otf2.LocationRef) bool {
	for _, l := range members {
		if d := defs.Location(l); d != nil {
			return d.Type == otf2.LocationTypeCPUThread
		}
	}
	return len(members) == 0
}

// Paradigms of operations.
const (
	ParadigmNCCL = "NCCL" // also of RCCL
	ParadigmMPI  = "MPI"
)

// Paradigm names what the communicator's operations are of.
func (c *Communicator) Paradigm() string {
	if c.Calls {
		return ParadigmMPI
	}
	return ParadigmNCCL
}

// ByLocation lists the communicators that each location is a member of, in the order of their ids.
func ByLocation(defs *otf2.Definitions, comms map[otf2.CommRef]*Communicator) map[otf2.LocationRef][]*Communicator {
	of := make(map[otf2.LocationRef][]*Communicator)
	for _, d := range defs.Comms {
		if c := comms[d.Self]; c != nil {
			for l := range c.Ranks {
				of[l] = append(of[l], c)
			}
		}
	}
	return of
}

// CommTable has communicators by their definitions; what they say of sizes and ranks is part of [facts.Names].
type CommTable map[otf2.CommRef]*Communicator

// CommSize is the number of a communicator's ranks; 0 if it is not known.
func (cs CommTable) CommSize(ref otf2.CommRef) int {
	if c := cs[ref]; c != nil {
		return c.Size()
	}
	return 0
}

// Rank is the rank that a location shows; −1 if the communicator is not known, or shows none there.
func (cs CommTable) Rank(ref otf2.CommRef, l otf2.LocationRef) int {
	if c := cs[ref]; c != nil {
		return c.RankOf(l)
	}
	return -1
}

// absentOf returns, for each entry of a list of all locations, the index (from 0) of the rank without data that the
// entry stands for. It returns nil if there are no such ranks.
func absentOf(defs *otf2.Definitions, list []uint64) []int32 {
	ranks := property.AbsentRanks(defs)
	if len(ranks) == 0 {
		return nil
	}
	entries, seen := make(map[uint64]int), make(map[uint64]int)
	for _, l := range list {
		entries[l]++
	}
	nth := make([]int32, len(list))
	for i, l := range list {
		if entries[l] < 2 {
			continue
		}
		if d := defs.Location(otf2.LocationRef(l)); d != nil {
			if n := len(ranks[d.Group]); n > 0 && entries[l]%n == 0 {
				nth[i] = int32(seen[l] / (entries[l] / n))
			}
		}
		seen[l]++
	}
	return nth
}

// Windows maps each RMA window to its communicator; windows without one are left out.
func Windows(defs *otf2.Definitions) map[otf2.RmaWinRef]*Communicator {
	comms := AllCommunicators(defs)
	all := make(map[otf2.RmaWinRef]*Communicator, len(defs.RmaWins))
	for _, w := range defs.RmaWins {
		if c := comms[w.Comm]; c != nil {
			all[w.Self] = c
		}
	}
	return all
}
