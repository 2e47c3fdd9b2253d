// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// A rank is not blamed for a collective of NCCL that is missing on another rank, or whose begin or end is.
func TestMissingCollectivesAccuseNobodyElse(t *testing.T) {
	run := jobtest.MakeRun(t, 5, 12, func(_ *jobtest.RunKind, rank int, _, _, late *float64) {
		if rank == 2 {
			*late += 400_000
		}
	})
	whole := jobtest.Operations(t, run).Verdict
	testkit.Require(t, len(whole.Culprits) == 1, "culprits %+v", whole.Culprits)
	want := whole.Culprits[0].Rank
	for rank := range 4 {
		row := jobtest.Stream(rank)
		n := 0
		for _, ev := range jobtest.Load(t, run).Events[row] {
			if ev.Kind == otf2.EventMpiCollectiveEnd {
				n++
			}
		}
		for _, kind := range [][]otf2.EventKind{{otf2.EventMpiCollectiveEnd}, {otf2.EventMpiCollectiveBegin},
			{otf2.EventMpiCollectiveEnd, otf2.EventMpiCollectiveBegin}} {
			for _, nth := range []int{0, n / 2, n - 1} {
				s := jobtest.Load(t, run)
				for _, k := range kind {
					s.Remove(row, s.Index(row, k, nth), 1)
				}
				v := jobtest.Operations(t, s.Write()).Verdict
				for _, c := range v.Culprits {
					testkit.Check(t, c.Rank == want,
						"%v %d of rank %d is missing: rank %d is accused, not %d", kind, nth, rank, c.Rank, want)
				}
			}
		}
	}
}
