// SPDX-License-Identifier: Apache-2.0

// Package attribute finds our attributes among those that an archive defines: which attribute of package regions does
// an id stand for?
package attribute

import (
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Table maps an archive's attribute ids to the attributes of package regions. nil is the identity, for the event
// files of a process.
type Table struct {
	direct []otf2.AttributeRef // by id; noAttribute: another one
	large  map[otf2.AttributeRef]otf2.AttributeRef
}

const noAttribute = ^otf2.AttributeRef(0)

// directAttributes bounds the ids that are looked up in a list.
const directAttributes = 1 << 12

// Find finds the attributes by their names and types.
func Find(defs *otf2.Definitions) *Table {
	a := &Table{large: make(map[otf2.AttributeRef]otf2.AttributeRef)}
	for _, d := range defs.Attributes {
		name := defs.String(d.Name)
		at := slices.IndexFunc(regions.Attributes[:],
			func(r regions.Attribute) bool { return r.Type == d.Type && r.Name == name })
		if at < 0 || a.Has(regions.Attributes[at].Ref) { // the first of several with one name
			continue
		}
		ref := regions.Attributes[at].Ref
		if d.Self >= directAttributes {
			a.large[d.Self] = ref
			continue
		}
		for int(d.Self) >= len(a.direct) {
			a.direct = append(a.direct, noAttribute)
		}
		a.direct[d.Self] = ref
	}
	return a
}

// Resolve returns the attribute that an id stands for; ok is false for attributes that are not of package regions.
func (a *Table) Resolve(id otf2.AttributeRef) (ref otf2.AttributeRef, ok bool) {
	switch {
	case a == nil:
		return id, true
	case int(id) < len(a.direct):
		ref = a.direct[id]
		return ref, ref != noAttribute
	}
	ref, ok = a.large[id]
	return ref, ok
}

// Has reports whether the archive has an attribute.
func (a *Table) Has(ref otf2.AttributeRef) bool {
	return a == nil || slices.Contains(a.direct, ref) || slices.Contains(slices.Collect(maps.Values(a.large)), ref)
}

// Value returns the value of an attribute in an event.
func (a *Table) Value(ev *otf2.Event, want otf2.AttributeRef) (bits uint64, ok bool) {
	for i := range ev.Attributes {
		if ref, known := a.Resolve(ev.Attributes[i].ID); known && ref == want {
			return ev.Attributes[i].Bits, true
		}
	}
	return 0, false
}

// Last returns the value of an attribute in a list from the outermost event to the innermost one. The innermost one
// wins.
func (a *Table) Last(all []otf2.AttributeValue, want otf2.AttributeRef) (bits uint64, ok bool) {
	for i := len(all) - 1; i >= 0; i-- {
		if ref, known := a.Resolve(all[i].ID); known && ref == want {
			return all[i].Bits, true
		}
	}
	return 0, false
}
