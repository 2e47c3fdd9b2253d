// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"math"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/jobtest"
	"github.com/nccl-otf2/nccl-otf2/scorep/shardtest"
)

// What an operation's times are good for depends on what they are.
func TestWhatTimesBind(t *testing.T) {
	const origin = 1000
	for _, c := range []struct {
		name       string
		op         operation
		begin, end float64 // NaN: binds nobody
	}{
		{"GPU", operation{Operation: facts.Operation{Function: "AllReduce", Details: facts.Details{Source: facts.SourceGPU}}}, 100, 200},
		{"GPU, uncertain", operation{Operation: facts.Operation{Function: "AllReduce", Details: facts.Details{Source: facts.SourceGPU, Uncertainty: 7}}}, 93, 207},
		{"enqueue", operation{Operation: facts.Operation{Function: "AllReduce", Details: facts.Details{Source: facts.SourceEnqueue}}}, 100, math.NaN()},
		{"network", operation{Operation: facts.Operation{Function: "AllReduce", Details: facts.Details{Source: facts.SourceNetwork}}}, 100, 200},
		{"network, not on every link", operation{Operation: facts.Operation{Function: "AllGather", Details: facts.Details{Source: facts.SourceNetwork}}}, math.NaN(), math.NaN()},
		{"broadcast's root", operation{Operation: facts.Operation{Function: "Broadcast", Root: 2, Details: facts.Details{Source: facts.SourceGPU}}, rank: 2}, 100, math.NaN()},
		{"broadcast's others", operation{Operation: facts.Operation{Function: "Broadcast", Root: 2, Details: facts.Details{Source: facts.SourceGPU}}, rank: 1}, math.NaN(), 200},
		{"reduce's root", operation{Operation: facts.Operation{Function: "Reduce", Root: 2, Details: facts.Details{Source: facts.SourceGPU}}, rank: 2}, 100, 200},
		{"reduce's others", operation{Operation: facts.Operation{Function: "Reduce", Root: 2, Details: facts.Details{Source: facts.SourceGPU}}, rank: 1}, 100, math.NaN()},
		{"send", operation{Operation: facts.Operation{Function: "Send", Peer: 1, Details: facts.Details{Source: facts.SourceGPU}}}, 100, math.NaN()},
		{"receive", operation{Operation: facts.Operation{Function: "Recv", Peer: 1, Details: facts.Details{Source: facts.SourceGPU}}}, math.NaN(), 200},
		{"receive, enqueue", operation{Operation: facts.Operation{Function: "Recv", Peer: 1, Details: facts.Details{Source: facts.SourceEnqueue}}}, math.NaN(), math.NaN()},
		{"reduce's root, enqueue", operation{Operation: facts.Operation{Function: "Reduce", Root: 2, Details: facts.Details{Source: facts.SourceEnqueue}}, rank: 2}, 100, math.NaN()},
		{"of unknown source", operation{Operation: facts.Operation{Function: "AllReduce"}}, math.NaN(), math.NaN()},
		{"unknown function", operation{Operation: facts.Operation{Function: "Frobnicate", Details: facts.Details{Source: facts.SourceGPU}}}, math.NaN(), math.NaN()},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.op.Begin, c.op.End, c.op.Size = origin+100, origin+200, 8
			check := func(name string, has bool, got, want float64) {
				if has == math.IsNaN(want) || has && got != want {
					t.Errorf("%s: %v (binds: %v), want %v", name, got, has, want)
				}
			}
			s, ok := sampleOf(&c.op, origin)
			if !ok {
				s = opSample{}
			}
			check("begin", s.hasBegin, s.begin, c.begin)
			check("end", s.hasEnd, s.end, c.end)
			c.op.Size = 0
			if s, ok := sampleOf(&c.op, origin); ok {
				t.Errorf("an operation without data binds: %+v", s)
			}
		})
	}
}

