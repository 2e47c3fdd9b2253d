// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// references records which ids are defined in each id space.
type references struct {
	defs   *otf2.Definitions
	exists map[otf2.MappingType]func(id uint64) bool
}

func newReferences(defs *otf2.Definitions) *references {
	metrics := make(map[uint64]bool)
	for _, m := range defs.MetricClasses {
		metrics[uint64(m.Self)] = true
	}
	for _, m := range defs.MetricInstances {
		metrics[uint64(m.Self)] = true
	}
	files := make(map[uint64]bool)
	for _, f := range defs.IoRegularFiles {
		files[uint64(f.Self)] = true
	}
	for _, f := range defs.IoDirectories {
		files[uint64(f.Self)] = true
	}
	return &references{defs: defs, exists: map[otf2.MappingType]func(uint64) bool{
		otf2.MappingString:    func(id uint64) bool { return defs.StringDef(otf2.StringRef(id)) != nil },
		otf2.MappingAttribute: func(id uint64) bool { return defs.Attribute(otf2.AttributeRef(id)) != nil },
		otf2.MappingLocation:  func(id uint64) bool { return defs.Location(otf2.LocationRef(id)) != nil },
		otf2.MappingRegion:    func(id uint64) bool { return defs.Region(otf2.RegionRef(id)) != nil },
		otf2.MappingGroup:     func(id uint64) bool { return defs.Group(otf2.GroupRef(id)) != nil },
		otf2.MappingMetric:    func(id uint64) bool { return metrics[id] },
		otf2.MappingComm: func(id uint64) bool {
			return defs.Comm(otf2.CommRef(id)) != nil || defs.InterComm(otf2.CommRef(id)) != nil
		},
		otf2.MappingParameter: func(id uint64) bool { return defs.Parameter(otf2.ParameterRef(id)) != nil },
		otf2.MappingRmaWin:    func(id uint64) bool { return defs.RmaWin(otf2.RmaWinRef(id)) != nil },
		otf2.MappingSourceCodeLocation: func(id uint64) bool {
			return defs.SourceCodeLocation(
				otf2.SourceCodeLocationRef(id)) != nil
		},
		otf2.MappingCallingContext: func(id uint64) bool {
			return defs.CallingContext(
				otf2.CallingContextRef(id)) != nil
		},
		otf2.MappingInterruptGenerator: func(id uint64) bool {
			return defs.InterruptGenerator(
				otf2.InterruptGeneratorRef(id)) != nil
		},
		otf2.MappingIoFile:   func(id uint64) bool { return files[id] },
		otf2.MappingIoHandle: func(id uint64) bool { return defs.IoHandle(otf2.IoHandleRef(id)) != nil },
		otf2.MappingLocationGroup: func(id uint64) bool {
			return defs.LocationGroup(
				otf2.LocationGroupRef(id)) != nil
		},
	}}
}

// defined reports whether an id of a space is defined. In unknown spaces, all ids count as defined.
func (r *references) defined(space otf2.MappingType, id uint64) bool {
	exists := r.exists[space]
	return exists == nil || exists(id)
}

// typeSpaces maps types of attribute values that are references to their id spaces.
var typeSpaces = map[otf2.Type]otf2.MappingType{
	otf2.TypeString: otf2.MappingString, otf2.TypeAttribute: otf2.MappingAttribute,
	otf2.TypeLocation: otf2.MappingLocation,
	otf2.TypeRegion:   otf2.MappingRegion, otf2.TypeGroup: otf2.MappingGroup, otf2.TypeMetric: otf2.MappingMetric,
	otf2.TypeComm: otf2.MappingComm, otf2.TypeParameter: otf2.MappingParameter, otf2.TypeRmaWin: otf2.MappingRmaWin,
	otf2.TypeSourceCodeLocation: otf2.MappingSourceCodeLocation, otf2.TypeCallingContext: otf2.MappingCallingContext,
	otf2.TypeInterruptGenerator: otf2.MappingInterruptGenerator, otf2.TypeIoFile: otf2.MappingIoFile,
	otf2.TypeIoHandle: otf2.MappingIoHandle, otf2.TypeLocationGroup: otf2.MappingLocationGroup,
}

// definitionCheck checks everything that does not need events.
type definitionCheck struct {
	*Findings
	anchor *otf2.Anchor
	defs   *otf2.Definitions
}

func (c *definitionCheck) run() {
	c.anchorCounts()
	c.clock()
	c.ids()
	c.strings()
	c.systemTree()
	c.locations()
	c.groups()
	c.comms()
	c.windows()
}

func (c *definitionCheck) anchorCounts() {
	if n := uint64(len(c.defs.Order)); c.anchor.GlobalDefs != n {
		c.General(RuleAnchor, "the anchor announces %d global definitions, the file has %d", c.anchor.GlobalDefs, n)
	}
	if n := uint64(len(c.defs.Locations)); c.anchor.Locations != n {
		c.General(RuleAnchor, "the anchor announces %d locations, %d are defined", c.anchor.Locations, n)
	}
}

