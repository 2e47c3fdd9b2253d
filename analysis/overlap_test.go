// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/jobtest"
	"github.com/nccl-otf2/nccl-otf2/scorep/shardtest"
)

// overlapJob is a job of two ranks; rank 0 has kernels of its own, and NCCL's, on two streams.
func overlapJob(t testing.TB) string {
	t.Helper()
	at := func(us uint64) otf2.Timestamp { return otf2.Timestamp(t0 + us*1000) }
	return jobtest.Make(t, 2, 2, func(r int, p *shardtest.Process) {
		world := p.World()
		second := p.Comm(experiment.Comm{ID: 2, Name: "second", NRanks: 2, Rank: r, InitTime: t0})
		p.AllReduce(world, uint64(at(100)), uint64(at(200)), 10)
		p.AllReduce(world, uint64(at(300)), uint64(at(400)), 10)
		p.AllReduce(second, uint64(at(350)), uint64(at(450)), 10)
		p.Collective(world, shardtest.Op{Function: "AllReduce", Kind: otf2.CollectiveOpAllreduce, Begin: uint64(at(700)), End: uint64(at(800)), Sent: 80, Received: 80, Count: 10, Source: "enqueue"})
		if r == 0 {
			var streams [2]*otf2.EventWriter
			for i := range streams {
				streams[i] = p.Location("stream", otf2.LocationTypeAcceleratorStream, fmt.Sprintf("CUDA[0:%d]", i), -1)
			}
			kernel := func(stream int, name string, begin, end uint64) {
				region := p.Region(name, "CUDA kernels", otf2.RegionRoleFunction)
				try(t, streams[stream].Enter(at(begin), nil, region))
				try(t, streams[stream].Leave(at(end), nil, region))
			}
			kernel(0, "gemm", 50, 150)                         // 50 beside the first
			kernel(1, "softmax", 120, 170)                     // 20 more
			kernel(1, "ncclDevKernel_AllReduce_Sum", 300, 400) // NCCL's own
			kernel(0, "gemm", 390, 420)                        // 10 beside both, 20 beside the second
			kernel(0, "CUDA graph", 430, 440)                  // of which nothing is known
			kernel(0, "gemm", 500, 600)                        // alone
		}
		p.Destroy(world, uint64(at(1000)))
		p.Destroy(second, uint64(at(1000)))
	})
}

func TestOverlap(t *testing.T) {
	r := FindOverlap(jobtest.Open(t, overlapJob(t)))
	want := &OverlapReport{
		GPUs: []OverlapGPU{{
			Rank: "Rank 0", Host: "node0", GPU: r.GPUs[0].GPU, Kernels: 4, Operations: 3,
			Overlap: Overlap{250 * us, 100 * us, 150 * us}, Computation: 250 * us, Idle: 150 * us,
		}},
		Communicators: []OverlapComm{
			{Communicator: "world", GPUs: 1, Operations: 2, Overlap: Overlap{200 * us, 80 * us, 120 * us}},
			{Communicator: "second", Comm: 1, GPUs: 1, Operations: 1, Overlap: Overlap{100 * us, 30 * us, 70 * us}},
		},
		WithoutKernels: 1, Untimed: 2, WholeGraphs: 1, Problems: []string{},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	var text bytes.Buffer
	try(t, r.Document().WriteText(&text))
	golden.Text(t, "testdata/overlap.txt", text.String())
}

func TestNoOverlapWithoutKernels(t *testing.T) {
	r := FindOverlap(jobtest.Open(t, makeJob(t, nil)))
	if len(r.GPUs)+len(r.Communicators) > 0 || r.WithoutKernels != 3 {
		t.Errorf("%+v", r)
	}
}
