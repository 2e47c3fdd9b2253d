// SPDX-License-Identifier: Apache-2.0

// Package bounded holds open events by handle, up to a number.
package bounded

import (
	"iter"
	"maps"
	"slices"
)

// Map holds open events by handle, up to a limit: NCCL does not end every event that it begins (aborts,
// docs/nccl-profiler-api.md §3.4), and these must not accumulate. Beyond the limit the oldest event is dropped.
type Map[V any] struct {
	most  int
	m     map[uint64]V
	order []uint64 // in the order of Put; some may have been removed
}

// New returns a map for at most most events.
func New[V any](most int) Map[V] {
	return Map[V]{most: most, m: make(map[uint64]V)}
}

// Get returns the event of a handle, or the zero value.
func (b *Map[V]) Get(h uint64) V { return b.m[h] }

// Has reports whether there is an event of a handle.
func (b *Map[V]) Has(h uint64) bool {
	_, ok := b.m[h]
	return ok
}

// Remove removes an event.
func (b *Map[V]) Remove(h uint64) { delete(b.m, h) }

// RemoveFunc removes the events for which f returns true.
func (b *Map[V]) RemoveFunc(f func(h uint64, v V) bool) { maps.DeleteFunc(b.m, f) }

// Len returns the number of events.
func (b *Map[V]) Len() int { return len(b.m) }

// Handles iterates over the handles of all events in any order. Events may be removed meanwhile.
func (b *Map[V]) Handles() iter.Seq[uint64] { return maps.Keys(b.m) }

// Sorted iterates over the sorted handles of all events. Events may be removed meanwhile.
func (b *Map[V]) Sorted() iter.Seq[uint64] { return slices.Values(slices.Sorted(maps.Keys(b.m))) }

// Widen sets the limit.
func (b *Map[V]) Widen(most int) { b.most = most }

// Put adds an event and returns the one dropped for it, if the map was full.
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

// tidy forgets removed handles when they are the majority.
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
