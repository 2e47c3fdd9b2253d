// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// simpleDefinitions writes the global definitions of a simple view: those of the native archive with their ids, except
// for locations and location groups, and without those that only metrics, windows and calling contexts need.
type simpleDefinitions struct {
	w       *otf2.GlobalDefWriter
	native  *otf2.Definitions
	strings map[string]otf2.StringRef
	next    otf2.StringRef
	empty   otf2.RegionRef // UndefinedRegion: not defined yet
}

// text returns the id of a text, which it defines if need be.
func (d *simpleDefinitions) text(s string) otf2.StringRef {
	ref, ok := d.strings[s]
	if !ok {
		ref = d.next
		d.next++
		d.strings[s] = ref
		_ = d.w.String(ref, s) // the writer keeps its first error until it is closed
	}
	return ref
}

// noData returns the region of ranks without recorded events.
func (d *simpleDefinitions) noData() otf2.RegionRef {
	if d.empty == otf2.UndefinedRegion {
		d.empty = 0
		for _, r := range d.native.Regions {
			d.empty = max(d.empty, r.Self+1)
		}
		name := d.text(units.NoData)
		_ = d.w.Region(d.empty, name, name, d.text("nothing was recorded of this rank"), otf2.RegionRoleArtificial,
			otf2.ParadigmMeasurementSystem, otf2.RegionFlagNone, otf2.UndefinedString, 0, 0)
	}
	return d.empty
}

// define writes all definitions. Rows have been written; define adds one for each process without events.
func (s *simple) define(w *otf2.ArchiveWriter) error {
	d := &simpleDefinitions{w: w.Definitions(), native: s.defs, strings: make(map[string]otf2.StringRef),
		empty: otf2.UndefinedRegion}
	c := s.defs.Clock
	_ = d.w.ClockProperties(c.Resolution, c.Offset, max(c.Length+s.res.MaxShift, c.Length), c.Realtime)
	d.copyPlain()
	empty := make(map[int]*simpleRow)
	for i := range s.processes {
		p := &s.processes[i]
		_ = d.w.LocationGroup(otf2.LocationGroupRef(i), d.text(processName(p, i)), otf2.LocationGroupTypeProcess,
			p.parent, otf2.UndefinedLocationGroup)
		if p.events == 0 {
			r, err := s.emptyRow(w, d, i)
			if err != nil {
				return err
			}
			empty[i] = r
		}
	}
	for _, r := range s.rows {
		_ = d.w.Location(r.id, r.name, otf2.LocationTypeCPUThread, 0, otf2.LocationGroupRef(r.process))
	}
	s.defineComms(d, empty)
	return nil
}

// copyPlain copies definitions that refer to no location.
func (d *simpleDefinitions) copyPlain() {
	n := d.native
	for _, x := range n.Strings {
		_ = d.w.String(x.Self, x.Text)
		if _, known := d.strings[x.Text]; !known {
			d.strings[x.Text] = x.Self
		}
		d.next = max(d.next, x.Self+1)
	}
	for _, x := range n.Attributes {
		_ = d.w.Attribute(x.Self, x.Name, x.Type, x.Description)
	}
	for _, x := range n.Paradigms {
		_ = d.w.Paradigm(x.Paradigm, x.Name, x.Class)
	}
	if n.ParadigmDef(otf2.ParadigmMPI) == nil {
		_ = d.w.Paradigm(otf2.ParadigmMPI, d.text("NCCL"), otf2.ParadigmClassProcess)
	}
	for _, x := range n.SystemTreeNodes {
		_ = d.w.SystemTreeNode(x.Self, x.Name, x.Class, x.Parent)
	}
	for _, x := range n.SystemTreeNodeDomains {
		_ = d.w.SystemTreeNodeDomain(x.Node, x.Domain)
	}
	for _, x := range n.Regions {
		_ = d.w.Region(x.Self, x.Name, x.CanonicalName, x.Description, x.Role, x.Paradigm, x.Flags, x.SourceFile,
			x.BeginLine, x.EndLine)
	}
}

