// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The newest events are kept, as many as there may be, whatever was removed before.
func TestBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New[uint64](rapid.IntRange(1, 8).Draw(t, "most"))
		var kept []uint64 // oldest first
		next := uint64(0)
		for range rapid.IntRange(0, 400).Draw(t, "calls") {
			if rapid.Bool().Draw(t, "remove") && len(kept) > 0 {
				i := rapid.IntRange(0, len(kept)-1).Draw(t, "which")
				b.Remove(kept[i])
				kept = append(kept[:i], kept[i+1:]...)
				continue
			}
			next++
			gone, full := b.Put(next, 2*next)
			kept = append(kept, next)
			testkit.Require(t, full == (len(kept) > b.most) && (!full || gone == 2*kept[0]),
				"%d had to go for %d of %v (%v)", gone, next, kept, full)
			if full {
				kept = kept[1:]
			}
		}
		for _, h := range kept {
			testkit.Require(t, b.Has(h) && b.Get(h) == 2*h, "%d is not kept", h)
		}
		testkit.Require(t, len(b.m) == len(kept) && len(b.order) <= 128,
			"%d events and %d handles are kept, want %d", len(b.m), len(b.order), len(kept))
	})
}
