// SPDX-License-Identifier: Apache-2.0

package overlap_test

import (
	"bytes"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overlap"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

func TestOverlap(t *testing.T) {
	r := overlap.Read(jobtest.Open(t, jobtest.WithKernels(t)), nil)
	want := &overlap.Report{
		GPUs: []overlap.GPU{{
			Rank: "Rank 0", Host: "node0", GPU: r.GPUs[0].GPU, Kernels: 4, Operations: 3,
			Overlap: overlap.Overlap{250 * us, 100 * us, 150 * us}, Computation: 250 * us, Idle: 150 * us,
		}},
		Communicators: []overlap.Communicator{
			{Communicator: "world", GPUs: 1, Operations: 2, Overlap: overlap.Overlap{200 * us, 80 * us, 120 * us}},
			{Communicator: "second", Comm: 1, GPUs: 1, Operations: 1,
				Overlap: overlap.Overlap{100 * us, 30 * us, 70 * us}},
		},
		WithoutKernels: 1, Untimed: 2, WholeGraphs: 1, Problems: []string{},
	}
	testkit.Same(t, want, r)
	var text bytes.Buffer
	testkit.Must(t, report.Overlap(r).WriteText(&text))
	golden.Text(t, "testdata/overlap.txt", text.String())
}

func TestNoOverlapWithoutKernels(t *testing.T) {
	r := overlap.Read(jobtest.Open(t, jobtest.Typical(t, nil)), nil)
	testkit.Check(t, len(r.GPUs)+len(r.Communicators) <= 0 && r.WithoutKernels == 3, "%+v", r)
}

// Times in the test jobs.
const (
	us = jobtest.Microsecond
)
