// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// system is the system tree of a profile, with the mapping of a timeline's rows to its locations.
//
//	machine → node → process      its threads, and the work of its proxies
//	                 accelerator  the ranks of communicators on a GPU, and its streams
//
// Names are the same in all runs: processes are numbered in world order, communicators named by the user's name and
// their members' ranks. Simultaneous communicators of one name are numbered; a later one shares the location of one
// that is gone.
type system struct {
	nodes      []cube.SystemTreeNode
	groups     []cube.LocationGroup
	locations  []cube.Location
	ids        map[otf2.LocationRef]cube.LocationID
	comms      map[otf2.LocationRef]string // name of a row's communicator
	processes  int
	topologies []cube.Topology
}

// namedLocation is a location under construction: a name in a group.
type namedLocation struct {
	group otf2.LocationGroupRef
	order int // by kind
	typ   cube.LocationType
	name  string
}

// Order of locations within their group.
var kindOrder = map[description.LocationKind]int{description.KindThread: 0, description.KindEnqueue: 1,
	description.KindNetSend: 2, description.KindNetRecv: 3, description.KindRank: 4, description.KindStream: 5}

func newSystem(defs *otf2.Definitions, rows map[otf2.LocationRef]*rowSum) *system {
	s := &system{ids: make(map[otf2.LocationRef]cube.LocationID), comms: nameCommunicators(defs, rows)}
	byName := make(map[namedLocation][]otf2.LocationRef)
	seen := make(map[otf2.LocationGroupRef]bool)
	for ref, r := range rows {
		pl := namedLocation{group: groupOf(defs, ref), order: kindOrder[r.Kind], name: s.rowName(defs, ref, &r.Row)}
		if d := defs.Location(ref); d != nil && d.Type == otf2.LocationTypeAcceleratorStream {
			pl.typ = cube.LocationStream
		}
		byName[pl] = append(byName[pl], ref)
		seen[pl.group] = true
	}
	hosts := s.defineNodes(defs)
	names := make(map[string]int)
	processName := make(map[otf2.LocationGroupRef]string)
	groups := make(map[otf2.LocationGroupRef]cube.LocationGroupID)
	for _, accelerators := range []bool{false, true} {
		for _, g := range defs.LocationGroups {
			if (g.Type == otf2.LocationGroupTypeAccelerator) != accelerators || accelerators && !seen[g.Self] {
				continue
			}
			out := cube.LocationGroup{Name: clean(defs.String(g.Name)), Rank: len(s.groups)}
			if !accelerators {
				if !strings.HasPrefix(out.Name, "Rank ") && !strings.HasPrefix(out.Name, "MPI Rank ") {
					out.Name = fmt.Sprintf("Process %d", s.processes)
				}
				if names[out.Name]++; names[out.Name] > 1 {
					out.Name += fmt.Sprintf(" #%d", names[out.Name])
				}
				processName[g.Self] = out.Name
				s.processes++
				out.Node = hosts.nodeOf(defs, g.SystemTreeParent)
			} else {
				creator := processName[g.Creator]
				if creator == "" {
					continue // its owner is unknown: see defineOwnerless
				}
				out.Type = cube.GroupAccelerator
				out.Name = creator + " " + deviceName(out.Name)
				if names[out.Name]++; names[out.Name] > 1 {
					out.Name += fmt.Sprintf(" #%d", names[out.Name])
				}
				out.Attributes = append([]cube.Attribute{{Key: cube.AttributeCreatingGroup, Value: creator}},
					deviceAttributes(defs, g.SystemTreeParent)...)
				if c := defs.LocationGroup(g.Creator); c != nil {
					out.Node = hosts.nodeOf(defs, c.SystemTreeParent)
				}
			}
			groups[g.Self] = cube.LocationGroupID(len(s.groups))
			s.groups = append(s.groups, out)
		}
	}
	s.defineOwnerless(defs, seen, groups, hosts)
	s.defineLocations(byName, groups)
	s.defineTopologies(rows)
	return s
}

// defineOwnerless gives groups to locations whose group has no owner: the archive does not define the group, or it is
// an accelerator without a process. They become processes, because tools leave out accelerators without one.
func (s *system) defineOwnerless(defs *otf2.Definitions, seen map[otf2.LocationGroupRef]bool,
	groups map[otf2.LocationGroupRef]cube.LocationGroupID, hosts *hostNodes) {
	for _, ref := range slices.Sorted(maps.Keys(seen)) {
		if _, known := groups[ref]; known {
			continue
		}
		out := cube.LocationGroup{Name: fmt.Sprintf("undefined location group %d", ref), Rank: len(s.groups)}
		if g := defs.LocationGroup(ref); g != nil {
			out.Name = fmt.Sprintf("location group %d of no process, %q", ref, clean(defs.String(g.Name)))
			out.Node = hosts.nodeOf(defs, g.SystemTreeParent)
		} else {
			out.Node = hosts.unknownNode()
			if ref == otf2.UndefinedLocationGroup {
				out.Name = "no location group"
			}
		}
		groups[ref] = cube.LocationGroupID(len(s.groups))
		s.groups = append(s.groups, out)
		s.processes++
	}
}

