// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/nccl-otf2/nccl-otf2/otf2"

// ByLocation finds what belongs to locations. What was asked for lately is found without a map: events of the same few
// locations follow each other, and a look-up for each of them takes as long as decoding it. The zero value has nothing.
type ByLocation[V any] struct {
	all map[otf2.LocationRef]V
	// nil as long as one location has something: many readers have one row each
	recent *[recentLocations]recentLocation[V]
}

type recentLocation[V any] struct {
	at    otf2.LocationRef
	known bool // at has v
	v     V
}

// recentLocations is how many are found without the map.
const (
	recentBits      = 6
	recentLocations = 1 << recentBits
)

// slot is where a location is kept if it was asked for lately.
func (b *ByLocation[V]) slot(l otf2.LocationRef) *recentLocation[V] {
	return &b.recent[l*0x9e3779b97f4a7c15>>(64-recentBits)]
}

// Get is what a location has, the zero value if it has nothing.
func (b *ByLocation[V]) Get(l otf2.LocationRef) V {
	if b.recent == nil {
		if len(b.all) < 2 {
			return b.all[l]
		}
		b.recent = new([recentLocations]recentLocation[V])
	}
	s := b.slot(l)
	if !s.known || s.at != l {
		*s = recentLocation[V]{l, true, b.all[l]}
	}
	return s.v
}

// Set gives a location something.
func (b *ByLocation[V]) Set(l otf2.LocationRef, v V) {
	if b.all == nil {
		b.all = make(map[otf2.LocationRef]V)
	}
	b.all[l] = v
	if b.recent != nil {
		*b.slot(l) = recentLocation[V]{l, true, v}
	}
}

// delete takes what a location has.
func (b *ByLocation[V]) delete(l otf2.LocationRef) {
	delete(b.all, l)
	if b.recent != nil {
		*b.slot(l) = recentLocation[V]{}
	}
}

// All is what locations have; it must not be changed.
func (b *ByLocation[V]) All() map[otf2.LocationRef]V { return b.all }

// ByRegion finds what belongs to regions, without a map where their ids are small, as NCCL's are. The zero value has
// nothing.
type ByRegion[V any] struct {
	direct []V
	large  map[otf2.RegionRef]V
}

// directRegions bounds the ids that are looked up in a list.
const directRegions = 1 << 12

// Get is what a region has, the zero value if it has nothing.
func (b *ByRegion[V]) Get(r otf2.RegionRef) (v V) {
	if int(r) < len(b.direct) {
		return b.direct[r]
	}
	if r < directRegions {
		return v
	}
	return b.large[r]
}

// Set gives a region something.
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
