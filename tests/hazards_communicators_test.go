// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// Identities and lives of communicators (docs/nccl-profiler-api.md §2.1, §5).
var communicatorHazards = []hazard{
	{
		name: "size-never-told", releases: []string{v1, v2, v3},
		what: "up to 2.26, NCCL does not report the size of a communicator, and reports its id and rank only with " +
			"an operation",
		outcome: "operations are regions with attributes on a row of the rank, without communication records; they " +
			"are counted",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 3)
		}),
		check: func(o *outcome) {
			o.want("communicators", communicators(o), 0)
			o.want("reductions", o.entered("AllReduce", "dp rank "), 6)
			o.want("of unknown size", o.oddity("UNKNOWN_COMM_SIZE"), 6)
		},
	},
	{
		name: "no-finalize", releases: every,
		what:    "the job never destroys its communicators, like most frameworks",
		outcome: "everything is in the archive when the process ends",
		script: func(s *scenario.Scenario) {
			reduceAgain(s, pair(s), 3)
		},
		check: func(o *outcome) { o.want("reductions", o.reductions(), 6) },
	},
	{
		name: "lives-in-turn", releases: every,
		what:    "all communicators are destroyed, NCCL closes the library, and new communicators load it again",
		outcome: "each process continues its shard; the communicators of all lives are in one archive",
		script: func(s *scenario.Scenario) {
			first := pair(s)
			reduceAgain(s, first, 2)
			scenario.Leave(first)
			s.Advance(1000)
			second := join(first, scenario.Comm{ID: 0x5ec0, Name: "second"})
			reduceAgain(s, second, 2)
			scenario.Leave(second)
		},
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 8)
			o.want("shards", len(o.shards), 2)
		},
	},
	{
		name: "after-finalize", releases: withSize,
		what: "with shared resources, ProxyCtrl events carry the context of a communicator that was finalized " +
			"long ago",
		outcome: "counted, not drawn on a row that has ended",
		script: func(s *scenario.Scenario) {
			ranks := pair(s)
			reduceAgain(s, ranks, 2)
			child := join(ranks, scenario.Comm{ID: 0xc41d, Name: "child"})
			scenario.Leave(ranks)
			reduceAgain(s, child, 1)
			p := ranks[0].Progress
			for range 3 {
				e := p.Start(ranks[0].Context, descriptor.ProxyCtrl{})
				p.State(e, descriptor.StateProxyCtrlIdle, scenario.Appended(0))
				p.Stop(e)
			}
			reduceAgain(s, child, 1)
			scenario.Leave(child)
		},
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 8)
			o.atLeast("after the end", o.oddity("AFTER_FINALIZE"), 3)
		},
	},
	{
		name: "ranks-of-one-process", releases: withSize,
		what: "several ranks of one communicator are in one process, initialized at the same time, with equal " +
			"commIds",
		outcome: "a row for each rank; one communicator",
		script: func(s *scenario.Scenario) {
			p := s.Process()
			var ranks []*scenario.Rank
			p.Thread("main")
			for i := range 4 {
				ranks = append(ranks, p.Thread("rank").Join(scenario.Comm{ID: 0x4444, Name: "dp", NRanks: 4, Rank: i}))
			}
			reduceAgain(s, ranks, 3)
			scenario.Leave(ranks)
		},
		check: func(o *outcome) {
			o.want("communicators", communicators(o), 1)
			o.want("reductions", o.reductions(), 12)
		},
	},
	{
		name: "shrunk-twice", releases: withSize,
		what:    "every shrink of a communicator gives the same commId, whichever ranks are left out",
		outcome: "distinguished by their sizes and lifetimes",
		script: func(s *scenario.Scenario) {
			ranks := s.Job(3, scenario.Comm{ID: 0x111, Name: "parent"})
			reduceAgain(s, ranks, 1)
			for _, left := range [][]*scenario.Rank{ranks[:2], ranks[1:]} {
				small := join(left, scenario.Comm{ID: 0x5417, Name: "shrunk"})
				reduceAgain(s, small, 2)
				scenario.Leave(small)
				s.Advance(5000)
			}
			scenario.Leave(ranks)
		},
		check: func(o *outcome) {
			o.want("communicators", communicators(o), 3)
			o.want("reductions", o.reductions(), 3+8)
		},
	},
	{
		name: "one-id-for-all", releases: withSize,
		what:    "with NCCL_COMM_ID, all communicators of the job have the same commId",
		outcome: "distinguished by size, lifetime and the ranks' places",
		script: func(s *scenario.Scenario) {
			ranks := s.Job(3, scenario.Comm{ID: 0x1d})
			reduceAgain(s, ranks, 1)
			pairs := join(ranks[:2], scenario.Comm{ID: 0x1d})
			reduceAgain(s, pairs, 2)
			scenario.Leave(pairs)
			scenario.Leave(ranks)
		},
		check: func(o *outcome) {
			o.want("communicators", communicators(o), 2)
			o.want("reductions", o.reductions(), 3+4)
		},
	},
	{
		name: "one-rank", releases: withSize,
		what:    "a communicator of one rank reports nothing of its collectives",
		outcome: "the archive has no such communicator, and nothing counts as missing",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			alone := ranks[0].App.Join(scenario.Comm{ID: 0x1, Name: "alone", NRanks: 1})
			reduceAgain(s, ranks, 2)
			scenario.Leave([]*scenario.Rank{alone})
		}),
		check: func(o *outcome) {
			o.want("communicators", communicators(o), 1)
			o.want("reductions", o.reductions(), 4)
		},
	},
	{
		name: "members-differ", releases: withSize,
		what:    "the members of a communicator do not make the same calls: one of them lacks an operation",
		outcome: "the archive says which communicator it is, and from which operation on; event files are unchanged",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 4)
			ranks[0].Call(scenario.Op{Func: "AllReduce", Count: 77})
			s.Advance(200)
			reduceAgain(s, ranks, 4)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 17)
			if o.properties()["NCCL_OTF2::SEQUENCES_DIFFER"] == "" {
				o.t.Errorf("no property says that members differ: %v", o.properties())
			}
		},
	},
	{
		name: "long-names", releases: withSize,
		what: "a communicator's name is a pointer of the user: the name is long, has odd characters, and is " +
			"invalid after init",
		outcome: "copied at init; cut to 127 bytes, and shortened for the row's name",
		script: func(s *scenario.Scenario) {
			long := "data parallel \"<b>\" × 10⁶ "
			for len(long) < 300 {
				long += long
			}
			ranks := s.Job(2, scenario.Comm{ID: 0x10, Name: long})
			reduceAgain(s, ranks, 1)
			scenario.Leave(ranks)
		},
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 2)
			for _, l := range o.archive.locations {
				if len(l.Name) > 64 {
					o.t.Errorf("row %q", l.Name)
				}
			}
		},
	},
}
