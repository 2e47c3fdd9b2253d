// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What an operation's times are good for depends on what they are.
func TestWhatTimesBind(t *testing.T) {
	const origin = 1000
	for _, c := range []struct {
		name       string
		op         facts.Operation
		rank       int
		begin, end float64 // NaN: binds nobody
	}{
		{"GPU", facts.Operation{Function: "AllReduce", Details: facts.Details{Source: facts.SourceGPU}}, 0, 100, 200},
		{"GPU, uncertain", facts.Operation{Function: "AllReduce",
			Details: facts.Details{Source: facts.SourceGPU, Uncertainty: 7}}, 0, 93, 207},
		{"GPU, a part's end", facts.Operation{Function: "AllReduce",
			Details: facts.Details{Source: facts.SourceGPU, EndsEarly: true}}, 0, 100, math.NaN()},
		{"enqueue", facts.Operation{Function: "AllReduce", Details: facts.Details{Source: facts.SourceEnqueue}}, 0, 100,
			math.NaN()},
		{"network", facts.Operation{Function: "AllReduce", Details: facts.Details{Source: facts.SourceNetwork}}, 0, 100,
			200},
		{"network, not on every link", facts.Operation{Function: "AllGather",
			Details: facts.Details{Source: facts.SourceNetwork}}, 0, math.NaN(), math.NaN()},
		{"broadcast's root", facts.Operation{Function: "Broadcast", Root: 2,
			Details: facts.Details{Source: facts.SourceGPU}}, 2, 100, math.NaN()},
		{"broadcast's others", facts.Operation{Function: "Broadcast", Root: 2,
			Details: facts.Details{Source: facts.SourceGPU}}, 1, math.NaN(), 200},
		{"reduce's root", facts.Operation{Function: "Reduce", Root: 2, Details: facts.Details{Source: facts.SourceGPU}},
			2, 100, 200},
		{"reduce's others", facts.Operation{Function: "Reduce", Root: 2,
			Details: facts.Details{Source: facts.SourceGPU}}, 1, 100, math.NaN()},
		{"send", facts.Operation{Function: "Send", Peer: 1, Details: facts.Details{Source: facts.SourceGPU}}, 0, 100,
			math.NaN()},
		{"receive", facts.Operation{Function: "Recv", Peer: 1, Details: facts.Details{Source: facts.SourceGPU}}, 0,
			math.NaN(), 200},
		{"receive, enqueue", facts.Operation{Function: "Recv", Peer: 1,
			Details: facts.Details{Source: facts.SourceEnqueue}}, 0, math.NaN(), math.NaN()},
		{"reduce's root, enqueue", facts.Operation{Function: "Reduce", Root: 2,
			Details: facts.Details{Source: facts.SourceEnqueue}}, 2, 100, math.NaN()},
		{"of unknown source", facts.Operation{Function: "AllReduce"}, 0, math.NaN(), math.NaN()},
		{"unknown function", facts.Operation{Function: "Frobnicate", Details: facts.Details{Source: facts.SourceGPU}},
			0, math.NaN(), math.NaN()},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.op.Begin, c.op.End, c.op.Size = origin+100, origin+200, 8
			check := func(name string, has bool, got, want float64) {
				testkit.Check(t, has != math.IsNaN(want) && (!has || got == want),
					"%s: %v (binds: %v), want %v", name, got, has, want)
			}
			s, ok := sampleOf(&c.op, c.rank, origin)
			if !ok {
				s = opSample{}
			}
			check("begin", s.hasBegin, s.begin, c.begin)
			check("end", s.hasEnd, s.end, c.end)
			c.op.Size = 0
			s, ok = sampleOf(&c.op, c.rank, origin)
			testkit.Check(t, !ok, "an operation without data binds: %+v", s)
		})
	}
}