// defineLocations numbers the locations, group by group.
func (s *system) defineLocations(byName map[namedLocation][]otf2.LocationRef,
	groups map[otf2.LocationGroupRef]cube.LocationGroupID) {
	type entry struct {
		namedLocation
		in   cube.LocationGroupID
		refs []otf2.LocationRef
	}
	var all []entry
	used := make(map[cube.LocationGroupID]bool)
	for pl, refs := range byName {
		in := groups[pl.group]
		used[in] = true
		all = append(all, entry{pl, in, refs})
	}
	for i := range s.groups {
		if id := cube.LocationGroupID(i); !used[id] {
			all = append(all, entry{namedLocation: namedLocation{name: "no data"}, in: id})
		}
	}
	slices.SortFunc(all, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.in, y.in), cmp.Compare(x.order, y.order), compareNames(x.name, y.name))
	})
	rank := make(map[cube.LocationGroupID]int)
	for _, e := range all {
		id := cube.LocationID(len(s.locations))
		s.locations = append(s.locations, cube.Location{Group: e.in, Name: e.name, Rank: rank[e.in], Type: e.typ})
		rank[e.in]++
		for _, ref := range e.refs {
			s.ids[ref] = id
		}
	}
}

// compareNames compares names, the numbers in them by value.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(padded(a), padded(b)), cmp.Compare(a, b))
}

var digits = regexp.MustCompile(`\d+`)

func padded(s string) string {
	return digits.ReplaceAllStringFunc(s, func(d string) string { return fmt.Sprintf("%020s", d) })
}

func groupOf(defs *otf2.Definitions, ref otf2.LocationRef) otf2.LocationGroupRef {
	if d := defs.Location(ref); d != nil {
		return d.Group
	}
	return otf2.UndefinedLocationGroup
}

// deviceName is the name of an accelerator's group below its process: its own name without the process's.
func deviceName(name string) string {
	if i := strings.LastIndex(name, "GPU "); i >= 0 {
		return name[i:]
	}
	return name
}

// deviceAttributes identifies the GPU.
func deviceAttributes(defs *otf2.Definitions, node otf2.SystemTreeNodeRef) (list []cube.Attribute) {
	for _, p := range defs.SystemTreeNodeProperties {
		if name := defs.String(p.Name); p.Node == node && p.Type == otf2.TypeString &&
			(name == "UUID" || name == "PCI" || name == "NAME") {
			list = append(list, cube.Attribute{Key: name, Value: clean(defs.String(otf2.StringRef(p.Value)))})
		}
	}
	return list
}

// hostNodes are the system tree nodes of hosts.
type hostNodes struct {
	system  *system
	ids     map[otf2.SystemTreeNodeRef]cube.SystemTreeNodeID
	unknown cube.SystemTreeNodeID // 0: not needed so far
}

// unknownNode returns the node for locations on no host of the archive.
func (h *hostNodes) unknownNode() cube.SystemTreeNodeID {
	if h.unknown == 0 {
		h.unknown = cube.SystemTreeNodeID(len(h.system.nodes))
		h.system.nodes = append(h.system.nodes, cube.SystemTreeNode{Parent: 0, Name: "node unknown",
			Class: cube.ClassNode})
	}
	return h.unknown
}

// nodeOf returns the nearest node of class "node" at or above ref.
func (h *hostNodes) nodeOf(defs *otf2.Definitions, ref otf2.SystemTreeNodeRef) cube.SystemTreeNodeID {
	for range len(defs.SystemTreeNodes) {
		if id, ok := h.ids[ref]; ok {
			return id
		}
		n := defs.SystemTreeNode(ref)
		if n == nil {
			break
		}
		ref = n.Parent
	}
	return h.unknownNode()
}

func (s *system) defineNodes(defs *otf2.Definitions) *hostNodes {
	h := &hostNodes{system: s, ids: make(map[otf2.SystemTreeNodeRef]cube.SystemTreeNodeID)}
	s.nodes = append(s.nodes, cube.SystemTreeNode{Parent: cube.None, Name: "machine", Class: cube.ClassMachine})
	for _, n := range defs.SystemTreeNodes {
		class := defs.String(n.Class)
		if class == cube.ClassMachine && n.Parent == otf2.UndefinedSystemTreeNode {
			s.nodes[0].Name = "machine " + clean(defs.String(n.Name))
		}
		if class == cube.ClassNode {
			h.ids[n.Self] = cube.SystemTreeNodeID(len(s.nodes))
			s.nodes = append(s.nodes, cube.SystemTreeNode{Parent: 0, Name: "node " + clean(defs.String(n.Name)),
				Class: cube.ClassNode})
		}
	}
	if len(s.nodes) == 1 {
		h.unknownNode()
	}
	return h
}

