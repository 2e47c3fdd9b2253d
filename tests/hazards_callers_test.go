// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// Libraries and versions (docs/nccl-profiler-api.md §1.6, §2.4).
var callerHazards = []hazard{
	{
		name: "rccl-extended-v6", releases: []string{v6},
		what:    "RCCL of mid-2026 extends v6: longer ProxyOps, state 31 with 24 bytes, event type 1<<15",
		outcome: "the plugin reads what v6 has; it neither asks for the rest, nor reads it as NCCL's v7",
		script: func(s *scenario.Scenario) {
			s.Library = "rccl"
			ranks := pair(s)
			reduceAgain(s, ranks, 2)
			p := ranks[0].Progress
			e := p.Start(ranks[0].Context, descriptor.ProxyDiag{})
			p.State(e, 31, &replay.Args{Diag: &replay.Diag{CounterKind: 3, Value: -1, Value2: 1 << 40}})
			p.Stop(e)
			reduceAgain(s, ranks, 1)
			scenario.Leave(ranks)
		},
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 6)
			o.want("diagnostics", o.sum(starts, "KernelPhase"), 0)
			for _, p := range o.shards {
				testkit.Equal(o.t, p.Library, "RCCL", "library")
			}
			for _, r := range o.shards[0].Regions {
				testkit.Equal(o.t, r.Paradigm.String(), "HIP", "region %s is of paradigm %v", r.Name, r.Paradigm)
			}
		},
	},
	{
		name: "unknown-types", releases: every,
		what:    "event types and states that no version defines",
		outcome: "refused with NULL, ignored, counted",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			d := s.All(ranks, scenario.Same(allReduce))
			u := ranks[0].App
			e := u.Start(ranks[0].Context, descriptor.Other{}, scenario.WithType(1<<7|1<<6),
				scenario.Before(scenario.Raw(0x1234)))
			u.State(e, 99, new(replay.Args))
			u.Stop(e)
			if d[0].Group != nil {
				u.State(d[0].Group, 77, new(replay.Args))
			}
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) { o.want("reductions", o.reductions(), 4) },
	},
}
