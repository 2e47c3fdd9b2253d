// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// TestMemoryAgainstAll compares with a list of all allocations that is looked through: random allocations that do not
// overlap at one time, in any order of their records.
func TestMemoryAgainstAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type life struct{ address, bytes, from, to uint64 }
		var lives []life
		var s memory
		type event struct {
			address uint64
			c       change
		}
		var events []event
		for i := range rapid.IntRange(1, 60).Draw(t, "allocations") {
			l := life{uint64(rapid.IntRange(1, 50).Draw(t, "address")) * 16,
				uint64(rapid.IntRange(1, 200).Draw(t, "bytes")), uint64(rapid.IntRange(0, 1000).Draw(t, "from")), 0}
			l.to = l.from + uint64(rapid.IntRange(1, 400).Draw(t, "length"))
			free := true
			for _, o := range lives {
				free = free && (l.to < o.from || o.to < l.from || l.address+l.bytes <= o.address ||
					o.address+o.bytes <= l.address)
			}
			if !free {
				continue
			}
			lives = append(lives, l)
			events = append(events, event{l.address,
				change{time: l.from, bytes: l.bytes, class: fmt.Sprint(len(lives) - 1)}},
				event{l.address, change{time: l.to, class: ClassDevice}})
			_ = i
		}
		for _, e := range rapid.Permutation(events).Draw(t, "order") {
			testkit.Require(t, s.addChange(e.address, e.c, 0) == 0, "something was forgotten")
		}
		for range 50 {
			address, at := uint64(rapid.IntRange(0, 1100).Draw(t, "address")),
				uint64(rapid.IntRange(0, 1500).Draw(t, "at"))
			want := ClassUnknown
			for i, l := range lives {
				if address >= l.address && address < l.address+l.bytes && at >= l.from && at < l.to {
					want = fmt.Sprint(i)
				}
			}
			got := s.classAt(address, at)
			testkit.Require(t, got == want, "%d at %d: %s, want %s of %v", address, at, got, want, lives)
		}
	})
}

func TestMemoryAreBounded(t *testing.T) {
	var s memory
	forgotten := uint64(0)
	for i := range uint64(3 * maxBlocks) {
		forgotten += s.addChange(i*4096, change{time: i, bytes: 4096, class: ClassDevice}, i)
		if i%2 == 0 {
			forgotten += s.addChange(i*4096, change{time: i + 1}, i)
		}
	}
	testkit.Check(t, len(s.blocks) <= maxBlocks && len(s.gone) <= maxBlocks && forgotten != 0,
		"%d blocks, %d releases, %d forgotten", len(s.blocks), len(s.gone), forgotten)
	s = memory{}
	for i := range uint64(1000) {
		s.addChange(4096, change{time: 2 * i, bytes: 4096, class: ClassDevice}, i*1e9)
		s.addChange(4096, change{time: 2*i + 1}, i*1e9)
	}
	n := len(s.blocks[0].changes)
	testkit.Check(t, n <= 300, "%d changes are remembered of one address", n)
}
