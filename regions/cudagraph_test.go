// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// capture is a call that is captured into a graph.
func (s *scene) capture(us uint64, name string) {
	s.t.Helper()
	s.start(0, us, shm.EventGroupApi, "g of "+name, "", shm.Record{GroupDepth: 1, Flags: shm.FlagGraph})
	s.api(us+1, "api of "+name, "g of "+name, "AllReduce", shm.FlagGraph)
	s.start(0, us+4, shm.EventKernelLaunch, "launch of "+name, "g of "+name, shm.Record{Stream: 7})
	s.stop(0, us+6, shm.EventKernelLaunch, "launch of "+name)
	s.stop(0, us+7, shm.EventGroupApi, "g of "+name)
}

func TestReplaysAreLinkedWhereItIsCertain(t *testing.T) {
	const broadcast = "_Z38ncclDevKernel_Broadcast_Sum_i8_RING_LL24ncclDevKernelArgsStorageILm4096EE"
	replayed := func(begin, end float64, node uint64) gpuKernel {
		return gpuKernel{begin: begin, end: end, stream: 7, correlation: 50, graph: 5, node: node,
			name: allReduceKernel}
	}
	next := func(begin, end float64, node uint64) gpuKernel {
		k := replayed(begin, end, node)
		k.correlation++
		return k
	}
	type times struct{ begin, end uint64 } // end 0: there are no stamps
	for _, tc := range []struct {
		name    string
		plans   []times // of the captured call a, one replay after the other
		kernels []gpuKernel
	}{
		{"one each", []times{{10_000, 10_100}, {20_000, 20_100}},
			[]gpuKernel{replayed(9_999, 10_101, 3), replayed(19_999, 20_101, 3)}},
		{"from 13.4, another executable graph", []times{{10_000, 10_100}, {20_000, 20_100}},
			[]gpuKernel{
				{begin: 9_999, end: 10_101, stream: 7, correlation: 50, graph: 5, node: 3, source: 77,
					name: allReduceKernel},
				{begin: 19_999, end: 20_101, stream: 7, correlation: 51, graph: 6, node: 9, source: 77,
					name: allReduceKernel},
			}},
		{"lost", []times{{10_000, 10_100}, {20_000, 20_100}}, []gpuKernel{replayed(19_999, 20_101, 3)}},
		{"two at a time", []times{{10_000, 10_100}},
			[]gpuKernel{replayed(9_999, 10_101, 3), replayed(9_998, 10_103, 4)}},
		{"nearly two at a time", []times{{10_000, 10_100}},
			[]gpuKernel{replayed(9_999, 10_101, 3), replayed(9_970, 10_101, 4)}},
		{"other end", []times{{10_000, 10_100}}, []gpuKernel{replayed(9_999, 10_200, 3)}},
		{"not NCCL's", []times{{10_000, 10_100}},
			[]gpuKernel{{begin: 9_999, end: 10_101, stream: 7, correlation: 50, graph: 5, node: 3, name: "axpy"}}},
		{"of another function", []times{{10_000, 10_100}},
			[]gpuKernel{{begin: 9_999, end: 10_101, stream: 7, correlation: 50, graph: 5, node: 3, name: broadcast}}},
		{"of another device", []times{{10_000, 10_100}},
			[]gpuKernel{{begin: 9_999, end: 10_101, device: 1, stream: 7, correlation: 50, graph: 5, node: 3,
				name: allReduceKernel}}},
		{"not of a graph", []times{{10_000, 10_100}},
			[]gpuKernel{{begin: 9_999, end: 10_101, stream: 7, correlation: 50, name: allReduceKernel}}},
		{"a node of another plan's", []times{{10_000, 10_100}, {20_000, 20_100}, {30_000, 30_100}, {40_000, 40_100}},
			[]gpuKernel{replayed(9_999, 10_101, 3), replayed(19_999, 20_101, 3), replayed(29_999, 30_101, 3),
				replayed(39_999, 40_101, 3), replayed(39_998, 40_103, 4)}},
		{"without stamps", []times{{10_000, 0}, {20_000, 0}},
			[]gpuKernel{replayed(10_050, 10_100, 3), next(20_050, 20_100, 3)}},
		{"without stamps, the first lost", []times{{10_000, 0}, {20_000, 0}}, []gpuKernel{next(20_050, 20_100, 3)}},
		{"without stamps, the second lost", []times{{10_000, 0}, {20_000, 0}}, []gpuKernel{replayed(10_050, 10_100, 3)}},
		{"without stamps, before its report", []times{{10_000, 0}}, []gpuKernel{replayed(9_950, 10_100, 3)}},
		{"without stamps, a plan twice in a launch", []times{{10_000, 0}, {10_200, 0}},
			[]gpuKernel{replayed(10_050, 10_100, 3), replayed(10_250, 10_300, 4)}},
		{"without stamps, another node", []times{{10_000, 0}, {20_000, 0}},
			[]gpuKernel{replayed(10_050, 10_100, 3), next(20_050, 20_100, 4)}},
		{"without stamps, launches at a time", []times{{10_000, 0}, {10_040, 0}},
			[]gpuKernel{replayed(10_050, 10_100, 3), next(10_060, 10_110, 3)}},
		{"without stamps, of another function", []times{{10_000, 0}},
			[]gpuKernel{{begin: 10_050, end: 10_100, stream: 7, correlation: 50, graph: 5, node: 3, name: broadcast}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, 4)
			s.reading(1)
			s.capture(100, "a")
			s.launched(300, 1, 100, "a")
			s.give(2, 500, shm.Record{Kind: shm.RecordThread, TID: 200})
			name := "a"
			for _, p := range tc.plans {
				s.plan(2, p.begin-10, "p"+name, "AllReduce", name)
				if p.end > 0 {
					s.kernel(p.begin, p.end, name)
				}
				name += "'"
			}
			for _, k := range tc.kernels {
				s.activity(400_000, k.record())
			}
			s.reading(500_000)
			s.give(0, 9_000_000, shm.Record{Kind: shm.RecordFinalize})
			s.golden()
		})
	}
}

