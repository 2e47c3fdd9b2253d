// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// Groups, and functions that NCCL does not name (docs/nccl-profiler-api.md §3.2, §3.5, §3.6, §4).
var groupHazards = []hazard{
	{
		name: "no-calls", releases: []string{v7},
		what: "NCCL_ENQUEUE_REARCH_ENABLE=1 (2.31 and later): no call of the application is reported, and Coll, " +
			"P2p and KernelLaunch have no parents",
		outcome: "the archive has operations, their times and transfers; the enqueueing is on \"NCCL enqueue\"; the " +
			"archive says that calls are missing, and why",
		env: []string{"NCCL_ENQUEUE_REARCH_ENABLE=1"},
		script: func(s *scenario.Scenario) {
			s.Rearch, s.Library = true, "nccl"
			onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
				reduceAgain(s, ranks, 3)
				s.All(ranks, func(rank int) []scenario.Op {
					return []scenario.Op{{Func: "Send", Peer: 1 - rank, Steps: 1},
						{Func: "Recv", Peer: 1 - rank, Steps: 1}}
				})
				s.All(ranks, scenario.Same(allReduce, scenario.Op{Func: "AllGather", Steps: 1}), 0, 500)
				reduceAgain(s, ranks, 1)
			})(s)
		},
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 10)
			o.want("reductions with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 10)
			o.want("sends", len(o.operationsOf("Send")), 2)
			o.want("gathers", len(o.operationsOf("AllGather")), 2)
			o.want("enqueued", o.entered("ncclKernelLaunch", "NCCL enqueue"), 12)
			o.want("calls", o.entered("ncclAllReduce", "Thread"), 0)
			keys := o.properties()["NCCL_OTF2::HIDDEN"]
			testkit.Check(o.t, strings.HasPrefix(keys, "application-calls, "), "not visible: %q", keys)
		},
	},
	{
		name: "nested-group", releases: withAPI,
		what: "ncclGroupStart inside an open group: the inner end stops the GroupApi, the remaining calls get a " +
			"second one, and launches refer to the first",
		outcome: "the thread has two groups, each with its calls; every operation is there once",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for _, r := range ranks {
				u := r.App
				call := func(g *scenario.Event) *scenario.Event {
					c := u.Start(r.Context, descriptor.CollApi{Func: "AllReduce", Count: 1024, Datatype: "ncclFloat32",
						Stream: 0x51}, scenario.Under(g))
					u.Stop(c)
					return c
				}
				first := u.Start(r.Context, descriptor.GroupApi{GroupDepth: 2})
				u.State(first, descriptor.StateGroupStartApiStop, nil)
				calls := []*scenario.Event{call(first), call(first)}
				u.State(first, descriptor.StateGroupEndApiStart, nil)
				u.Stop(first)
				second := u.Start(r.Context, descriptor.GroupApi{GroupDepth: 2})
				u.State(second, descriptor.StateGroupStartApiStop, nil)
				calls = append(calls, call(second))
				u.State(second, descriptor.StateGroupEndApiStart, nil)
				launch := u.Start(r.Context, descriptor.KernelLaunch{Stream: 0x51}, scenario.Under(first))
				u.Stop(launch)
				begin := s.Now()
				plan := u.Start(r.Context, descriptor.Group{})
				var ops []*scenario.Event
				for i, c := range calls {
					ops = append(ops, u.Start(r.Context,
						descriptor.Coll{SeqNumber: uint64(i), Func: "AllReduce", Count: 1024, Datatype: "ncclFloat32",
							NChannels: 1, NWarps: 8, Algo: "RING", Proto: "LL"},
						scenario.Under(c), scenario.InGroup(plan)))
				}
				for _, op := range ops {
					u.Stop(op)
				}
				u.Stop(plan)
				u.Stop(second)
				for _, op := range ops {
					kernel(s, r, op, 0, begin+30, begin+60)
				}
			}
			s.Advance(100)
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 8)
			o.want("groups", o.entered("ncclGroup", "Thread"), 4)
		},
	},
	{
		name: "group-over-communicators", releases: withAPI,
		what:    "one group has operations of several communicators; its GroupApi has the context of the first only",
		outcome: "each operation on its own communicator's row",
		script: func(s *scenario.Scenario) {
			var a, b []*scenario.Rank
			for i := range 2 {
				u := s.Process().Thread("app")
				a = append(a, u.Join(scenario.Comm{ID: 0xa, Name: "a", NRanks: 2, Rank: i}))
				b = append(b, u.Join(scenario.Comm{ID: 0xb, Name: "b", NRanks: 2, Rank: i}))
			}
			for i := range 2 {
				u := a[i].App
				g := u.Start(a[i].Context, descriptor.GroupApi{GroupDepth: 2})
				u.State(g, descriptor.StateGroupStartApiStop, nil)
				var calls []*scenario.Event
				for _, r := range []*scenario.Rank{a[i], b[i]} {
					c := u.Start(r.Context, descriptor.CollApi{Func: "AllReduce", Count: 1024, Datatype: "ncclFloat32",
						Stream: 0x51}, scenario.Under(g))
					u.Stop(c)
					calls = append(calls, c)
				}
				u.State(g, descriptor.StateGroupEndApiStart, nil)
				for k, r := range []*scenario.Rank{a[i], b[i]} {
					l := u.Start(r.Context, descriptor.KernelLaunch{Stream: 0x51}, scenario.Under(g))
					u.Stop(l)
					begin := s.Now()
					plan := u.Start(r.Context, descriptor.Group{})
					op := u.Start(r.Context, descriptor.Coll{Func: "AllReduce", Count: 1024, Datatype: "ncclFloat32",
						NChannels: 1, NWarps: 8, Algo: "RING", Proto: "LL"},
						scenario.Under(calls[k]), scenario.InGroup(plan))
					u.Stop(op)
					u.Stop(plan)
					kernel(s, r, op, 0, begin+20, begin+60)
				}
				u.Stop(g)
			}
			s.Advance(200)
			scenario.Leave(a)
			scenario.Leave(b)
		},
		check: func(o *outcome) {
			o.want("communicators", communicators(o), 2)
			o.want("reductions", o.reductions(), 4)
			o.want("on a", o.entered("AllReduce", "a rank"), 2)
			o.want("on b", o.entered("AllReduce", "b rank"), 2)
			o.want("calls of one group", o.entered("ncclGroup", "Thread"), 2)
		},
	},
	{
		name: "tasks-overlap", releases: every,
		what: "all operations of a plan are started, then all are stopped, in another order; they carry the same " +
			"stamps",
		outcome: "one region \"Group\" with the operations inside",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			s.All(ranks, scenario.Same(allReduce, scenario.Op{Func: "AllGather"}, scenario.Op{Func: "ReduceScatter"}))
		}),
		check: func(o *outcome) {
			o.want("plans", o.entered("Group", " rank "), 2)
		},
	},
	{
		name: "broadcast-without-operation", releases: []string{v6, v7},
		what:    "a single Broadcast has a call and nothing else (2.29 and later)",
		outcome: "an operation with the call's times (TIMING_SOURCE enqueue), in its place in the communicator's order",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for range 2 {
				reduceAgain(s, ranks, 1)
				s.All(ranks, scenario.Same(scenario.Op{Func: "Broadcast", Root: 1}))
			}
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("broadcasts", len(o.operationsOf("Broadcast")), 4)
			o.want("with enqueue times", sources(o.operationsOf("Broadcast"))["enqueue"], 4)
			o.want("reductions", o.reductions(), 6)
		},
	},
	{
		name: "hang-broadcasts", releases: []string{v6, v7}, env: []string{"NCCL_ALLGATHERV_ENABLE=1"},
		what: "Broadcasts of several roots in a group are counted on the device and not on the host, and a Broadcast " +
			"in a captured graph has no stamps (" + hidden.Unsafe + ", unless " + hidden.AllGatherV + "=0); " +
			"from 2.31 on, this also holds for a single Broadcast. With KernelCh in the mask, NCCL and " +
			"ncclCommDestroy then wait forever for stamps that nothing writes (to 2.30), " +
			"or NCCL returns stamps of earlier kernels and reads freed memory in ncclCommDestroy (2.31)",
		outcome: "the plugin does not ask for KernelCh; NCCL's log says so (INFO), and so do the archive (marker " +
			"Withheld, property WITHHELD) and the report",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			s.All(ranks, scenario.Same(scenario.Op{Func: "Broadcast", Root: 1},
				scenario.Op{Func: "Broadcast", Root: 0}))
			reduceAgain(s, ranks, 3)
		}),
		check: func(o *outcome) {
			o.want("broadcasts", len(o.operationsOf("Broadcast")), 4)
			o.want("reductions", o.reductions(), 6)
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 0)
			o.want("KernelCh events", o.sum(starts, "KernelCh"), 0)
			testkit.Contains(o.t, o.properties()["NCCL_OTF2::WITHHELD"], "NCCL_ALLGATHERV_ENABLE=0")
			o.want("markers", o.markers("Withheld"), 1)
		},
	},
	{
		name: "mask-changed-by-ras", releases: []string{v7},
		what: "RAS sets the activation mask of the whole job at one moment (ncclras CONTROL PROFILER_MASK), which " +
			"is at a different operation on each rank",
		outcome: "NCCL's sequence numbers show how many collectives are missing: these keep their places (ORDINAL), " +
			"so that later ones match; they are marked, counted (PAUSED::OPERATIONS_BY_RAS), and reported as paused " +
			"by RAS",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 3)
			ranks[0].Unreported("AllReduce", 3)
			ranks[1].Call(allReduce)
			ranks[1].Unreported("AllReduce", 3)
			s.Advance(500)
			ranks[0].Call(allReduce)
			s.Advance(500)
			reduceAgain(s, ranks, 100)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 208)
			properties := o.properties()
			testkit.Equal(o.t, properties["NCCL_OTF2::PAUSED::OPERATIONS_BY_RAS"], "6", "paused by RAS")
			for _, name := range []string{"NCCL_OTF2::SEQUENCES_DIFFER", "OTF2::MPI_COMMUNICATION_COMPLETE"} {
				got := properties[name]
				testkit.Check(o.t, got == "false" || got == "" || got == "0", "%s is %s", name, got)
			}
			ordinals := make(map[int64]int)
			for _, op := range o.operationsOf("AllReduce") {
				ordinals[op.ordinal]++
			}
			for ordinal := range int64(107) {
				want := 2
				switch ordinal {
				case 3, 6:
					want = 1
				case 4, 5:
					want = 0
				}
				if ordinals[ordinal] != want {
					o.t.Errorf("operation %d: on %d ranks, want %d", ordinal, ordinals[ordinal], want)
				}
			}
			o.want("markers", o.markers("NCCL recording"), 2)
		},
	},
	{
		name: "all-to-all-as-messages", releases: withAPI,
		what:    "AlltoAll is reported as a series of sends and receives; no event names it (2.28 and later)",
		outcome: "recognized by its shape: ncclAlltoAll on the thread, AlltoAll with its messages on the ranks",
		script: func(s *scenario.Scenario) {
			ranks := s.Job(3, scenario.Comm{ID: 0xa2a, Name: "tp"})
			series(s, ranks, scenario.AllToAll(3, scenario.Op{Steps: 1}))
			scenario.Leave(ranks)
		},
		check: func(o *outcome) {
			o.want("calls", o.entered("ncclAlltoAll", "Thread"), 3)
			o.want("on the ranks", o.entered("AlltoAll", " rank "), 3)
			o.want("sends", len(o.operationsOf("Send")), 9)
		},
	},
	{
		name: "gather-as-messages", releases: withAPI,
		what:    "Gather and Scatter are reported as series of messages, too",
		outcome: "recognized on the root, whose messages show it; the other ranks have a plain message",
		script: func(s *scenario.Scenario) {
			ranks := s.Job(3, scenario.Comm{ID: 0x9a, Name: "tp"})
			series(s, ranks, func(rank int) []scenario.Op {
				ops := []scenario.Op{{Func: "Send", Peer: 0}}
				if rank == 0 {
					for peer := range 3 {
						ops = append(ops, scenario.Op{Func: "Recv", Peer: peer})
					}
				}
				return ops
			})
			series(s, ranks, func(rank int) []scenario.Op {
				var ops []scenario.Op
				if rank == 0 {
					for peer := range 3 {
						ops = append(ops, scenario.Op{Func: "Send", Peer: peer})
					}
				}
				return append(ops, scenario.Op{Func: "Recv", Peer: 0})
			})
			scenario.Leave(ranks)
		},
		check: func(o *outcome) {
			o.want("gathers", o.entered("ncclGather", "Thread"), 1)
			o.want("scatters", o.entered("ncclScatter", "Thread"), 1)
			o.want("sends", len(o.operationsOf("Send")), 6)
		},
	},
	{
		name: "symmetric-kernels", releases: withAPI,
		what: "symmetric kernels: calls only, up to 2.30; then operations without protocol, KernelCh on the first " +
			"operation of the plan, and phases",
		outcome: "operations; from 2.31 on with the kernel's name (KERNEL_VARIANT) and its phases inside",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for range 3 {
				s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", Symmetric: "AllReduce_AGxLL_R", Channels: 2}))
			}
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 8)
			if o.shards[0].APIVersion == 7 {
				o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 8)
				o.want("initial synchronization", o.entered("initial_sync", " rank "), 6)
				o.want("final synchronization", o.entered("final_sync", " rank "), 6)
			}
		},
	},
	{
		name: "copy-engine", releases: []string{v6, v7},
		what:    "collectives by copy engine have events of their own, which cover only the enqueueing",
		outcome: "operations with enqueue times; synchronization and batches as regions inside the call",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for range 2 {
				s.All(ranks, scenario.Same(scenario.Op{Func: "AllGather", CE: true}))
			}
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("gathers", len(o.operationsOf("AllGather")), 4)
			o.want("with enqueue times", sources(o.operationsOf("AllGather"))["enqueue"], 4)
			o.want("batches", o.entered("CE batch", "Thread"), 4)
			o.want("synchronizations", o.entered("CE sync", "Thread"), 8)
		},
	},
	{
		name: "message-to-oneself", releases: withAPI,
		what: "a send and a receive of one rank to itself: no proxies, no KernelCh; with one buffer for both, no " +
			"operation",
		outcome: "messages with enqueue times; dropped ones are counted",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for _, r := range ranks {
				r.Group(scenario.Op{Func: "Send", Peer: r.Rank, NoKernel: true},
					scenario.Op{Func: "Recv", Peer: r.Rank, NoKernel: true})
				g := r.App.Start(r.Context, descriptor.GroupApi{GroupDepth: 2})
				r.App.State(g, descriptor.StateGroupStartApiStop, nil)
				for _, f := range []string{"Send", "Recv"} {
					c := r.App.Start(r.Context, descriptor.P2pApi{Func: f, Count: 16, Datatype: "ncclFloat32"},
						scenario.Under(g))
					r.App.Stop(c)
				}
				r.App.State(g, descriptor.StateGroupEndApiStart, nil)
				r.App.Stop(g)
			}
			s.Advance(100)
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("sends", len(o.operationsOf("Send")), 2)
			o.want("dropped", o.oddity("DROPPED_MESSAGES"), 4)
			o.want("reductions", o.reductions(), 2)
		},
	},
	{
		name: "zero-and-unknown", releases: withSize,
		what: "messages of 0 bytes, ncclUint8 named \"Unknown\", and functions and algorithms that the plugin " +
			"does not know",
		outcome: "shown as reported; an unknown function is a region without a communication record, and counted",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 1)
			s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", Datatype: "Unknown", Algo: "MSCCLPP",
				Proto: "LL256"}))
			s.All(ranks, scenario.Same(scenario.Op{Func: "AllFrobnicate"}))
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 6)
			o.want("unknown functions", o.oddity("UNKNOWN_FUNCTIONS"), 2)
			o.want("drawn all the same", o.entered("AllFrobnicate", " rank "), 2)
		},
	},
	{
		name: "user-tags", releases: []string{v7},
		what:    "calls carry tags of the application (2.31 and later)",
		outcome: "attribute USER_TAG of call and operation",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for i := range 3 {
				s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", UserTag: uint64(100 + i)}))
			}
		}),
		check: func(o *outcome) {
			seen := map[int64]int{}
			for _, events := range o.archive.events {
				for _, e := range events {
					if n := e.number("USER_TAG"); n >= 0 {
						seen[n]++
					}
				}
			}
			for tag := int64(100); tag < 103; tag++ {
				o.want("regions with the tag", seen[tag], 4)
			}
		},
	},
}

// series makes a plain call that NCCL carries out as messages: one GroupApi of depth 1.
func series(s *scenario.Scenario, ranks []*scenario.Rank, ops func(rank int) []scenario.Op) {
	begin := s.Now()
	for i, r := range ranks {
		s.At(begin)
		r.Series(ops(i)...)
	}
	s.Advance(300)
}

// communicators counts those that are not the network's.
func communicators(o *outcome) (n int) {
	for _, c := range o.archive.comms {
		if !isNetwork(c) {
			n++
		}
	}
	return n
}
