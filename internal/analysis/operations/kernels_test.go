// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// For a GPU that begins late, the report names the kernels in the way: those that, after the call, ran longer than on
// the other GPUs.
func TestKernelsInTheWayAreNamed(t *testing.T) {
	r := jobtest.Operations(t, jobtest.WithKernelsInTheWay(t))
	testkit.Require(t, len(r.Verdict.Culprits) == 1, "%+v", r.Verdict)
	c := &r.Verdict.Culprits[0]
	want := fmt.Sprintf("%d of %d times, always: busy with gemm_large (83 %%), layernorm (10 %%).",
		jobtest.InTheWay, jobtest.OfWays)
	testkit.Check(t, c.Rank == 1 && c.Kind == verdict.GPULate &&
		strings.HasPrefix(c.Evidence, "Its GPU began ncclAllReduce 4.10 ms after the others") &&
		strings.HasSuffix(c.Evidence, want), "%+v\nwant %q", c, want)
	const n = jobtest.InTheWay * 1e6
	of := make(map[string][]criticalpath.KernelTime)
	for _, row := range r.CriticalPath.Ranks {
		if row.Rank == 1 {
			of[row.Activity] = row.Kernels
		}
	}
	kernels := map[string][]criticalpath.KernelTime{
		"GPU": {{Kernel: "gemm_large", Time: 3.4 * n}, {Kernel: "layernorm", Time: 2.4 * n}}, "application": nil,
		"NCCL call": nil,
	}
	testkit.Same(t, kernels, of)
}

// Without recorded kernels, none are named.
func TestNoKernelsInTheWay(t *testing.T) {
	r := jobtest.Operations(t, jobtest.WithWaits(t))
	for _, row := range r.CriticalPath.Ranks {
		testkit.Check(t, len(row.Kernels) == 0, "%+v", row)
	}
}
