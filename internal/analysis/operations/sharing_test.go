// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Real ranks on one real GPU, see the README there. If all do the same, nobody is blamed for being late; a rank that
// has more to do, on its GPU or its host, is still named.
func TestRanksThatShareAGPU(t *testing.T) {
	const uuid = "GPU-11111111-2222-3333-4444-555555555555"
	for _, c := range []struct {
		archive string
		ranks   []int
		share   float64 // part of all waiting that turns explain, approximately
		named   []int
		kind    verdict.Kind
		text    string
	}{
		{"shared-gpu-2p", []int{0, 1}, 0.85, nil, "",
			"Ranks 0-1 share a GPU (GPU-11111111, vm). Unless MPS is on, it runs them in turns: that, and not a " +
				"rank, explains "},
		{"shared-gpu-late-3p", []int{0, 1, 2}, 0.46, []int{1}, verdict.GPULate,
			"Rank 1 on vm made the others wait: 41 % of 583 ms waited, summed over 3 ranks; it caused 52 %, and its " +
				"longer work explains 41 %. Its GPU began ncclAllReduce 19.9 " +
				"ms after the others, though it was called in time, 10 of 30 times, every third call."},
		{"shared-gpu-4p", []int{0, 1, 2, 3}, 0.89, nil, "",
			"Ranks 0-3 share a GPU (GPU-11111111, vm). Unless MPS is on, it runs them in turns: that, and not a " +
				"rank, explains "},
		{"shared-gpu-trees-4p", []int{0, 1, 2, 3}, 0.61, []int{1}, verdict.HostLate,
			"Rank 1 on vm made the others wait: 32 % of 1.04 s waited, summed over 4 ranks. " +
				"It called ncclAllReduce 15.4 ms after " +
				"the others, 10 of 38 times, every third call."},
	} {
		r := jobtest.Operations(t, filepath.Join("..", "..", "..", "tests", "jobtest", "testdata", c.archive, "traces.otf2"))
		v := r.Verdict
		var named []int
		for i := range v.Culprits {
			named = append(named, v.Culprits[i].Rank)
			testkit.Check(t, v.Culprits[i].Kind == c.kind, "%s: %+v", c.archive, v.Culprits[i])
		}
		testkit.Check(t, slices.Equal(named, c.named) && strings.HasPrefix(v.Text, c.text),
			"%s: %v, %s", c.archive, named, v.Text)
		testkit.Check(t, len(v.SharedGPUs) == 1 && slices.Equal(v.SharedGPUs[0].Ranks, c.ranks) &&
			v.SharedGPUs[0].UUID == uuid && math.Abs(v.SharedGPUs[0].Share-c.share) <= 0.05, "%s: %+v", c.archive,
			v.SharedGPUs)
		for _, w := range r.CriticalPath.WhatIf {
			testkit.Check(t, w.Change != criticalpath.FasterGPU,
				"%s: %+v would go, though nobody says that this GPU was slow", c.archive, w)
		}
	}
}
