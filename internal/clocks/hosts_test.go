// SPDX-License-Identifier: Apache-2.0

package clocks_test

import (
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/clocks"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

const (
	t0 = shardtest.Epoch + 1_000_000
	us = 1000 // ns
)

// hostsJob leaves a job of one process on each of two hosts, with AllReduces that begin and end when times says, and
// fits their clocks.
func hostsJob(t *testing.T, source [2]string, times func(rank int, i uint64) (begin, end uint64)) *clocks.Fitted {
	t.Helper()
	anchor := jobtest.Make(t, 2, 1, func(r int, p *shardtest.Process) {
		c, end := p.World(), uint64(0)
		for i := range uint64(20) {
			var begin uint64
			begin, end = times(r, i)
			p.Collective(c, shardtest.Op{Function: "AllReduce", Begin: begin, End: end, Count: 1000, Source: source[r]})
		}
		p.Destroy(c, end)
	})
	fit := testkit.Value(clocks.Fit(anchor, clocks.Hosts{0, 1}, nil))(t)
	return fit
}

// A host that enqueues 2 ms ahead of the other's kernels is not taken for one whose clock is off, although its
// operations "end" before the others have begun.
func TestEnqueueingSaysNotWhenOperationsEnd(t *testing.T) {
	times := func(rank int, i uint64) (begin, end uint64) {
		begin = t0 + (10_000+3000*i)*us
		if rank == 1 {
			return begin - 2000*us, begin - 1990*us
		}
		return begin, begin + 500*us
	}
	t.Run("both", func(t *testing.T) {
		fit := hostsJob(t, [2]string{"enqueue", "enqueue"}, times)
		testkit.Check(t, fit.Exchanges == 0 && !fit.Hosts[1].Tied && len(fit.Hosts[1].Knots) == 0,
			"clocks from enqueueing alone: %+v", fit)
	})
	t.Run("one", func(t *testing.T) {
		fit := hostsJob(t, [2]string{"gpu", "enqueue"}, times)
		h := &fit.Hosts[1]
		offset, u := h.At(t0 + 10_000*us)
		testkit.Check(t, fit.Exchanges == 20 && h.OneSided && offset == 0 && math.IsInf(u, 1) && fit.Broken == 0,
			"offset %d ± %v of %d exchanges, %+v", offset, u, fit.Exchanges, h)
	})
	t.Run("one, early", func(t *testing.T) {
		// It enqueues 4 ms after the kernel of the other was done: its clock is 4 ms fast at least.
		fit := hostsJob(t, [2]string{"gpu", "enqueue"}, func(rank int, i uint64) (begin, end uint64) {
			begin, end = times(rank, i)
			if rank == 1 {
				return begin + 6500*us, end + 6500*us
			}
			return begin, end
		})
		h := &fit.Hosts[1]
		offset, _ := h.At(t0 + 10_000*us)
		testkit.Check(t, h.OneSided && offset <= -4000*us && offset >= -4001*us, "offset %d, %+v", offset, h)
	})
	t.Run("none", func(t *testing.T) {
		fit := hostsJob(t, [2]string{"gpu", "gpu"}, func(rank int, i uint64) (begin, end uint64) {
			begin = t0 + (10_000+3000*i)*us
			return begin + uint64(rank)*30_000_000*us, begin + uint64(rank)*30_000_000*us + 3*us // 30 s apart
		})
		h := &fit.Hosts[1]
		offset, u := h.At(t0 + 30_010_000*us)
		testkit.Check(t, h.Tied && !h.OneSided && math.Abs(float64(offset)+30e12/1e3) <= u && u <= 5*us,
			"offset %d ± %v, %+v", offset, u, h)
	})
}
