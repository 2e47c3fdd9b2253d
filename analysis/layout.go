// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// WorldRank is a process of the job, or one GPU of a process with communicator ranks on several.
type WorldRank struct {
	Name    string // "Rank 3", "Rank 0 GPU 1"
	Host    string
	Process otf2.LocationGroupRef
	// Together is the name of what stands for it and other ranks without data: "Ranks 4-15 (no data)"; "" if nothing does.
	Together string
}

// WorldRanks lists the ranks of an archive in world order, and tells which of them a communicator's
// location belongs to: of one that stands for several ranks without data the first.
func WorldRanks(defs *otf2.Definitions) ([]WorldRank, map[otf2.LocationRef]int) {
	ranks, of := worldRanks(defs, facts.Communicators(defs))
	all := make([]WorldRank, len(ranks))
	absent := facts.AbsentRanks(defs)
	for i, r := range ranks {
		all[i] = WorldRank{Name: r.name, Host: r.host, Process: r.process}
		if g := defs.LocationGroup(r.process); len(absent[r.process]) > 1 && g != nil {
			all[i].Together = defs.String(g.Name)
		}
	}
	return all, of
}

// Communicator is a communicator of NCCL.
type Communicator struct {
	Ref     otf2.CommRef
	Name    string
	Members []otf2.LocationRef // by rank; one location stands for several ranks without data
	World   []int              // by rank: indices into WorldRanks, −1 if it is not known
	Places  string             // of the members among all ranks, as CommunicatorRow.Members
}

// Communicators lists an archive's communicators by id, without those of networks.
func Communicators(defs *otf2.Definitions) []Communicator {
	var all []Communicator
	comms := facts.Communicators(defs)
	_, of := worldRanks(defs, comms)
	for _, c := range comms {
		if c.Self {
			continue
		}
		var places []int
		world := make([]int, len(c.Members))
		for rank := range c.Members {
			place, ok := c.Place(of, rank)
			if !ok {
				world[rank] = -1
				continue
			}
			world[rank] = place
			places = append(places, place)
		}
		all = append(all, Communicator{Ref: c.Ref, Name: c.Name, Members: c.Members, World: world, Places: placesText(places)})
	}
	slices.SortFunc(all, func(a, b Communicator) int { return cmp.Compare(a.Ref, b.Ref) })
	return all
}

// Stretch is a range of operations that the members of a communicator did not record alike.
type Stretch struct {
	Comm        otf2.CommRef
	Function    string // "AllReduce", or "Send 0>3" for the messages from rank 0 to 3
	First, Last uint64 // ordinals, inclusive
}

// Stretches reads from the archive's properties what its members did not record alike. unnamed is how many
// more there are than the archive names.
func Stretches(a *otf2.Anchor) (all []Stretch, unnamed uint64) {
	ps := propertiesOf(a)
	for _, s := range ps.stretches() {
		all = append(all, Stretch{s.comm, s.function, s.first, s.last})
	}
	n, _ := ps.Number(facts.PropDiffer)
	return all, n - min(n, uint64(len(all)))
}
