// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"fmt"
	"slices"
)

// SystemTreeNode is a part of the machine.
type SystemTreeNode struct {
	Parent      SystemTreeNodeID // None for a root; less than the node's own id
	Name        string
	Class       string // ClassMachine for the root, ClassNode for what runs processes
	Description string
	Attributes  []Attribute
}

// Classes that cube_info and readers of the older format look for, spelled like this.
const (
	ClassMachine = "machine"
	ClassNode    = "node"
)

// LocationGroup is a process, or what a process uses of an accelerator.
type LocationGroup struct {
	Node       SystemTreeNodeID
	Name       string // of processes unique: tools know them by it
	Rank       int    // Score-P counts processes and accelerators in one sequence
	Type       LocationGroupType
	Attributes []Attribute
}

// AttributeCreatingGroup names, at an accelerator, the process that uses it. scorep-score ignores those without.
const AttributeCreatingGroup = "Creating location group"

// Location is a thread or a stream: what has values of its own.
type Location struct {
	Group      LocationGroupID
	Name       string
	Rank       int // within the group
	Type       LocationType
	Attributes []Attribute
}

// LocationGroupType is the type of a location group.
type LocationGroupType uint8

// Types of location groups.
const (
	GroupProcess LocationGroupType = iota
	GroupMetrics                   // not written: scorep-score ends on it
	GroupAccelerator
)

var groupTypes = [...]string{GroupProcess: "process", GroupMetrics: "metrics", GroupAccelerator: "accelerator"}

// String returns the type as the anchor spells it.
func (t LocationGroupType) String() string {
	return spelled(groupTypes[:], int(t), "LocationGroupType")
}

// LocationType is the type of a location.
type LocationType uint8

// Types of locations.
const (
	LocationThread LocationType = iota
	LocationMetric
	LocationStream
)

var locationTypes = [...]string{LocationThread: "thread", LocationMetric: "metric",
	LocationStream: "accelerator stream"}

// locationTypeGPU is how LocationStream was once spelled.
const locationTypeGPU = "gpu"

// String returns the type as the anchor spells it.
func (t LocationType) String() string { return spelled(locationTypes[:], int(t), "LocationType") }

func spelled(names []string, i int, of string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", of, i)
}

// accelerated reports whether the definitions need the version of the format with accelerators.
func (d *Definitions) accelerated() bool {
	return slices.ContainsFunc(d.Groups, func(g LocationGroup) bool { return g.Type == GroupAccelerator }) ||
		slices.ContainsFunc(d.Locations, func(l Location) bool { return l.Type == LocationStream })
}

func (d *Definitions) checkSystem() error {
	if !slices.ContainsFunc(d.Nodes, func(n SystemTreeNode) bool { return n.Class == ClassNode }) {
		return invalid("no system tree node is of class %q: cube_info crashes without one", ClassNode)
	}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		owner := fmt.Sprintf("system tree node %d %q", i, n.Name)
		if n.Parent < None || int(n.Parent) >= i {
			return invalid("%s has parent %d: parents stand before their children, and roots have parent None", owner,
				n.Parent)
		}
		if err := checkTexts(owner, n.Name, n.Class, n.Description); err != nil {
			return err
		}
		if err := checkAttributes(owner, n.Attributes); err != nil {
			return err
		}
	}
	if err := d.checkGroups(); err != nil {
		return err
	}
	populated := make([]bool, len(d.Groups))
	for i := range d.Locations {
		l := &d.Locations[i]
		owner := fmt.Sprintf("location %d %q", i, l.Name)
		switch {
		case l.Group < 0 || int(l.Group) >= len(d.Groups):
			return invalid("%s is of location group %d of %d", owner, l.Group, len(d.Groups))
		case l.Rank < 0:
			return invalid("%s has rank %d: readers take none below 0", owner, l.Rank)
		case int(l.Type) >= len(locationTypes):
			return invalid("%s has the unknown type %d", owner, l.Type)
		}
		populated[l.Group] = true
		if err := checkText(owner, l.Name); err != nil {
			return err
		}
		if err := checkAttributes(owner, l.Attributes); err != nil {
			return err
		}
	}
	if i := slices.Index(populated, false); i >= 0 {
		return invalid("location group %d %q has no location: readers refuse such a profile", i, d.Groups[i].Name)
	}
	return nil
}

