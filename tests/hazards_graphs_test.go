// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// CUDA graphs and plans that run late (docs/nccl-profiler-api.md §3.5).
var graphHazards = []hazard{
	{
		name: "graph-replays", releases: withAPI,
		what: "calls are reported when a graph captures them, and their operations at each replay, with the " +
			"captured calls as parents",
		outcome: "one operation per replay, marked GRAPH; the captured call itself has no operation",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			var graphs []*scenario.Graph
			for _, r := range ranks {
				graphs = append(graphs, r.Capture(allReduce, scenario.Op{Func: "AllGather", Steps: 1}))
			}
			for range 5 {
				for _, g := range graphs {
					g.Replay()
				}
				s.Advance(400)
			}
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 10)
			o.want("gathers", len(o.operationsOf("AllGather")), 10)
			o.want("calls", o.entered("ncclAllReduce", "Thread"), 2)
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 10)
		},
	},
	{
		name: "replays-of-one-number", releases: withAPI,
		what:    "sequence numbers do not count replays: several operations carry the same one",
		outcome: "the plugin numbers operations itself (ORDINAL), and they are matched by that number",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			var captured [2]*scenario.Done
			for i, r := range ranks {
				captured[i] = r.Capture(allReduce).Captured()
			}
			for range 4 {
				for i, r := range ranks {
					g := r.Driver.Start(r.Context, descriptor.Group{})
					c := r.Driver.Start(r.Context, descriptor.Coll{SeqNumber: 7, Func: "AllReduce", Count: 1024,
						Datatype: "ncclFloat32", NChannels: 1, NWarps: 8, Algo: "RING", Proto: "LL"},
						scenario.Under(captured[i].Apis[0]), scenario.InGroup(g))
					r.Driver.Stop(c)
					r.Driver.Stop(g)
					kernel(s, r, c, 0, s.Now(), s.Now()+30)
				}
				s.Advance(100)
			}
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 8)
			for i, op := range o.operationsOf("AllReduce") {
				testkit.Equal(o.t, op.Seq, 7, "operation %d: SEQ", i)
			}
		},
	},
	{
		name: "graph-seen-once", releases: withAPI,
		what: "a captured plan without proxy work is reported at its capture and never again",
		outcome: "the archive has the call, and no invented operation; later operations are right; report says that " +
			"replays are not visible (property HIDDEN, a marker)",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for _, r := range ranks {
				d := r.Capture(allReduce).Captured()
				g := r.App.Start(r.Context, descriptor.Group{})
				c := r.App.Start(r.Context, descriptor.Coll{Func: "AllReduce", Count: 1024, Datatype: "ncclFloat32",
					NChannels: 1, NWarps: 8, Algo: "RING", Proto: "LL"},
					scenario.Under(d.Apis[0]), scenario.InGroup(g))
				r.App.Stop(c)
				r.App.Stop(g)
			}
			s.Advance(1000)
			reduceAgain(s, ranks, 2)
		}),
		check: func(o *outcome) {
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 4)
			o.want("calls", o.entered("ncclAllReduce", "Thread"), 6)
			keys := o.properties()["NCCL_OTF2::HIDDEN"]
			testkit.Check(o.t, strings.HasPrefix(keys, "graph-replays, "), "not visible: %q", keys)
			o.want("markers", o.markers("Graph replays not seen"), 2)
		},
	},
	{
		name: "deferred-plan", releases: withAPI,
		what: "a plan is enqueued by a callback of the stream, on a thread of the driver, long after the call " +
			"returned",
		outcome: "drawn on \"NCCL enqueue\" of its communicator rank; the operation belongs to its call",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for range 3 {
				for i, r := range ranks {
					g := r.App.Start(r.Context, descriptor.GroupApi{GroupDepth: 1})
					r.App.State(g, descriptor.StateGroupStartApiStop, nil)
					c := r.App.Start(r.Context, descriptor.CollApi{Func: "AllReduce", Count: 1024, Datatype: "ncclFloat32",
						Stream: 0x51}, scenario.Under(g))
					r.App.Stop(c)
					r.App.State(g, descriptor.StateGroupEndApiStart, nil)
					l := r.App.Start(r.Context, descriptor.KernelLaunch{Stream: 0x51}, scenario.Under(g))
					r.App.Stop(l)
					r.App.Stop(g)
					at := s.Now()
					s.At(at + 3000) // behind long work on the stream
					d := r.Driver
					plan := d.Start(r.Context, descriptor.Group{})
					op := d.Start(r.Context, descriptor.Coll{Func: "AllReduce", Count: 1024, Datatype: "ncclFloat32",
						NChannels: 1, NWarps: 8, Algo: "RING", Proto: "LL"},
						scenario.Under(c), scenario.InGroup(plan))
					d.Stop(op)
					d.Stop(plan)
					kernel(s, r, op, 0, at+3010, at+3060)
					if i == 0 {
						s.At(at)
					}
				}
				s.Advance(200)
			}
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 6)
			o.want("plans on the enqueue rows", o.entered("Enqueue plan", "NCCL enqueue"), 6)
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 6)
		},
	},
	{
		name: "captured-and-direct", releases: []string{v5, v6},
		what: "a graph captured without KernelCh in the mask is counted on the device and not on the host: later " +
			"stamps are those of other kernels (to 2.30)",
		outcome: "impossible stamps are noticed and marked, and that communicator's stamps are no longer used",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 2)
			for range 6 {
				for _, r := range ranks {
					d := r.Call(scenario.Op{Func: "AllReduce", NoKernel: true})
					// The stamps of a kernel long over.
					kernel(s, r, d.Tasks[0], 0, s.Now()-900, s.Now()-850)
				}
				s.Advance(1000)
			}
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 16)
			o.atLeast("implausible", o.oddity("IMPLAUSIBLE_GPU_TIMES"), 12)
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 4)
		},
	},
}

// kernel reports one channel's kernel of an operation, from … to in µs; the callbacks come a little later.
func kernel(s *scenario.Scenario, r *scenario.Rank, op *scenario.Event, channel int, from, to float64) {
	back := s.Now()
	p := r.App.Process()
	s.At(max(back, from) + 2)
	e := r.Progress.Start(r.Context, descriptor.KernelCh{ChannelID: channel, PTimer: p.GPU(from)}, scenario.Under(op))
	s.At(max(s.Now(), to) + 2)
	r.Progress.State(e, descriptor.StateKernelChStop, scenario.PTimer(p.GPU(to)))
	r.Progress.Stop(e)
	s.At(back)
}
