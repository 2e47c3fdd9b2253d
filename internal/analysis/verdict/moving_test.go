// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Of eight ranks, three are named together only if the cause moves from one to the next.
func TestMovingCauses(t *testing.T) {
	for _, c := range []struct {
		name  string
		who   []int
		named []int
	}{
		{"from one to the next", slices.Concat(slices.Repeat([]int{1}, 20), slices.Repeat([]int{2}, 20),
			slices.Repeat([]int{5}, 20)), []int{1, 2, 5}},
		{"in turn", slices.Repeat([]int{1, 2, 5}, 20), nil},
	} {
		ev := evidence(8, len(c.who), c.who...)
		for i := range ev.Causes.Ranks {
			for k := range ev.Causes.Ranks[i].Occurrences {
				o := &ev.Causes.Ranks[i].Occurrences[k]
				o.At = otf2.Timestamp(o.Nth) * 20e6
			}
		}
		var named []int
		for _, culprit := range Judge(ev).Culprits {
			named = append(named, culprit.Rank)
		}
		testkit.Check(t, slices.Equal(named, c.named), "%s: %v, want %v", c.name, named, c.named)
	}
}

// A rank that another named one equals in work is named although that one caused only half as much.
func TestUnequalCulprits(t *testing.T) {
	ev := evidence(8, 60, 1, 1, 4)
	ev.Causes.Ranks[4].Worked = ev.Causes.Ranks[1].Worked
	v := Judge(ev)
	testkit.Check(t, len(v.Culprits) == 2, "%s", v.Text)
}