// nameNetwork is the communicator of transfers; it has the ranks of the communicator of all messages.
const nameNetwork = "network transfers"

// defineComms copies the communicators and adds the two of all ranks, for messages and for transfers: there, a
// message's peer is a process's number.
func (s *simple) defineComms(d *simpleDefinitions, empty map[int]*simpleRow) {
	group, found := otf2.GroupRef(0), false
	var positions []uint64
	for _, g := range s.defs.Groups {
		group = max(group, g.Self+1)
		members := g.Members
		switch g.Type {
		case otf2.GroupTypeMetric:
			continue
		case otf2.GroupTypeCommLocations:
			members = s.members(members, empty)
			if g.Paradigm == otf2.ParadigmMPI && !found {
				found = true
				positions, members = s.worldOf(members)
			}
		case otf2.GroupTypeLocations:
			members = s.members(members, empty)
		}
		_ = d.w.Group(g.Self, g.Name, g.Type, g.Paradigm, g.Flags, members)
	}
	if !found {
		var members []uint64
		positions, members = s.worldOf(nil)
		_ = d.w.Group(group, d.text(""), otf2.GroupTypeCommLocations, otf2.ParadigmMPI, otf2.GroupFlagNone, members)
		group++
	}
	_ = d.w.Group(group, d.text(""), otf2.GroupTypeCommGroup, otf2.ParadigmMPI, otf2.GroupFlagNone, positions)
	for _, c := range s.defs.Comms {
		_ = d.w.Comm(c.Self, c.Name, c.Group, c.Parent, c.Flags)
	}
	for _, c := range s.defs.InterComms {
		_ = d.w.InterComm(c.Self, c.Name, c.GroupA, c.GroupB, c.Common, c.Flags)
	}
	_ = d.w.Comm(s.world, d.text(nameWorld), group, otf2.UndefinedComm, otf2.CommFlagNone)
	if len(s.covered) > 0 {
		_ = d.w.Comm(s.network, d.text(nameNetwork), group, s.world, otf2.CommFlagNone)
	}
}

// worldOf returns the members of the communicator of all ranks, as positions in a list of locations that it extends as
// needed: first one row of each process, so that a peer is a process's number, then the other rows with messages.
func (s *simple) worldOf(locations []uint64) (positions, all []uint64) {
	at := make(map[uint64]int)
	for i, l := range locations {
		if _, twice := at[l]; !twice {
			at[l] = i
		}
	}
	position := func(r *simpleRow) uint64 {
		i, in := at[uint64(r.id)]
		if !in {
			i = len(locations)
			at[uint64(r.id)], locations = i, append(locations, uint64(r.id))
		}
		return uint64(i)
	}
	first := make([]*simpleRow, len(s.processes))
	for _, listed := range []bool{true, false} { // prefer one that is in the list already
		for _, r := range s.rows {
			if _, in := at[uint64(r.id)]; in == listed && first[r.process] == nil {
				first[r.process] = r
			}
		}
	}
	for _, r := range first {
		positions = append(positions, position(r))
	}
	for _, r := range s.rows {
		if r.messages && r != first[r.process] {
			positions = append(positions, position(r))
		}
	}
	return positions, locations
}

// members maps locations of the native archive to their new ids. A location that stands for several ranks without data
// appears once for each of them, in their order; a location without a row becomes its process's first one.
func (s *simple) members(native []uint64, empty map[int]*simpleRow) []uint64 {
	seen := make(map[uint64]int)
	out := slices.Clone(native)
	for i, m := range native {
		if r := s.byNative[otf2.LocationRef(m)]; r != nil {
			out[i] = uint64(r.id)
			continue
		}
		at := s.worldRanks[otf2.LocationRef(m)] + seen[m]
		seen[m]++
		if r := empty[at]; r != nil {
			out[i] = uint64(r.id)
		}
	}
	return out
}