// hostsJob leaves a job of one process on each of two hosts, with AllReduces that begin and end when times says, and
// fits their clocks.
func hostsJob(t *testing.T, source [2]string, times func(rank int, i uint64) (begin, end uint64)) *ClockFit {
	t.Helper()
	anchor := jobtest.Make(t, 2, 1, func(r int, p *shardtest.Process) {
		c, end := p.World(), uint64(0)
		for i := range uint64(20) {
			var begin uint64
			begin, end = times(r, i)
			p.Collective(c, shardtest.Op{
				Function: "AllReduce", Kind: otf2.CollectiveOpAllreduce, Begin: begin, End: end, Sent: 8000, Received: 8000, Count: 1000, Source: source[r],
			})
		}
		p.Destroy(c, end)
	})
	fit, err := FitClocks(anchor, 2, func(l otf2.LocationRef) int { return int(uint32(l)) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fit
}

// A host that enqueues 2 ms ahead of the other's kernels is not taken for one whose clock is off, although its operations
// "end" before the others have begun.
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
		if fit.Exchanges != 0 || fit.Hosts[1].Tied || len(fit.Hosts[1].Knots) != 0 {
			t.Errorf("clocks from enqueueing alone: %+v", fit)
		}
	})
	t.Run("one", func(t *testing.T) {
		fit := hostsJob(t, [2]string{"gpu", "enqueue"}, times)
		h := &fit.Hosts[1]
		offset, u := h.At(t0 + 10_000*us)
		if fit.Exchanges != 20 || !h.OneSided || offset != 0 || !math.IsInf(u, 1) || fit.Broken != 0 {
			t.Errorf("offset %d ± %v of %d exchanges, %+v", offset, u, fit.Exchanges, h)
		}
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
		if offset, _ := h.At(t0 + 10_000*us); !h.OneSided || offset > -4000*us || offset < -4001*us {
			t.Errorf("offset %d, %+v", offset, h)
		}
	})
	t.Run("none", func(t *testing.T) {
		fit := hostsJob(t, [2]string{"gpu", "gpu"}, func(rank int, i uint64) (begin, end uint64) {
			begin = t0 + (10_000+3000*i)*us
			return begin + uint64(rank)*30_000_000*us, begin + uint64(rank)*30_000_000*us + 3*us // 30 s apart
		})
		h := &fit.Hosts[1]
		if offset, u := h.At(t0 + 30_010_000*us); !h.Tied || h.OneSided || math.Abs(float64(offset)+30e12/1e3) > u || u > 5*us {
			t.Errorf("offset %d ± %v, %+v", offset, u, h)
		}
	})
}

// What is kept is bounded, whatever there is: of each kind the exchanges that tell most stay, the last one of a kind always.
func TestExchangesAreThinned(t *testing.T) {
	message := func(from, to int32, at, delay float64) exchange {
		return exchange{begins: []instant{{from, at}}, ends: []instant{{to, at + delay}}}
	}
	xs := newExchanges(100)
	for i := range 10_000 {
		delay := 1e6
		if i == 4321 {
			delay = 1e3
		}
		xs.add(exchangeKind{op: opSend, from: 0, to: 1}, message(0, 1, float64(i)*1e3, delay))
	}
	kept := xs.list()
	if len(kept) == 0 || len(kept) > 50 || xs.total != 10_000 {
		t.Errorf("%d of %d are kept", len(kept), xs.total)
	}
	if !slices.ContainsFunc(kept, func(x exchange) bool { return x.tightness() == 1e3 }) {
		t.Error("the one that tells most is gone")
	}
	xs = newExchanges(100)
	for from := range int32(200) {
		for to := range int32(200) {
			xs.add(exchangeKind{op: opSend, from: from, to: to}, message(from, to, 0, 1e3))
		}
	}
	if n := len(xs.list()); n != 200*199 {
		t.Errorf("%d kinds are left of %d", n, 200*199)
	}
}