func (c *definitionCheck) clock() {
	n := 0
	for _, k := range c.defs.Order {
		if k == otf2.DefClockProperties {
			n++
		}
	}
	if n != 1 {
		c.General(RuleClock, "clock properties are defined %d times instead of once", n)
	} else if c.defs.Clock.Resolution == 0 {
		c.General(RuleClock, "the timer's resolution is 0 ticks per second")
	}
}

// ids checks that the ids of each kind are 0, 1, 2, … in that order. Location ids may have any values, but each only
// once.
func (c *definitionCheck) ids() {
	dense(c, "string", c.defs.Strings, func(d *otf2.String) uint64 { return uint64(d.Self) })
	dense(c, "attribute", c.defs.Attributes, func(d *otf2.Attribute) uint64 { return uint64(d.Self) })
	dense(c, "system tree node", c.defs.SystemTreeNodes, func(d *otf2.SystemTreeNode) uint64 { return uint64(d.Self) })
	dense(c, "location group", c.defs.LocationGroups, func(d *otf2.LocationGroup) uint64 { return uint64(d.Self) })
	dense(c, "region", c.defs.Regions, func(d *otf2.Region) uint64 { return uint64(d.Self) })
	dense(c, "group", c.defs.Groups, func(d *otf2.Group) uint64 { return uint64(d.Self) })
	dense(c, "parameter", c.defs.Parameters, func(d *otf2.Parameter) uint64 { return uint64(d.Self) })
	dense(c, "RMA window", c.defs.RmaWins, func(d *otf2.RmaWin) uint64 { return uint64(d.Self) })
	if len(c.defs.InterComms) == 0 { // they share the ids of communicators
		dense(c, "communicator", c.defs.Comms, func(d *otf2.Comm) uint64 { return uint64(d.Self) })
	}
	seen := make(map[otf2.LocationRef]bool, len(c.defs.Locations))
	for _, l := range c.defs.Locations {
		if seen[l.Self] {
			c.General(RuleIDs, "location %d is defined twice", l.Self)
		}
		seen[l.Self] = true
	}
}

func dense[T any](c *definitionCheck, kind string, defs []T, self func(*T) uint64) {
	for i := range defs {
		if id := self(&defs[i]); id != uint64(i) {
			c.General(RuleIDs, "%s %d stands at place %d: ids must be 0, 1, 2, … in order", kind, id, i)
			return // the others are only shifted
		}
	}
}

// text checks a reference to a string. It may be undefined where OTF2 allows that (optional).
func (c *definitionCheck) text(ref otf2.StringRef, optional bool, format string, args ...any) {
	if c.defs.StringDef(ref) == nil && !(optional && ref == otf2.UndefinedString) {
		c.General(RuleReference, "%s: string %d is not defined", fmt.Sprintf(format, args...), ref)
	}
}

func (c *definitionCheck) strings() {
	for _, d := range c.defs.Attributes {
		c.text(d.Name, false, "name of attribute %d", d.Self)
		c.text(d.Description, true, "description of attribute %d", d.Self)
	}
	for _, d := range c.defs.Regions {
		c.text(d.Name, false, "name of region %d", d.Self)
		c.text(d.CanonicalName, true, "canonical name of region %d", d.Self)
		c.text(d.Description, true, "description of region %d", d.Self)
		c.text(d.SourceFile, true, "source file of region %d", d.Self)
	}
	for _, d := range c.defs.LocationProperties {
		c.text(d.Name, false, "property of location %d", d.Location)
		if c.defs.Location(d.Location) == nil {
			c.General(RuleReference, "property of location %d, which is not defined", d.Location)
		}
	}
	for _, d := range c.defs.Paradigms {
		c.text(d.Name, false, "name of paradigm %v", d.Paradigm)
	}
	for _, d := range c.defs.SystemTreeNodeProperties {
		c.text(d.Name, false, "property of system tree node %d", d.Node)
		if c.defs.SystemTreeNode(d.Node) == nil {
			c.General(RuleReference, "property of system tree node %d, which is not defined", d.Node)
		}
		if d.Type == otf2.TypeString {
			c.text(otf2.StringRef(d.Value), false, "value of a property of system tree node %d", d.Node)
		}
	}
}

func (c *definitionCheck) systemTree() {
	for _, d := range c.defs.SystemTreeNodes {
		c.text(d.Name, false, "name of system tree node %d", d.Self)
		c.text(d.Class, false, "class of system tree node %d", d.Self)
		if d.Parent != otf2.UndefinedSystemTreeNode && (c.defs.SystemTreeNode(d.Parent) == nil || d.Parent >= d.Self) {
			c.General(RuleReference, "system tree node %d: its parent %d is not defined before it", d.Self, d.Parent)
		}
	}
	for _, d := range c.defs.SystemTreeNodeDomains {
		if c.defs.SystemTreeNode(d.Node) == nil {
			c.General(RuleReference, "domain of system tree node %d, which is not defined", d.Node)
		}
	}
}