// Two communicators whose kernels always run at the same time cannot be told apart; ones that do so
// only later can, by the nodes of the graph.
func TestNodesOfAGraphAreRemembered(t *testing.T) {
	s := newScene(t, 4)
	s.m.Comm(1, description.Comm{ID: 0xdcba, Name: "other", NRanks: 4, Rank: 1}, description.GPU{Device: 0})
	s.give(0, 0, shm.Record{Kind: shm.RecordInit, Aux: 1})
	s.reading(1)
	s.capture(100, "a")
	s.start(0, 200, shm.EventGroupApi, "g of b", "", shm.Record{GroupDepth: 1, Flags: shm.FlagGraph, Aux: 1})
	s.start(0, 201, shm.EventCollApi, "api of b", "g of b",
		shm.Record{Func: "AllReduce", Count: 256, Datatype: "ncclFloat32", Flags: shm.FlagGraph, Aux: 1})
	s.stop(0, 202, shm.EventCollApi, "api of b")
	s.stop(0, 207, shm.EventGroupApi, "g of b")
	s.give(2, 500, shm.Record{Kind: shm.RecordThread, TID: 200})
	a, b := "a", "b"
	for i := range uint64(5) {
		begin := 5_000_000 * (i + 1)
		other := begin + 500
		if i >= 3 {
			other = begin + 2
		}
		s.plan(2, begin-10, "p"+a, "AllReduce", a)
		s.start(2, begin-5, shm.EventGroup, "p"+b, "", shm.Record{Aux: 1})
		s.start(2, begin-5, shm.EventColl, b, "api of b", shm.Record{
			Aux: 1, ParentGroup: s.id("p" + b), Func: "AllReduce", Count: 256, Datatype: "ncclFloat32", Algo: "RING",
			Proto: "LL", NChannels: 1, NWarps: 16,
		})
		s.stop(2, begin-4, shm.EventColl, b)
		s.stop(2, begin-4, shm.EventGroup, "p"+b)
		s.kernel(begin, begin+100, a)
		s.kernel(other, other+100, b)
		for k, at := range []uint64{begin, other} {
			node := 3 + uint64(k)
			s.activity(begin+1000, gpuKernel{begin: float64(at) - 1, end: float64(at) + 101, stream: 7 + uint32(node),
				correlation: 50 + uint32(i), graph: 5, node: node, name: allReduceKernel}.record())
		}
		s.reading(begin + 2000)
		a, b = a+"'", b+"'"
	}
	s.give(0, 39_000_000, shm.Record{Kind: shm.RecordFinalize})
	s.give(0, 39_000_001, shm.Record{Kind: shm.RecordFinalize, Aux: 1})
	s.golden() // kernels of node 3, on stream 10, are the first communicator's
}
