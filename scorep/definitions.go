// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// definitions collects an archive's global definitions and writes them, each before its first use. The ids of each kind
// start at 0, or after those of the archive that ours is merged with.
type definitions struct {
	otf2.Definitions
	refs map[string]otf2.StringRef // of strings
	from firstIDs
}

// firstIDs holds the first id to assign for each kind of definition.
type firstIDs struct {
	text          otf2.StringRef
	attribute     otf2.AttributeRef
	node          otf2.SystemTreeNodeRef
	locationGroup otf2.LocationGroupRef
	region        otf2.RegionRef
	group         otf2.GroupRef
	comm          otf2.CommRef
	rmaWin        otf2.RmaWinRef
	metricMember  otf2.MetricMemberRef
	metric        otf2.MetricRef // of classes and instances
}

func newDefinitions() *definitions {
	return &definitions{refs: make(map[string]otf2.StringRef)}
}

// text returns the id of a string. It drops NULs, which would end the string on disk.
func (d *definitions) text(s string) otf2.StringRef {
	s = clean(s)
	return keyed.EntryMade(d.refs, s, func() otf2.StringRef {
		ref := d.from.text + otf2.StringRef(len(d.Strings))
		d.Strings = append(d.Strings, otf2.String{Self: ref, Text: s})
		return ref
	})
}

func (d *definitions) node(name, class string, parent otf2.SystemTreeNodeRef,
	domain otf2.SystemTreeDomain) otf2.SystemTreeNodeRef {
	ref := d.from.node + otf2.SystemTreeNodeRef(len(d.SystemTreeNodes))
	d.SystemTreeNodes = append(d.SystemTreeNodes, otf2.SystemTreeNode{
		Self: ref, Name: d.text(name), Class: d.text(class), Parent: parent,
	})
	d.SystemTreeNodeDomains = append(d.SystemTreeNodeDomains, otf2.SystemTreeNodeDomain{Node: ref, Domain: domain})
	return ref
}

// property adds a property of a system tree node, unless the value is empty, that is, unknown.
func (d *definitions) property(node otf2.SystemTreeNodeRef, name, value string) {
	if value == "" {
		return
	}
	d.SystemTreeNodeProperties = append(d.SystemTreeNodeProperties, otf2.SystemTreeNodeProperty{
		Node: node, Name: d.text(name), Type: otf2.TypeString, Value: otf2.Value(d.text(value)),
	})
}

func (d *definitions) locationGroup(name string, typ otf2.LocationGroupType, node otf2.SystemTreeNodeRef,
	creator otf2.LocationGroupRef) otf2.LocationGroupRef {
	ref := d.from.locationGroup + otf2.LocationGroupRef(len(d.LocationGroups))
	d.LocationGroups = append(d.LocationGroups, otf2.LocationGroup{
		Self: ref, Name: d.text(name), Type: typ, SystemTreeParent: node, Creator: creator,
	})
	return ref
}

func (d *definitions) group(name string, typ otf2.GroupType, paradigm otf2.Paradigm, members []uint64) otf2.GroupRef {
	ref := d.from.group + otf2.GroupRef(len(d.Groups))
	d.Groups = append(d.Groups, otf2.Group{
		Self: ref, Name: d.text(name), Type: typ, Paradigm: paradigm, Members: members,
	})
	return ref
}

// attributes defines all attributes that event files may use. All processes use the same ids for them.
func (d *definitions) attributes() {
	for _, a := range regions.Attributes {
		d.Attributes = append(d.Attributes, otf2.Attribute{
			Self: d.from.attribute + a.Ref, Name: d.text(a.Name), Type: a.Type, Description: d.text(a.Description),
		})
	}
}

// write writes the definitions and returns their number for the anchor. begin, if set, first writes definitions that
// ours follow.
func (d *definitions) write(path string, chunkSize uint64, begin func(*otf2.GlobalDefWriter) error) (
	count uint64, err error) {
	w, err := otf2.CreateGlobalDefWriter(path, chunkSize)
	if err != nil {
		return 0, err
	}
	if begin != nil {
		if err := begin(w); err != nil {
			w.Abort()
			return 0, fmt.Errorf("write global definitions: %w", err)
		}
	}
	// The writer keeps its first error and returns it from Close.
	if d.Clock != (otf2.ClockProperties{}) {
		_ = w.ClockProperties(d.Clock.Resolution, d.Clock.Offset, d.Clock.Length, d.Clock.Realtime)
	}
	for _, s := range d.Strings {
		_ = w.String(s.Self, s.Text)
	}
	for _, p := range d.Paradigms {
		_ = w.Paradigm(p.Paradigm, p.Name, p.Class)
	}
	for _, p := range d.ParadigmProperties {
		_ = w.ParadigmProperty(p.Paradigm, p.Property, p.Type, p.Value)
	}
	for _, a := range d.Attributes {
		_ = w.Attribute(a.Self, a.Name, a.Type, a.Description)
	}
	for _, n := range d.SystemTreeNodes {
		_ = w.SystemTreeNode(n.Self, n.Name, n.Class, n.Parent)
	}
	for _, p := range d.SystemTreeNodeProperties {
		_ = w.SystemTreeNodeProperty(p.Node, p.Name, p.Type, p.Value)
	}
	for _, n := range d.SystemTreeNodeDomains {
		_ = w.SystemTreeNodeDomain(n.Node, n.Domain)
	}
	for _, g := range d.LocationGroups {
		_ = w.LocationGroup(g.Self, g.Name, g.Type, g.SystemTreeParent, g.Creator)
	}
	for _, p := range d.LocationGroupProperties {
		_ = w.LocationGroupProperty(p.LocationGroup, p.Name, p.Type, p.Value)
	}
	for _, l := range d.Locations {
		_ = w.Location(l.Self, l.Name, l.Type, l.Events, l.Group)
	}
	for _, p := range d.LocationProperties {
		_ = w.LocationProperty(p.Location, p.Name, p.Type, p.Value)
	}
	for _, r := range d.Regions {
		_ = w.Region(r.Self, r.Name, r.CanonicalName, r.Description, r.Role, r.Paradigm, r.Flags, r.SourceFile,
			r.BeginLine, r.EndLine)
	}
	for _, g := range d.Groups {
		_ = w.Group(g.Self, g.Name, g.Type, g.Paradigm, g.Flags, g.Members)
	}
	for _, c := range d.Comms {
		_ = w.Comm(c.Self, c.Name, c.Group, c.Parent, c.Flags)
	}
	for _, r := range d.RmaWins {
		_ = w.RmaWin(r.Self, r.Name, r.Comm, r.Flags)
	}
	d.writeMetrics(w)
	count = w.Count()
	if err := w.Close(); err != nil {
		return 0, fmt.Errorf("write global definitions: %w", err)
	}
	return count, nil
}

// chunkSizeFor returns a definition chunk size, in bytes, that every record fits into. The largest records are lists of
// members, of at most 9 bytes each.
func (d *definitions) chunkSizeFor() uint64 {
	const (
		smallest = 256 << 10
		largest  = 16 << 20
		overhead = 64
	)
	need := 0
	for _, g := range d.Groups {
		need = max(need, 9*len(g.Members))
	}
	for _, s := range d.Strings {
		need = max(need, len(s.Text))
	}
	size := uint64(smallest)
	for size < uint64(need+overhead) && size < largest {
		size *= 2
	}
	return size
}