// locations checks the rules of OTF2 3.0 for location groups: a PROCESS has at least one CPU_THREAD and no
// ACCELERATOR_STREAM; an ACCELERATOR has only streams and was created by a PROCESS.
func (c *definitionCheck) locations() {
	type held struct{ threads, streams int }
	in := make(map[otf2.LocationGroupRef]*held)
	for _, g := range c.defs.LocationGroups {
		in[g.Self] = new(held)
		c.text(g.Name, false, "name of location group %d", g.Self)
		if g.SystemTreeParent != otf2.UndefinedSystemTreeNode && c.defs.SystemTreeNode(g.SystemTreeParent) == nil {
			c.General(RuleReference, "location group %d: system tree node %d is not defined", g.Self,
				g.SystemTreeParent)
		}
	}
	for _, l := range c.defs.Locations {
		c.text(l.Name, false, "name of location %d", l.Self)
		h := in[l.Group]
		if h == nil {
			c.General(RuleReference, "location %d: location group %d is not defined", l.Self, l.Group)
			continue
		}
		switch l.Type {
		case otf2.LocationTypeCPUThread:
			h.threads++
		case otf2.LocationTypeAcceleratorStream:
			h.streams++
		}
	}
	for _, g := range c.defs.LocationGroups {
		h := in[g.Self]
		switch g.Type {
		case otf2.LocationGroupTypeProcess:
			if h.threads == 0 {
				c.General(RuleLocationGroup, "PROCESS group %d has no CPU_THREAD location", g.Self)
			}
			if h.streams > 0 {
				c.General(RuleLocationGroup, "PROCESS group %d has %d ACCELERATOR_STREAM locations", g.Self, h.streams)
			}
		case otf2.LocationGroupTypeAccelerator:
			if h.threads > 0 {
				c.General(RuleLocationGroup, "ACCELERATOR group %d has %d CPU_THREAD locations", g.Self, h.threads)
			}
			if h.streams == 0 {
				c.General(RuleLocationGroup, "ACCELERATOR group %d has no ACCELERATOR_STREAM location", g.Self)
			}
			if creator := c.defs.LocationGroup(g.Creator); creator == nil ||
				creator.Type != otf2.LocationGroupTypeProcess {
				c.General(RuleLocationGroup, "ACCELERATOR group %d was not created by a PROCESS group", g.Self)
			}
		}
	}
}

func (c *definitionCheck) groups() {
	world := make(map[otf2.Paradigm]int)
	for _, g := range c.defs.Groups {
		c.text(g.Name, true, "name of group %d", g.Self)
		var exists func(uint64) bool
		kind := "location"
		switch g.Type {
		case otf2.GroupTypeCommLocations:
			if _, twice := world[g.Paradigm]; twice {
				c.General(RuleMembers, "group %d is a second COMM_LOCATIONS of its paradigm", g.Self)
			}
			world[g.Paradigm] = len(g.Members)
			exists = func(id uint64) bool { return c.defs.Location(otf2.LocationRef(id)) != nil }
		case otf2.GroupTypeLocations:
			exists = func(id uint64) bool { return c.defs.Location(otf2.LocationRef(id)) != nil }
		case otf2.GroupTypeRegions:
			kind = "region"
			exists = func(id uint64) bool { return c.defs.Region(otf2.RegionRef(id)) != nil }
		case otf2.GroupTypeCommGroup:
			kind = "entry of COMM_LOCATIONS"
			n, ok := world[g.Paradigm]
			if !ok {
				c.General(RuleMembers, "group %d has no COMM_LOCATIONS of its paradigm before it", g.Self)
				continue
			}
			exists = func(id uint64) bool { return id < uint64(n) }
		default:
			continue
		}
		for i, m := range g.Members {
			if !exists(m) {
				c.General(RuleMembers, "group %d: member %d is %s %d, which is not there", g.Self, i, kind, m)
				break
			}
		}
	}
}

func (c *definitionCheck) comms() {
	for _, d := range c.defs.Comms {
		c.text(d.Name, false, "name of communicator %d", d.Self)
		g := c.defs.Group(d.Group)
		switch {
		case g == nil:
			c.General(RuleReference, "communicator %d: group %d is not defined", d.Self, d.Group)
		case g.Type != otf2.GroupTypeCommGroup && g.Type != otf2.GroupTypeCommSelf:
			c.General(RuleMembers, "communicator %d: group %d is a %v, no group of ranks", d.Self, d.Group, g.Type)
		}
		if d.Parent != otf2.UndefinedComm && (c.defs.Comm(d.Parent) == nil || d.Parent >= d.Self) {
			c.General(RuleReference, "communicator %d: its parent %d is not defined before it", d.Self, d.Parent)
		}
	}
}

func (c *definitionCheck) windows() {
	for _, d := range c.defs.RmaWins {
		c.text(d.Name, false, "name of RMA window %d", d.Self)
		if c.defs.Comm(d.Comm) == nil && c.defs.InterComm(d.Comm) == nil {
			c.General(RuleReference, "RMA window %d: communicator %d is not defined", d.Self, d.Comm)
		}
	}
}