func (d *Definitions) checkGroups() error {
	if len(d.Groups) == 0 {
		return invalid("there is no location group, and so no location that could have values")
	}
	processes := make(map[string]bool)
	for i := range d.Groups {
		if g := &d.Groups[i]; g.Type == GroupProcess {
			if processes[g.Name] {
				return invalid(
					"location group %d: another process is named %q, tools identify processes by their names", i,
					g.Name)
			}
			processes[g.Name] = true
		}
	}
	for i := range d.Groups {
		g := &d.Groups[i]
		owner := fmt.Sprintf("location group %d %q", i, g.Name)
		switch {
		case g.Node < 0 || int(g.Node) >= len(d.Nodes):
			return invalid("%s is of system tree node %d of %d", owner, g.Node, len(d.Nodes))
		case g.Rank < 0:
			return invalid("%s has rank %d: readers take none below 0", owner, g.Rank)
		case g.Type == GroupMetrics:
			return invalid("%s is of type %s: scorep-score ends on it, give its locations to a process", owner, g.Type)
		case int(g.Type) >= len(groupTypes):
			return invalid("%s has the unknown type %d", owner, g.Type)
		}
		if err := checkText(owner, g.Name); err != nil {
			return err
		}
		if err := checkAttributes(owner, g.Attributes); err != nil {
			return err
		}
		if g.Type == GroupAccelerator && !processes[attributeOf(g.Attributes, AttributeCreatingGroup)] {
			return invalid(
				"%s needs the attribute %q with the name of a process: scorep-score ignores accelerators without",
				owner, AttributeCreatingGroup)
		}
	}
	return nil
}

func attributeOf(list []Attribute, key string) string {
	for _, a := range list {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// writeSystem writes the system tree and the topologies. Readers number nodes and groups in order and ignore their Id,
// so these numbers are written.
func (d *Definitions) writeSystem(x *xmlWriter) {
	parents, order := make([]int32, len(d.Nodes)), make([]int32, len(d.Nodes))
	for i := range d.Nodes {
		parents[i], order[i] = int32(d.Nodes[i].Parent), int32(i)
	}
	groups := groupBy(len(d.Groups), len(d.Nodes), func(i int) int { return int(d.Groups[i].Node) })
	locations := groupBy(len(d.Locations), len(d.Groups), func(i int) int { return int(d.Locations[i].Group) })
	groupNumber := make([]int, len(d.Groups))
	nodes, written := 0, 0
	newForest(parents, order).walk(func(id int32, _ int) {
		n := &d.Nodes[id]
		x.open("systemtreenode", Attribute{"Id", fmt.Sprint(nodes)})
		nodes++
		x.leaf("name", n.Name)
		x.leaf("class", n.Class)
		if n.Description != "" {
			x.leaf("descr", n.Description)
		}
		x.attributes(n.Attributes)
		for _, g := range groups.childrenOf(id) {
			groupNumber[g] = written
			d.writeGroup(x, written, &d.Groups[g], locations.childrenOf(g))
			written++
		}
	}, func(int32) { x.close("systemtreenode") })
	d.writeTopologies(x, groupNumber)
}

func (d *Definitions) writeGroup(x *xmlWriter, number int, g *LocationGroup, locations []int32) {
	x.open("locationgroup", Attribute{"Id", fmt.Sprint(number)})
	x.leaf("name", g.Name)
	x.leaf("rank", fmt.Sprint(g.Rank))
	x.leaf("type", g.Type.String())
	x.attributes(g.Attributes)
	for _, id := range locations {
		l := &d.Locations[id]
		x.open("location", Attribute{"Id", fmt.Sprint(id)})
		x.leaf("name", l.Name)
		x.leaf("rank", fmt.Sprint(l.Rank))
		x.leaf("type", l.Type.String())
		x.attributes(l.Attributes)
		x.close("location")
	}
	x.close("locationgroup")
}

// groupBy lists, for each of m owners, the members 0 to n−1 that have it, ascending.
func groupBy(n, m int, owner func(i int) int) *forest {
	f := &forest{first: make([]int32, m+1), children: make([]int32, n)}
	for i := range n {
		f.first[owner(i)+1]++
	}
	for i := range m {
		f.first[i+1] += f.first[i]
	}
	next := append([]int32(nil), f.first...)
	for i := range n {
		o := owner(i)
		f.children[next[o]] = int32(i)
		next[o]++
	}
	return f
}
