// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// pair is the job of most scenarios: two processes with a rank each of one communicator.
func pair(s *scenario.Scenario) []*scenario.Rank {
	return s.Job(2, scenario.Comm{ID: 0xabcdef0123456789, Name: "dp"})
}

// onPair is a script of that job, whose ranks leave their communicator in the end.
func onPair(script func(s *scenario.Scenario, ranks []*scenario.Rank)) func(*scenario.Scenario) {
	return func(s *scenario.Scenario) {
		ranks := pair(s)
		script(s, ranks)
		scenario.Leave(ranks)
	}
}

// join makes a communicator of ranks of another one.
func join(ranks []*scenario.Rank, comm scenario.Comm) (joined []*scenario.Rank) {
	comm.NRanks = len(ranks)
	for i, r := range ranks {
		comm.Rank = i
		joined = append(joined, r.App.Join(comm))
	}
	return joined
}

// allReduce is the operation of most scenarios: two channels, three network transfers each.
var allReduce = scenario.Op{Func: "AllReduce", Channels: 2, Steps: 3}

// reduceAgain lets all ranks do it, and again: what follows a hazard must be right.
func reduceAgain(s *scenario.Scenario, ranks []*scenario.Rank, times int) {
	for range times {
		s.All(ranks, scenario.Same(allReduce))
	}
}

// reductions is the number of AllReduce operations on all communicator ranks: as records of the
// communicator, or, where its size was never told, as regions.
func (o *outcome) reductions() int {
	if communicators(o) > 0 {
		return len(o.operationsOf("AllReduce"))
	}
	return o.entered("AllReduce", " rank ")
}

