// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// kernelRow draws kernels on a row of a CUDA stream.
type kernelRow struct {
	t testing.TB
	p *shardtest.Process
	w *otf2.EventWriter
}

// newKernelRow gives a process a row of a CUDA stream, "CUDA[device:stream]".
func newKernelRow(t testing.TB, p *shardtest.Process, name string) *kernelRow {
	return &kernelRow{t, p, p.Location("stream", otf2.LocationTypeAcceleratorStream, name, -1)}
}

// Kernel draws one; times are ns.
func (s *kernelRow) Kernel(name string, begin, end uint64) {
	s.t.Helper()
	region := s.p.Region(name, "CUDA kernels", otf2.RegionRoleFunction)
	testkit.Must(s.t, s.w.Enter(otf2.Timestamp(begin), nil, region))
	testkit.Must(s.t, s.w.Leave(otf2.Timestamp(end), nil, region))
}

// InTheWay is how many of the operations of WithKernelsInTheWay rank 1 was late to, of how many.
const (
	InTheWay = 38
	OfWays   = 40
)

// WithKernelsInTheWay is a job of four ranks that call in time. In all of its operations but two the GPU of rank 1
// begins 4.1 ms late: gemm_large ran for 3.4 ms, and layernorm 0.4 ms longer than on the others. Kernels of NCCL, those
// of before the call, and those within operations are in nobody's way.
func WithKernelsInTheWay(t testing.TB) string {
	t.Helper()
	return Make(t, 4, 2, func(r int, p *shardtest.Process) {
		world := p.World()
		compute, beside := newKernelRow(t, p, "CUDA[0:7]"), newKernelRow(t, p, "CUDA[0:8]")
		for i := range uint64(OfWays + 1) { // the first one is start-up
			begin := uint64(T0) + 20_000*Microsecond*i
			at := func(us uint64) uint64 { return begin + us*Microsecond }
			compute.Kernel("embedding", at(100), at(1000)) // before the call
			event := 1000*uint64(r+1) + i
			p.CallFor("ncclAllReduce", event, at(900), at(1000))
			late := uint64(0)
			if r == 1 && i != 5 && i != 17 {
				late = 4100
				compute.Kernel("layernorm", at(2000), at(4400))
				compute.Kernel("gemm_large", at(4500), at(7900))
			} else {
				compute.Kernel("layernorm", at(2000), at(4000))
			}
			beside.Kernel("ncclDevKernel_AllReduce_Sum", at(4000+late), at(9000))
			compute.Kernel("softmax", at(8200), at(8900)) // within the operation
			p.Collective(world, shardtest.Op{Function: "AllReduce", Begin: at(4000 + late), End: at(9000),
				Count: 100, Parent: event})
		}
		p.Destroy(world, uint64(T0)+20_000*Microsecond*(OfWays+1))
	})
}
