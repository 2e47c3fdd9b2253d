// SPDX-License-Identifier: Apache-2.0

// Package lookup finds the value of a location or a region without a map where it can.
package lookup

import "github.com/nccl-otf2/nccl-otf2/otf2"

// ByLocation maps locations to values. Recent look-ups bypass the map: events come in runs of few locations, and a
// look-up in the map takes as long as decoding the event. The zero value is empty.
type ByLocation[V any] struct {
	all map[otf2.LocationRef]V
	// nil for a single location: many readers have one row each
	recent *[recentLocations]recentLocation[V]
}

type recentLocation[V any] struct {
	location otf2.LocationRef
	known    bool // at has v
	v        V
}

// recentLocations is the number of locations that are found without the map.
const (
	recentBits      = 6
	recentLocations = 1 << recentBits
)

// slot returns the cache entry of a location.
func (b *ByLocation[V]) slot(l otf2.LocationRef) *recentLocation[V] {
	return &b.recent[l*0x9e3779b97f4a7c15>>(64-recentBits)]
}

// Get returns the value of a location, the zero value if it has none.
func (b *ByLocation[V]) Get(l otf2.LocationRef) V {
	if b.recent == nil {
		if len(b.all) < 2 {
			return b.all[l]
		}
		b.recent = new([recentLocations]recentLocation[V])
	}
	s := b.slot(l)
	if !s.known || s.location != l {
		*s = recentLocation[V]{l, true, b.all[l]}
	}
	return s.v
}

// Set sets the value of a location.
func (b *ByLocation[V]) Set(l otf2.LocationRef, v V) {
	if b.all == nil {
		b.all = make(map[otf2.LocationRef]V)
	}
	b.all[l] = v
	if b.recent != nil {
		*b.slot(l) = recentLocation[V]{l, true, v}
	}
}

// Delete removes the value of a location.
func (b *ByLocation[V]) Delete(l otf2.LocationRef) {
	delete(b.all, l)
	if b.recent != nil {
		*b.slot(l) = recentLocation[V]{}
	}
}

// All returns the map of all values; callers must not change it.
func (b *ByLocation[V]) All() map[otf2.LocationRef]V { return b.all }

// ByRegion maps regions to values, without a map for small ids, as NCCL's are. The zero value is empty.
type ByRegion[V any] struct {
	direct []V
	large  map[otf2.RegionRef]V
}

// directRegions bounds the ids that are looked up in a list.
const directRegions = 1 << 12

// Get returns the value of a region, the zero value if it has none.
func (b *ByRegion[V]) Get(r otf2.RegionRef) (v V) {
	if int(r) < len(b.direct) {
		return b.direct[r]
	}
	if r < directRegions {
		return v
	}
	return b.large[r]
}

// Set sets the value of a region.
func (b *ByRegion[V]) Set(r otf2.RegionRef, v V) {
	if r >= directRegions {
		if b.large == nil {
			b.large = make(map[otf2.RegionRef]V)
		}
		b.large[r] = v
		return
	}
	for int(r) >= len(b.direct) {
		var none V
		b.direct = append(b.direct, none)
	}
	b.direct[r] = v
}
