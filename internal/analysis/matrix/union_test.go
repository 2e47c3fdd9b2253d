// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The time of a union is the number of distinct nanoseconds in it, however many intervals there are.
func TestUnion(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var u union
		covered := make(map[otf2.Timestamp]bool)
		end := otf2.Timestamp(1000)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		for range rapid.IntRange(0, 6*maxIntervals).Draw(rt, "intervals") {
			end += otf2.Timestamp(random.IntN(10))
			begin := end - otf2.Timestamp(random.IntN(13))
			u.add(begin, end)
			for at := begin; at < end; at++ {
				covered[at] = true
			}
		}
		got := u.time()
		testkit.Check(rt, got == uint64(len(covered)), "%d, want %d", got, len(covered))
		testkit.Check(rt, len(u.list) <= 2*maxIntervals, "%d intervals are kept", len(u.list))
	})
}
