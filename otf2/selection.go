// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"cmp"
	"slices"
)

// Selection chooses events. The zero value chooses all.
type Selection struct {
	Locations []LocationRef // nil: all that are defined
	From      Timestamp     // first time wanted
	To        Timestamp     // last time wanted, 0: no limit
	Kinds     KindSet       // kinds wanted, empty: all

	// Among is how many locations are read at the same time, by iterations beside this one, too: they share
	// ReadOptions.Memory. 0: those of this one.
	Among int
}

// KindSet is a set of event kinds. The zero value is empty.
type KindSet struct{ bits [4]uint64 }

// Kinds returns the set of the given kinds.
func Kinds(kinds ...EventKind) (s KindSet) {
	for _, k := range kinds {
		s.bits[k/64] |= 1 << (k % 64)
	}
	return s
}

// Has reports whether k is in the set.
func (s *KindSet) Has(k EventKind) bool { return s.bits[k/64]>>(k%64)&1 != 0 }

// Empty reports whether the set has no kinds.
func (s *KindSet) Empty() bool { return s.bits == [4]uint64{} }

// filter is a selection made ready for reading.
type filter struct {
	from, to Timestamp
	kinds    KindSet
	all      bool // every kind
}

func newFilter(sel *Selection) *filter {
	f := &filter{from: sel.From, to: sel.To, kinds: sel.Kinds, all: sel.Kinds.Empty()}
	f.to = cmp.Or(f.to, UndefinedTimestamp)
	return f
}

// advance reads the next wanted event of r.
func (f *filter) advance(r *eventReader) (bool, error) {
	for {
		if !r.quick() {
			if ok, err := r.careful(); !ok {
				return false, err
			}
		}
		e := &r.event
		if e.Time > f.to {
			return false, nil // times do not decrease
		}
		if e.Time >= f.from && (f.all || f.kinds.Has(e.Kind)) {
			return true, nil
		}
	}
}

// selected returns the locations of a selection in ascending order.
func (a *Archive) selected(sel *Selection) []LocationRef {
	locations := slices.Clone(sel.Locations)
	if sel.Locations == nil {
		for i := range a.Defs.Locations {
			locations = append(locations, a.Defs.Locations[i].Self)
		}
	}
	slices.Sort(locations)
	return slices.Compact(locations)
}
