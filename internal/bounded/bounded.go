// SPDX-License-Identifier: Apache-2.0

// Package bounded holds open events by handle, up to a number.
package bounded

import (
	"iter"
	"maps"
	"slices"
)

// Map holds open events by handle, up to a number: NCCL does not end every event that it begins (aborts,
// docs/nccl-profiler-api.md §3.4), and what is never ended must not add up. Beyond the number the oldest goes.
type Map[V any] struct {
	most  int
	m     map[uint64]V
	order []uint64 // handles as they came; some may be gone
}

// New makes a map of at most so many events.
func New[V any](most int) Map[V] {
	return Map[V]{most: most, m: make(map[uint64]V)}
}

// Get gives the event of a handle; the zero value if there is none.
func (b *Map[V]) Get(h uint64) V { return b.m[h] }

// Has tells whether there is an event of a handle.
func (b *Map[V]) Has(h uint64) bool {
	_, ok := b.m[h]
	return ok
}

// Remove forgets an event.
func (b *Map[V]) Remove(h uint64) { delete(b.m, h) }

// RemoveFunc forgets the events that f says.
func (b *Map[V]) RemoveFunc(f func(h uint64, v V) bool) { maps.DeleteFunc(b.m, f) }

// Len is the number of events.
func (b *Map[V]) Len() int { return len(b.m) }

// Handles are those of all events, in any order. Events may be removed on the way.
func (b *Map[V]) Handles() iter.Seq[uint64] { return maps.Keys(b.m) }

// Sorted are the handles of all events in their order. Events may be removed on the way.
func (b *Map[V]) Sorted() iter.Seq[uint64] { return slices.Values(slices.Sorted(maps.Keys(b.m))) }

// Widen lets the map hold so many events from now on.
func (b *Map[V]) Widen(most int) { b.most = most }

// Put adds an event and returns the one that had to go for it.
func (b *Map[V]) Put(h uint64, v V) (gone V, full bool) {
	if _, again := b.m[h]; !again {
		if len(b.m) >= b.most {
			gone, full = b.oldest()
		}
		b.tidy()
		b.order = append(b.order, h)
	}
	b.m[h] = v
	return gone, full
}

func (b *Map[V]) oldest() (gone V, ok bool) {
	for i, h := range b.order {
		if gone, ok = b.m[h]; ok {
			delete(b.m, h)
			b.order = b.order[i+1:]
			return gone, true
		}
	}
	return gone, false
}

// tidy forgets handles that are gone, when most are.
func (b *Map[V]) tidy() {
	if len(b.order) < 64 || len(b.order) < 2*len(b.m) {
		return
	}
	kept := b.order[:0]
	for _, h := range b.order {
		if _, ok := b.m[h]; ok {
			kept = append(kept, h)
		}
	}
	b.order = kept
}