// clean returns a text that profiles can hold.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// rowName returns the name of a location.
func (s *system) rowName(defs *otf2.Definitions, ref otf2.LocationRef, r *profile.Row) string {
	name := ""
	if d := defs.Location(ref); d != nil {
		name = clean(defs.String(d.Name))
	}
	comm := s.comms[ref]
	switch {
	case r.Others > 0:
		comm = "further communicators"
	case comm == "":
		comm = "NCCL"
	}
	_, rank := naming.Label(name)
	if r.Kind == description.KindRank {
		if r.Others > 0 || rank == "" {
			return comm
		}
		return comm + regions.RankRow + rank
	}
	if rank != "" && r.Others == 0 { // one of several ranks of the process
		comm += regions.RankRow + rank
	}
	switch r.Kind {
	case description.KindEnqueue:
		return comm + " enqueue"
	case description.KindNetSend:
		if naming.IsPXN(name) {
			return "PXN send"
		}
		return comm + regions.SendRow
	case description.KindNetRecv:
		return comm + regions.RecvRow
	}
	return name
}

// nameCommunicators names the communicators of rows: of ranks and of rows that belong to ranks.
func nameCommunicators(defs *otf2.Definitions, rows map[otf2.LocationRef]*rowSum) map[otf2.LocationRef]string {
	names := make(map[otf2.LocationRef]string)
	var slots slotTable
	for _, c := range placement.Communicators(defs) {
		if len(c.Members) < 2 || !slices.ContainsFunc(
			c.Members, func(l otf2.LocationRef) bool { return rows[l] != nil && rows[l].First != 0 }) {
			continue
		}
		name := strings.TrimSpace(userName(c.Name) + " " + c.Places)
		name = slots.assignName(name, 0, rows, c.Members)
		for _, l := range c.Members {
			names[l] = name
		}
	}
	var alone []otf2.LocationRef
	for ref, r := range rows {
		if _, known := names[ref]; r.Kind == description.KindRank && !known {
			alone = append(alone, ref)
		}
	}
	slices.Sort(alone)
	for _, ref := range alone {
		names[ref] = slots.assignName("comm of one", groupOf(defs, ref), rows, []otf2.LocationRef{ref})
	}
	// Other rows have the label that the row of the communicator's rank has.
	type label struct {
		process otf2.LocationGroupRef
		text    string
	}
	labels := make(map[label]string)
	text := func(ref otf2.LocationRef) label {
		l := label{process: groupOf(defs, ref)}
		if g := defs.LocationGroup(l.process); g != nil && g.Type == otf2.LocationGroupTypeAccelerator {
			l.process = g.Creator
		}
		d := defs.Location(ref)
		if d == nil {
			return l
		}
		l.text, _ = naming.Label(defs.String(d.Name))
		return l
	}
	for ref, name := range names {
		l := text(ref)
		if other, twice := labels[l]; twice && other != name {
			name = "" // several ranks match
		}
		labels[l] = name
	}
	for ref, r := range rows {
		switch r.Kind {
		case description.KindEnqueue, description.KindNetSend, description.KindNetRecv:
			names[ref] = labels[text(ref)]
		}
	}
	return names
}

var (
	ownName = regexp.MustCompile(`^ncclComm 0x[0-9a-f]+`)
	copyOf  = regexp.MustCompile(` #\d+$`)
)

// userName is the name that the user gave a communicator, or "comm": ids differ from run to run.
func userName(name string) string {
	name = clean(copyOf.ReplaceAllString(name, ""))
	if name == "" || ownName.MatchString(name) {
		return "comm"
	}
	return name
}

// slotTable numbers communicators of one name that exist at the same time.
type slotTable map[slotKey][]slot

type slotKey struct {
	name  string
	group otf2.LocationGroupRef // of communicators of one rank
}

type slot struct {
	last  uint64 // time of the last event
	ended bool
}

// assignName gives a communicator the first name that no communicator alive at the same time has.
func (t *slotTable) assignName(name string, group otf2.LocationGroupRef, rows map[otf2.LocationRef]*rowSum,
	members []otf2.LocationRef) string {
	if *t == nil {
		*t = make(slotTable)
	}
	mine, first := slot{ended: true}, uint64(0)
	for _, l := range members {
		r := rows[l]
		if r == nil || r.First == 0 {
			continue
		}
		if first == 0 || r.First < first {
			first = r.First
		}
		mine.last = max(mine.last, r.Last)
		mine.ended = mine.ended && r.Ended
	}
	key := slotKey{name, group}
	list := (*t)[key]
	at := slices.IndexFunc(list, func(s slot) bool { return s.ended && s.last < first })
	if at < 0 {
		at = len(list)
		list = append(list, slot{})
	}
	list[at] = mine
	(*t)[key] = list
	if at > 0 {
		name += fmt.Sprintf(" #%d", at+1)
	}
	return name
}
