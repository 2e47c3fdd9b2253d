// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// GPU stamps (docs/nccl-profiler-api.md §7).
var gpuHazards = []hazard{
	{
		name: "no-stamps", releases: []string{v3},
		what:    "KernelCh without stamps (2.26)",
		outcome: "times are those of the network, otherwise of the enqueueing, and the archive says which",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 2)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 4)
			o.want("kernels", o.sum(starts, "KernelCh"), 8)
		},
	},
	{
		name: "zero-stamps", releases: withGPU,
		what:    "stamps that NCCL never read are 0",
		outcome: "0 is not taken for a time; the operation uses other times, marked and counted",
		script: withKernel(func(s *scenario.Scenario, r *scenario.Rank, task *scenario.Event) {
			k := r.Progress.Start(r.Context, descriptor.KernelCh{}, scenario.Under(task))
			r.Progress.State(k, descriptor.StateKernelChStop, scenario.PTimer(0))
			r.Progress.Stop(k)
		}),
		check: func(o *outcome) {
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 4)
			o.want("implausible", o.oddity("IMPLAUSIBLE_GPU_TIMES"), 2)
		},
	},
	{
		name: "stop-before-start", releases: withGPU,
		what:    "a kernel ends before it begins, because the ring of stamps was overrun",
		outcome: "not used; marked and counted",
		script: withKernel(func(s *scenario.Scenario, r *scenario.Rank, task *scenario.Event) {
			now, p := s.Now(), r.App.Process()
			k := r.Progress.Start(r.Context, descriptor.KernelCh{PTimer: p.GPU(now)}, scenario.Under(task))
			r.Progress.State(k, descriptor.StateKernelChStop, scenario.PTimer(p.GPU(now-40)))
			r.Progress.Stop(k)
		}),
		check: func(o *outcome) {
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 4)
			o.want("implausible", o.oddity("IMPLAUSIBLE_GPU_TIMES"), 2)
		},
	},
	{
		name: "kernels-purged", releases: withGPU,
		what:    "kernels are reported as started, and never as ended (purge at teardown, abort)",
		outcome: "the operation is written when the communicator ends, marked as unfinished",
		script: withKernel(func(s *scenario.Scenario, r *scenario.Rank, task *scenario.Event) {
			r.Progress.Start(r.Context, descriptor.KernelCh{PTimer: r.App.Process().GPU(s.Now())}, scenario.Under(task))
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 6)
			o.want("incomplete", o.oddity("INCOMPLETE_OPERATIONS"), 2)
		},
	},
	{
		name: "kernels-thrown-away", releases: []string{v7},
		what: "a communicator ends before the kernels of its operations were reported (2.31): some KernelCh never " +
			"start, some never stop, others of the same operation are complete",
		outcome: "only those times are lost: the operations are written when the communicator ends, marked as " +
			"unfinished where a kernel was open",
		script: withKernel(func(s *scenario.Scenario, r *scenario.Rank, task *scenario.Event) {
			begin := s.Now()
			kernel(s, r, task, 0, begin+5, begin+30)
			r.Progress.Start(r.Context, descriptor.KernelCh{ChannelID: 1, PTimer: r.App.Process().GPU(begin + 6)},
				scenario.Under(task))
			for range 3 { // of these, nothing is told
				r.Call(scenario.Op{Func: "AllReduce", NoKernel: true})
			}
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 12)
			o.atLeast("incomplete", o.oddity("INCOMPLETE_OPERATIONS"), 2)
		},
	},
	{
		name: "pair-of-kernels", releases: []string{v7},
		what: "a send and the receive paired with it both get a KernelCh, with the same stamps (2.31; before, " +
			"only one of them)",
		outcome: "both have these times, and later operations have their own: stamps that come twice are not taken " +
			"for those of other kernels",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for range 4 {
				for i, r := range ranks {
					d := r.Group(scenario.Op{Func: "Send", Peer: 1 - i, NoKernel: true, Channels: 1},
						scenario.Op{Func: "Recv", Peer: 1 - i, NoKernel: true, Channels: 1})
					begin := s.Now()
					for _, task := range d.Tasks {
						kernel(s, r, task, 0, begin+5, begin+30)
					}
				}
				s.Advance(300)
			}
			reduceAgain(s, ranks, 2)
		}),
		check: func(o *outcome) {
			o.want("sends with GPU times", sources(o.operationsOf("Send"))["gpu"], 8)
			o.want("receives with GPU times", sources(o.operationsOf("Recv"))["gpu"], 8)
			o.want("reductions with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 4)
			o.want("implausible", o.oddity("IMPLAUSIBLE_GPU_TIMES"), 0)
		},
	},
	{
		name: "no-kernel-events", releases: withGPU,
		what:    "NCCL reports no KernelCh for operations that should have some",
		outcome: "operations have enqueue times, and the memory of waiting operations stays bounded",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for range 10 {
				s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", NoKernel: true}))
			}
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 20)
			o.want("with enqueue times", sources(o.operationsOf("AllReduce"))["enqueue"], 20)
		},
	},
	{
		name: "many-channels", releases: withGPU,
		what:    "64 channels, each with its KernelCh; or 0 channels reported where there are some",
		outcome: "the interval spans all of them",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", Channels: 64}))
			for i, r := range ranks {
				d := ranks[i].Call(scenario.Op{Func: "AllReduce", NoKernel: true, Channels: 256}) // a byte: 0
				begin := s.Now()
				for c := range 8 {
					kernel(s, r, d.Tasks[0], c, begin+5, begin+30)
				}
			}
			s.Advance(300)
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 6)
		},
	},
	{
		name: "channels-on-request", releases: withGPU, env: []string{"NCCL_OTF2_CHANNELS=on"},
		what:    "the kernel of each channel has its own time",
		outcome: "with NCCL_OTF2_CHANNELS=on, each channel has a row",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 3)
		}),
		check: func(o *outcome) {
			o.want("on channel 0", o.entered("AllReduce", " ch 00"), 6)
			o.want("on channel 1", o.entered("AllReduce", " ch 01"), 6)
		},
	},
}

// withKernel is a script in which each rank's third operation has the kernel that NCCL is made to tell of.
func withKernel(tell func(s *scenario.Scenario, r *scenario.Rank, task *scenario.Event)) func(*scenario.Scenario) {
	return onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
		reduceAgain(s, ranks, 2)
		for _, r := range ranks {
			tell(s, r, r.Call(scenario.Op{Func: "AllReduce", NoKernel: true}).Tasks[0])
		}
		s.Advance(200)
	})
}
