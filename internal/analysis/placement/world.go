// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Processes returns the process of each location, including locations on its GPUs.
func Processes(defs *otf2.Definitions) map[otf2.LocationRef]otf2.LocationGroupRef {
	of := make(map[otf2.LocationRef]otf2.LocationGroupRef, len(defs.Locations))
	for _, l := range defs.Locations {
		of[l.Self] = ProcessOf(defs, l.Group)
	}
	return of
}

// ProcessAt returns the process of one location, 0 if the location is undefined. It spares concurrent readers of an
// archive the table of all locations.
func ProcessAt(defs *otf2.Definitions, l otf2.LocationRef) otf2.LocationGroupRef {
	if d := defs.Location(l); d != nil {
		return ProcessOf(defs, d.Group)
	}
	return 0
}

// Rank is a rank of the world: a process of the job, or one GPU of a process with communicator ranks on several.
type Rank struct {
	Name    string // "Rank 3", "Rank 0 GPU 1"
	Host    string
	Gpu     string // "" if it is not known to have one
	Process otf2.LocationGroupRef
	Absent  bool // it has no data
	// Together names the group of ranks without data that includes this one: "Ranks 4-15 (no data)"; "" if there is
	// none.
	Together string

	group otf2.LocationGroupRef
	nth   int // index among the ranks that the group represents
}

// unit is what a rank corresponds to: a process, or one of its GPUs.
type unit struct{ process, group otf2.LocationGroupRef }

// Ranks returns the ranks of the archive in world order, and the rank of each communicator location. For a location
// that represents several ranks without data it is the first of them, see membership.Communicator.Place.
func Ranks(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator) ([]Rank, map[otf2.LocationRef]int) {
	units, gpus := unitsOf(defs, comms)
	seen := make(map[unit]bool)
	var ranks []Rank
	absent := property.AbsentRanks(defs)
	for _, u := range units {
		if !seen[u] {
			seen[u] = true
			ranks = appendRanks(ranks, defs, u, len(gpus[u.process]) > 1, absent)
		}
	}
	slices.SortFunc(ranks, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.group, b.group), cmp.Compare(a.nth, b.nth))
	})
	index := make(map[unit]int)
	for i, r := range ranks {
		if r.nth == 0 {
			index[unit{r.Process, r.group}] = i
		}
	}
	of := make(map[otf2.LocationRef]int, len(units))
	for l, u := range units {
		of[l] = index[u]
	}
	return ranks, of
}

// unitsOf returns the unit of each communicator location, and for each process its GPUs that are in communicators.
func unitsOf(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator) (
	units map[otf2.LocationRef]unit, gpus map[otf2.LocationGroupRef]map[otf2.LocationGroupRef]bool) {
	units = make(map[otf2.LocationRef]unit)
	gpus = make(map[otf2.LocationGroupRef]map[otf2.LocationGroupRef]bool)
	for _, c := range comms {
		for _, l := range c.Members {
			d := defs.Location(l)
			if d == nil {
				continue
			}
			u := unit{ProcessOf(defs, d.Group), d.Group}
			units[l] = u
			if u.group == u.process {
				continue
			}
			keyed.Map(gpus, u.process)[u.group] = true
		}
	}
	for l, u := range units { // a process with threads in MPI communicators and one GPU in NCCL communicators
		if u.group == u.process && len(gpus[u.process]) == 1 {
			for gpu := range gpus[u.process] {
				units[l] = unit{u.process, gpu}
			}
		}
	}
	return units, gpus
}

// appendRanks appends the rank of a unit, or the ranks without data that the unit represents. several: its process has
// other GPUs, too.
func appendRanks(ranks []Rank, defs *otf2.Definitions, u unit, several bool,
	absent map[otf2.LocationGroupRef][]int) []Rank {
	named := u.process
	if several {
		named = u.group
	}
	r := Rank{Process: u.process, group: u.group, Host: HostOf(defs, u.process), Gpu: GpuOf(defs, u.group)}
	if g := defs.LocationGroup(named); g != nil {
		r.Name = defs.String(g.Name)
	}
	of, isAbsent := absent[u.process]
	r.Absent = isAbsent
	if len(of) < 2 {
		return append(ranks, r)
	}
	if g := defs.LocationGroup(u.process); g != nil {
		r.Together = defs.String(g.Name)
	}
	for i, rank := range of {
		r.Name, r.nth = units.RankName(rank)+" "+units.NoData, i
		ranks = append(ranks, r)
	}
	return ranks
}

// GpuOf returns the device name of an accelerator group, "" for other groups.
func GpuOf(defs *otf2.Definitions, group otf2.LocationGroupRef) string {
	g := defs.LocationGroup(group)
	if g == nil || g.Type != otf2.LocationGroupTypeAccelerator {
		return ""
	}
	if n := defs.SystemTreeNode(g.SystemTreeParent); n != nil {
		for _, d := range defs.SystemTreeNodeDomains {
			if d.Node == g.SystemTreeParent && d.Domain == otf2.SystemTreeDomainAcceleratorDevice {
				return defs.String(n.Name)
			}
		}
	}
	return defs.String(g.Name)
}

// ProcessOf returns the process that a location group is or belongs to.
func ProcessOf(defs *otf2.Definitions, group otf2.LocationGroupRef) otf2.LocationGroupRef {
	if g := defs.LocationGroup(group); g != nil && g.Type == otf2.LocationGroupTypeAccelerator {
		return g.Creator
	}
	return group
}

// HostOf returns the name of the machine that a process runs on: the nearest node of class "node", otherwise the
// nearest node.
func HostOf(defs *otf2.Definitions, process otf2.LocationGroupRef) string {
	g := defs.LocationGroup(process)
	if g == nil {
		return ""
	}
	name := ""
	for ref, steps := g.SystemTreeParent, 0; steps < len(defs.SystemTreeNodes); steps++ {
		n := defs.SystemTreeNode(ref)
		if n == nil {
			break
		}
		if name == "" {
			name = defs.String(n.Name)
		}
		if defs.String(n.Class) == "node" {
			return defs.String(n.Name)
		}
		ref = n.Parent
	}
	return name
}
