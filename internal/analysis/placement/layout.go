// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// WorldRanks returns the ranks of an archive in world order, and the rank of each communicator location. For a
// location that represents several ranks without data, it is the first of them.
func WorldRanks(defs *otf2.Definitions) ([]Rank, map[otf2.LocationRef]int) {
	return Ranks(defs, membership.Communicators(defs))
}

// Communicator describes a communicator of NCCL.
type Communicator struct {
	Ref     otf2.CommRef
	Name    string
	Members []otf2.LocationRef // by rank; one location can represent several ranks without data
	World   []int              // by rank: indices into WorldRanks, −1 if unknown
	Places  string             // of the members among all ranks, like CommunicatorRow.Members
}

// Communicators lists an archive's communicators by id, without those of networks.
func Communicators(defs *otf2.Definitions) []Communicator {
	var all []Communicator
	comms := membership.Communicators(defs)
	_, of := Ranks(defs, comms)
	for _, c := range comms {
		if c.Self {
			continue
		}
		var places []int
		world := make([]int, len(c.Members))
		for rank := range c.Members {
			place, ok := c.WorldIndex(of, rank)
			if !ok {
				world[rank] = -1
				continue
			}
			world[rank] = place
			places = append(places, place)
		}
		all = append(all, Communicator{Ref: c.Ref, Name: c.Name, Members: c.Members, World: world,
			Places: PlacesText(places)})
	}
	slices.SortFunc(all, func(a, b Communicator) int { return cmp.Compare(a.Ref, b.Ref) })
	return all
}
