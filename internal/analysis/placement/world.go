// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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

// NetworkRow identifies the rank whose transfers a row shows.
type NetworkRow struct {
	Comm otf2.CommRef // of the operations
	Rank int          // in the communicator
}

// NetworkRows returns, for the rows of proxies, whose transfers they show, if known.
func NetworkRows(defs *otf2.Definitions) map[otf2.LocationRef]NetworkRow {
	ranks := property.NetworkRanks(defs)
	all := make(map[otf2.LocationRef]NetworkRow)
	for _, c := range membership.AllCommunicators(defs) {
		if !c.Network || c.Parent == otf2.UndefinedComm {
			continue
		}
		for l := range c.Ranks {
			if rank, ok := ranks[l]; ok {
				all[l] = NetworkRow{c.Parent, rank}
			}
		}
	}
	return all
}

// Place describes where a location is.
type Place struct {
	Process otf2.LocationGroupRef
	Host    string
	GPU     string // name of the device, "" for a row of the CPU
	Device  otf2.SystemTreeNodeRef
}

// PlaceOf returns where a location is, according to the definitions.
func PlaceOf(defs *otf2.Definitions, l otf2.LocationRef) Place {
	d := defs.Location(l)
	if d == nil {
		return Place{Process: otf2.UndefinedLocationGroup, Device: otf2.UndefinedSystemTreeNode}
	}
	p := Place{Process: ProcessOf(defs, d.Group), GPU: GpuOf(defs, d.Group), Device: otf2.UndefinedSystemTreeNode}
	p.Host = HostOf(defs, p.Process)
	if g := defs.LocationGroup(d.Group); g != nil && p.GPU != "" {
		p.Device = g.SystemTreeParent
	}
	return p
}

// Stride returns the distance of neighbors, 0 if it is not the same for all.
func Stride(places []int) int {
	if len(places) < 2 {
		return 0
	}
	d := places[1] - places[0]
	for i := 1; i < len(places); i++ {
		if places[i]-places[i-1] != d {
			return 0
		}
	}
	return max(d, 0)
}

// PlacesText formats a list of places: "0-7", "0-28/4" for every fourth, "0,1,5".
func PlacesText(places []int) string {
	if len(places) == 0 {
		return ""
	}
	switch d := Stride(places); {
	case len(places) > 2 && d == 1:
		return fmt.Sprintf("%d-%d", places[0], places[len(places)-1])
	case len(places) > 2 && d > 1:
		return fmt.Sprintf("%d-%d/%d", places[0], places[len(places)-1], d)
	}
	const most = 32
	var text []string
	for _, p := range places[:min(len(places), most)] {
		text = append(text, fmt.Sprint(p))
	}
	if len(places) > most {
		text = append(text, "…")
	}
	return strings.Join(text, ",")
}
