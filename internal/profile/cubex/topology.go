// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// defineTopologies makes the grids of the CUBE browser: processes × threads, as in Score-P, hosts × GPUs, and the ranks
// of communicators.
func (s *system) defineTopologies(rows map[otf2.LocationRef]*rowSum) {
	s.addTopology("Process x Thread", "Process", "Thread", cube.PlaceOfLocation, s.threads())
	s.addTopology("Host x GPU", "Host", "GPU", cube.PlaceOfGroup, s.gpus())
	s.addTopology("Communicator x Rank", "Communicator", "Rank", cube.PlaceOfLocation, s.ranks(rows))
}

// gridPlace is a position in a grid of two dimensions.
type gridPlace struct {
	id   int32
	x, y int
}

func (s *system) addTopology(name, first, second string, of cube.PlaceOf, places []gridPlace) {
	if len(places) == 0 {
		return
	}
	t := cube.Topology{Name: name, Dimensions: []cube.Dimension{{Name: first}, {Name: second}}}
	for _, p := range places {
		t.Dimensions[0].Size, t.Dimensions[1].Size = max(t.Dimensions[0].Size, p.x+1), max(t.Dimensions[1].Size, p.y+1)
		t.Places = append(t.Places, cube.Place{Of: of, ID: p.id, Coordinates: []int{p.x, p.y}})
	}
	s.topologies = append(s.topologies, t)
}

// threads returns the locations of processes.
func (s *system) threads() (places []gridPlace) {
	for id, l := range s.locations {
		if s.groups[l.Group].Type != cube.GroupAccelerator {
			places = append(places, gridPlace{int32(id), int(l.Group), l.Rank})
		}
	}
	return places
}

// gpus returns the groups of accelerators, in their order on each host.
func (s *system) gpus() (places []gridPlace) {
	hosts := make(map[cube.SystemTreeNodeID]int)
	next := make(map[cube.SystemTreeNodeID]int)
	for id, g := range s.groups {
		if g.Type != cube.GroupAccelerator {
			continue
		}
		if _, known := hosts[g.Node]; !known {
			hosts[g.Node] = len(hosts)
		}
		places = append(places, gridPlace{int32(id), hosts[g.Node], next[g.Node]})
		next[g.Node]++
	}
	return places
}

// ranks returns the locations of communicators' ranks, by name of the communicator.
func (s *system) ranks(rows map[otf2.LocationRef]*rowSum) (places []gridPlace) {
	type member struct {
		comm string
		at   cube.LocationID
		rank int
	}
	var all []member
	for ref, r := range rows {
		if comm := s.comms[ref]; r.Kind == description.KindRank && comm != "" && r.Others == 0 {
			all = append(all, member{comm, s.ids[ref], r.Rank})
		}
	}
	slices.SortFunc(all, func(a, b member) int {
		if c := compareNames(a.comm, b.comm); c != 0 {
			return c
		}
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return int(a.at) - int(b.at)
	})
	seen := make(map[cube.LocationID]bool)
	comm, x := "", -1
	for _, m := range all {
		if x < 0 || m.comm != comm {
			comm = m.comm
			x++
		}
		if !seen[m.at] && !strings.HasPrefix(m.comm, "comm of one") {
			seen[m.at] = true
			places = append(places, gridPlace{int32(m.at), x, m.rank})
		}
	}
	return places
}
