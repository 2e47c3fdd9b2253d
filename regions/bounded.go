// SPDX-License-Identifier: Apache-2.0

package regions

// bounded holds open events by handle, up to a number: NCCL does not end every event that it begins (aborts,
// docs/nccl-profiler-api.md §3.4), and what is never ended must not add up. Beyond the number the oldest goes.
type bounded[V any] struct {
	most  int
	m     map[uint64]V
	order []uint64 // handles as they came; some may be gone
}

func newBounded[V any](most int) bounded[V] {
	return bounded[V]{most: most, m: make(map[uint64]V)}
}

func (b *bounded[V]) get(h uint64) V { return b.m[h] }

func (b *bounded[V]) has(h uint64) bool {
	_, ok := b.m[h]
	return ok
}

func (b *bounded[V]) remove(h uint64) { delete(b.m, h) }

// put adds an event and returns the one that had to go for it.
func (b *bounded[V]) put(h uint64, v V) (gone V, full bool) {
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

func (b *bounded[V]) oldest() (gone V, ok bool) {
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
func (b *bounded[V]) tidy() {
	if len(b.order) < 64 || len(b.order) < 2*len(b.m) {
		return
	}
	kept := make([]uint64, 0, len(b.m)+1)
	for _, h := range b.order {
		if _, ok := b.m[h]; ok {
			kept = append(kept, h)
		}
	}
	b.order = kept
}