// What NCCL does with handles (docs/nccl-profiler-api.md §3.4).
var handleHazards = []hazard{
	{
		name: "garbage-slot", releases: every,
		what:    "*eHandle holds garbage when an event is started (ProxyCtrl, pooled proxy slots)",
		outcome: "nothing is read from it; it is written on every path",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 1)
			p := ranks[0].Progress
			for _, garbage := range []scenario.Raw{0x7fc900000003, 1, ^scenario.Raw(0), 0x00ff_5000_0000_0001} {
				e := p.Start(ranks[0].Context, descriptor.ProxyCtrl{}, scenario.Before(garbage))
				p.State(e, descriptor.StateProxyCtrlIdle, scenario.Appended(0))
				p.Stop(e)
			}
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 4)
			o.want("slots that were not written", int(o.result.Total().Unwritten), 0)
		},
	},
	{
		name: "stale-handles", releases: every,
		what:    "stops and states come for handles of other events, for unknown handles, and for NULL",
		outcome: "recognized by their value; ignored and counted",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 1)
			u := ranks[0].App
			for _, wild := range []scenario.Raw{0, 8, 0xdeadbeef, 0x7fff12345678, 0xffffffffffffffff,
				0x0000_8000_0000_0000} {
				u.Stop(wild)
				u.State(wild, descriptor.StateKernelChStop, new(replay.Args))
			}
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 4)
			o.want("foreign handles", o.oddity("FOREIGN_HANDLES"), 10)
			o.want("null handles", int(o.shards[0].Counts.NullHandles), 2)
		},
	},
	{
		name: "second-stop", releases: withAPI,
		what:    "a CollApi is stopped again, because NCCL does not clear its slot",
		outcome: "the first stop counts; the second is ignored and counted as an oddity",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			d := s.All(ranks, scenario.Same(allReduce))
			ranks[0].App.Stop(d[0].Apis[0])
			ranks[0].App.Stop(d[0].Tasks[0])
			ranks[0].App.Stop(d[0].Group)
			ranks[0].App.State(d[0].GroupApi, descriptor.StateGroupEndApiStart, nil)
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 4)
			o.atLeast("stray stops", o.oddity("STRAY_STOPS"), 3)
		},
	},
	{
		name: "repeated-receive-step", releases: every,
		what: "a receive's ProxyStep is started again and again until the network takes it; only the last start " +
			"is stopped",
		outcome: "the last start is used; the others are counted as repeated",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			d := s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce"}))
			r, p := ranks[0], ranks[0].Progress
			op := p.Start(r.Context, descriptor.ProxyOp{Peer: 1, NSteps: 1, ChunkSize: 4096}, scenario.Under(d[0].Tasks[0]))
			var step *scenario.Event
			for range 5 {
				step = p.Start(r.Context, descriptor.ProxyStep{Step: 0}, scenario.Under(op))
			}
			p.State(step, descriptor.StateProxyStepRecvWait, scenario.TransSize(0))
			p.State(step, descriptor.StateProxyStepRecvFlushWait, scenario.TransSize(4096))
			p.State(step, descriptor.StateProxyStepRecvGPUWait, scenario.TransSize(4096))
			p.Stop(step)
			p.Stop(op)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 2)
			o.want("repeated steps", o.oddity("REPEATED_STEPS"), 4)
			o.want("receives drawn", o.entered("Recv network", "net recv"), 1)
		},
	},
	{
		name: "unstopped-steps", releases: []string{v2, v3},
		what:    "only one of a batch of receive steps is stopped (2.24 to 2.26)",
		outcome: "the others end with their ProxyOp, and are counted",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			d := s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce"}))
			r, p := ranks[0], ranks[0].Progress
			op := p.Start(r.Context, descriptor.ProxyOp{Peer: 1, NSteps: 4, ChunkSize: 4096}, scenario.Under(d[0].Tasks[0]))
			var steps []*scenario.Event
			for i := range 4 {
				steps = append(steps, p.Start(r.Context, descriptor.ProxyStep{Step: i}, scenario.Under(op)))
				p.State(steps[i], descriptor.StateProxyStepRecvWait, nil)
			}
			p.Stop(steps[0])
			p.State(op, descriptor.StateProxyOpRecvDone, scenario.OpSteps(16384, 4))
			p.Stop(op)
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 4)
			o.want("unstopped steps", o.oddity("UNSTOPPED_STEPS"), 3)
		},
	},
	{
		name: "kernel-stop-without-start", releases: []string{v4, v5, v6},
		what:    "a KernelCh that was never started is stopped, with the handle of an earlier operation (2.27 to 2.30)",
		outcome: "the earlier operation keeps its times; the stop is counted",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			d := s.All(ranks, scenario.Same(allReduce))
			old := d[0].Kernels[0]
			s.Advance(500)
			ranks[0].Call(scenario.Op{Func: "AllReduce", NoKernel: true, Channels: 1})
			ranks[1].Call(scenario.Op{Func: "AllReduce", Channels: 1})
			s.Advance(200)
			p := ranks[0].Progress
			p.State(old, descriptor.StateKernelChStop, scenario.PTimer(ranks[0].App.Process().GPU(s.Now())))
			p.Stop(old)
			reduceAgain(s, ranks, 2)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 8)
			o.want("stray stops", o.oddity("STRAY_STOPS"), 1)
			o.want("stray states", o.oddity("STRAY_STATES"), 1)
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 7)
		},
	},
	{
		name: "replay-stops-again", releases: []string{v5, v6},
		what: "NCCL skips the start of a graph's replay and stops the handles of the previous replay again (to " +
			"2.30)",
		outcome: "ignored and counted",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			var graphs []*scenario.Graph
			for _, r := range ranks {
				graphs = append(graphs, r.Capture(allReduce))
			}
			for range 3 {
				for i, g := range graphs {
					d := g.Replay()
					s.Advance(200)
					if i == 0 {
						ranks[i].Driver.Stop(d.Tasks[0])
						ranks[i].Driver.Stop(d.Group)
					}
				}
			}
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 6)
			o.want("stray stops", o.oddity("STRAY_STOPS"), 6)
		},
	},
	{
		name: "aborted-communicator", releases: every,
		what:    "after an abort, open events are never stopped: ProxyOp, ProxyStep, KernelCh, calls",
		outcome: "operations end at their last known event, and are marked as unfinished",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 2)
			open := allReduce
			open.Open = true
			s.All(ranks, scenario.Same(open))
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 6)
			o.atLeast("starts without stop", o.sum(starts, "ProxyStep")-stopped(o, "ProxyStep"), 1)
		},
	},
	{
		name: "aborted-alone", releases: withGPU,
		what: "a communicator is aborted while one of its members is in an operation that the others never called",
		outcome: "the operation is in the archive, marked as unfinished where a kernel of it was open; check, unify " +
			"and the archive (SEQUENCES_DIFFER) say which member has more operations than the others",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 3)
			open := allReduce
			open.Open = true
			ranks[0].Call(open)
			s.Advance(300)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 7)
			checked := testkit.Value(check.Archive(filepath.Join(o.dir, "traces.otf2"), nil))(o.t)
			if !slices.ContainsFunc(checked.Findings, func(f check.Finding) bool {
				return f.Rule == check.RuleCollectiveMate &&
					strings.Contains(f.Text, "rank 0 has 4 operations, rank 1 has 3 operations")
			}) {
				o.t.Errorf("check does not name it: %v", checked.Findings)
			}
		},
	},
	{
		name: "proxy-op-never-stops", releases: withSize,
		what:    "a ProxyOp of CollNet or of a memory-copy proxy is started and never stopped (2.27 and later)",
		outcome: "the plugin does not wait for it: the operation's times come from the GPU",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for range 3 {
				d := s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", Algo: "COLLNET_DIRECT"}))
				for i, r := range ranks {
					r.Progress.Start(r.Context, descriptor.ProxyOp{Peer: 1 - i, NSteps: 4, ChunkSize: 65536},
						scenario.Under(d[i].Tasks[0]))
				}
			}
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 8)
		},
	},
	{
		name: "simulated-group", releases: withAPI,
		what: "ncclGroupSimulateEnd: NCCL reports calls and launches nothing",
		outcome: "the calls are on the application's thread; their operations have enqueue times, and later ones are " +
			"right",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for _, r := range ranks {
				g := r.App.Start(r.Context, descriptor.GroupApi{GroupDepth: 2})
				r.App.State(g, descriptor.StateGroupStartApiStop, nil)
				c := r.App.Start(r.Context, descriptor.CollApi{Func: "AllGather", Count: 64, Datatype: "ncclFloat32",
					Stream: 0x51}, scenario.Under(g))
				r.App.Stop(c)
				r.App.State(g, descriptor.StateGroupEndApiStart, nil)
				r.App.Stop(g)
			}
			reduceAgain(s, ranks, 2)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 4)
			o.want("calls", o.entered("ncclAllGather", "Thread"), 2)
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 4)
		},
	},
	{
		name: "failed-append", releases: withAPI,
		what: "an operation fails between start and stop of its CollApi, and a group between start and stop of " +
			"its GroupApi",
		outcome: "the call ends where the thread's next one begins, and is marked as unfinished",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			r := ranks[0]
			g := r.App.Start(r.Context, descriptor.GroupApi{GroupDepth: 1})
			r.App.State(g, descriptor.StateGroupStartApiStop, nil)
			r.App.Start(r.Context, descriptor.CollApi{Func: "AllReduce", Count: 64, Datatype: "ncclFloat32"},
				scenario.Under(g))
			s.Advance(100)
			reduceAgain(s, ranks, 2)
		}),
		check: func(o *outcome) {
			o.want("unfinished calls", o.oddity("UNFINISHED_CALLS"), 1)
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 4)
		},
	},
	{
		name: "short-lived-threads", releases: every,
		what:    "non-blocking communicators: each group is launched by a new thread that ends at once",
		outcome: "one row per communicator rank, not one per thread; the threads' memory is reused",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			r := ranks[0]
			for range 100 {
				u := r.App.Process().ShortThread("")
				g := u.Start(r.Context, descriptor.Group{})
				u.Stop(g)
			}
			reduceAgain(s, ranks, 2)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 4)
			n := len(o.shards[0].Locations)
			testkit.Check(o.t, n <= 8, "%d locations in a process of one communicator", n)
		},
	},
}

func stopped(o *outcome, typ string) (n int) {
	for _, p := range o.shards {
		n += int(p.Counts.Stops[typ])
	}
	return n
}
