// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// Network activity, PXN and network plugins (docs/nccl-profiler-api.md §3.2, §6, §8).
var proxyHazards = []hazard{
	{
		name: "no-room-for-proxies", releases: withKern[:4], env: []string{hidden.RuntimeConnect + "=1"},
		limits: "-n 110",
		what: "up to 2.30, KernelCh makes a pool of 34 MB in /dev/shm for each rank of each communicator, with its " +
			"first operation. NCCL does not notice that it could not make it " +
			"(little room, read-only, limits on files and descriptors), and crashes (#2326)",
		outcome: "the plugin does not ask for KernelCh where the pools of all ranks would take more than half of the " +
			"room, or another limit is in the way, and asks no longer once a communicator would need more than that; " +
			"a line in NCCL's log says so, and so do the archive (marker Withheld, property WITHHELD) and the report",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) { reduceAgain(s, ranks, 6) }),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 12)
			o.want("with GPU times", sources(o.operationsOf("AllReduce"))["gpu"], 0)
			o.want("KernelCh events", o.sum(starts, "KernelCh"), 0)
			testkit.Contains(o.t, o.properties()["NCCL_OTF2::WITHHELD"], hidden.NoRoom)
			o.want("markers", o.markers("Withheld"), 1)
		},
	},
	{
		name: "transfers", releases: withSize,
		what:    "steps of many ProxyOps are open at once and end in any order; only two states have sizes",
		outcome: "the phases of the oldest step are regions; every transfer is an RMA put with its bytes",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for range 3 {
				s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", Channels: 4, Steps: 5, StepBytes: 32768}))
			}
		}),
		check: func(o *outcome) {
			puts, bytes := o.puts()
			o.want("puts", puts, 2*3*4*5)
			o.want("bytes", bytes, 2*3*4*5*32768)
			o.want("without place or size", o.oddity("UNPLACED_TRANSFERS")+o.oddity("UNSIZED_TRANSFERS"), 0)
			o.atLeast("phases", o.entered("Send network", "net send"), 1)
		},
	},
	{
		name: "early-proxy-states", releases: []string{v1, v2, v3},
		what:    "up to 2.26, sizes come with the states of ProxyOp, as sums, and steps have none",
		outcome: "phases are drawn; network traffic is not attributed to a communicator of unknown size",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 2)
		}),
		check: func(o *outcome) {
			o.atLeast("sends", o.entered("Send network", "net send"), 1)
			o.atLeast("receives", o.entered("Recv network", "net recv"), 1)
		},
	},
	{
		name: "pxn", releases: withSize,
		what: "the proxy of another process sends for a rank: context, parent and pid are those of the rank's " +
			"process",
		outcome: "drawn where it ran; the put belongs to the communicator's network, PARENT_ID names the operation",
		script: func(s *scenario.Scenario) {
			ranks := s.Job(3, scenario.Comm{ID: 0x9317, Name: "pp"})
			for range 2 {
				reduceAgain(s, ranks, 1)
				ranks[0].Call(scenario.Op{Func: "Send", Peer: 2, Steps: 2, StepBytes: 8192, Via: ranks[1]})
				ranks[2].Call(scenario.Op{Func: "Recv", Peer: 0, Steps: 2, StepBytes: 8192})
				s.Advance(300)
			}
			scenario.Leave(ranks)
		},
		check: func(o *outcome) {
			o.want("sends", len(o.operationsOf("Send")), 2)
			puts := 0
			operations := map[string]bool{}
			for loc, events := range o.archive.events {
				for _, e := range events {
					if strings.Contains(o.archive.locations[loc].Name, "PXN") && e.Event == "RmaPut" {
						puts++
					}
					if id := string(e.Attributes["EVENT_ID"]); id != "" && e.Event == "Enter" {
						operations[id] = true
					}
				}
			}
			o.want("puts of another's", puts, 4)
			linked := 0
			for loc, events := range o.archive.events {
				for _, e := range events {
					if strings.Contains(o.archive.locations[loc].Name, "PXN") &&
						operations[string(e.Attributes["PARENT_ID"])] {
						linked++
					}
				}
			}
			o.atLeast("links to the operation", linked, 1)
			o.want("transfers without place", o.oddity("UNPLACED_TRANSFERS"), 0)
		},
	},
	{
		name: "pxn-of-nobody", releases: withSize,
		what:    "PXN for a process that has no plugin, or whose data is missing: unknown contexts",
		outcome: "drawn where it ran, as a separate network, and counted",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 1)
			p := ranks[1].Progress
			foreign := scenario.Raw(0x7f00_1234_5678)
			op := p.Start(foreign, descriptor.ProxyOp{PID: 999999, Peer: 5, NSteps: 1, ChunkSize: 4096, IsSend: true},
				scenario.Under(scenario.Raw(0x7f00_8765_4321)), scenario.WithRank(3))
			step := p.Start(foreign, descriptor.ProxyStep{}, scenario.Under(op), scenario.WithRank(3))
			p.State(step, descriptor.StateProxyStepSendGPUWait, scenario.TransSize(0))
			p.State(step, descriptor.StateProxyStepSendWait, scenario.TransSize(4096))
			p.Stop(step)
			p.Stop(op)
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) { o.want("reductions", o.reductions(), 4) },
	},
	{
		name: "network-plugins", releases: withKern,
		what:    "InfiniBand and socket transports report requests; those of InfiniBand are stopped twice",
		outcome: "requests are counted with their bytes; second stops are counted, too",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			for _, net := range []int64{scenario.NetIB, scenario.NetSocket} {
				s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", Steps: 2, Net: net}))
			}
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 4)
			o.atLeast("events", o.sum(starts, "NetPlugin"), 8)
		},
	},
	{
		name: "unknown-network-plugin", releases: withKern,
		what:    "a third party's network plugin: unknown id, and data in a format of its own",
		outcome: "its events are counted; their data is not read",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", Steps: 2, Net: 0x70003}))
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 2)
			o.atLeast("unknown", o.oddity("UNKNOWN_NET_EVENTS"), 4)
		},
	},
	{
		name: "null-network-stops", releases: withKern,
		what:    "stop and update of a network plugin's event come with the handle NULL",
		outcome: "ignored and counted",
		script: onPair(func(s *scenario.Scenario, ranks []*scenario.Rank) {
			reduceAgain(s, ranks, 1)
			p := ranks[0].Progress
			for range 4 {
				p.State(scenario.Raw(0), descriptor.StateNetPluginUpdate, new(replay.Args))
				p.Stop(scenario.Raw(0))
			}
			reduceAgain(s, ranks, 1)
		}),
		check: func(o *outcome) {
			o.want("reductions", o.reductions(), 4)
			o.want("null handles", int(o.shards[0].Counts.NullHandles), 8)
		},
	},
}

// puts counts RMA puts and their bytes.
func (o *outcome) puts() (n, bytes int) {
	for _, events := range o.archive.events {
		for _, e := range events {
			if e.Event == "RmaPut" {
				n++
				bytes += int(e.Bytes)
			}
		}
	}
	return n, bytes
}
