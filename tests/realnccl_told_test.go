// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/realnccl/suite"
)

// driverCall is a line of the driver's log: of rank 1 of three, floats.
func driverCall(op string, count uint64, args ...string) suite.Call {
	return suite.Call{Type: 7, Root: 2, CommName: "world",
		Issue: replay.Issue{WorldRank: 1, CommRank: 1, NRanks: 3, Op: op, Count: count, Args: append(args, "", "")}}
}

// What the driver logs of a call is told as the operations that NCCL makes of it.
func TestCallsAsOperations(t *testing.T) {
	for _, test := range []struct {
		call suite.Call
		want string
	}{
		{driverCall("ar", 10), "AllReduce -1 120/120"},
		{driverCall("bc", 10, "2"), "Broadcast 2 0/40"},
		{driverCall("rd", 10, "2"), "Reduce 2 40/0"},
		{driverCall("sr", 10), "Send 2 40/0, Recv 0 0/40"},
		{driverCall("send", 10, "+1"), "Send 2 40/0"},
		{driverCall("recv", 10, "-1"), "Recv 0 0/40"},
		{driverCall("pair", 10, "1", "0"), "Send 0 40/0"},
		{driverCall("pair", 10, "0", "1"), "Recv 0 0/40"},
		{driverCall("gather", 10, "2"), "Send 2 40/0"},
		{driverCall("a2a", 10), "Send 0 40/0, Recv 0 0/40, Send 1 40/0, Recv 1 0/40, Send 2 40/0, Recv 2 0/40"},
	} {
		ops := testkit.Value(operationsOfCall(&test.call))(t)
		var got []string
		for _, o := range ops {
			got = append(got, strings.Join([]string{o.Name, strconv.FormatInt(o.Root, 10),
				strconv.FormatInt(int64(o.Sent), 10) + "/" + strconv.FormatInt(int64(o.Received), 10)}, " "))
		}
		testkit.Equal(t, strings.Join(got, ", "), test.want, "%s", test.call.Op)
	}
	unknown := driverCall("dance", 1)
	if _, err := operationsOfCall(&unknown); err == nil {
		t.Error("a call that is not known is told as something")
	}
}

// Whatever an archive has too much, too little or otherwise is found.
func TestOtherArchivesAreFound(t *testing.T) {
	graph := 0
	captured, replayed := driverCall("ag", 5), driverCall("replay", 0)
	captured.Graph, replayed.Graph = &graph, &graph
	logs := map[int]*suite.Process{7: {PID: 7, Calls: []suite.Call{driverCall("ar", 10), captured, replayed, replayed}}}
	for i := range logs[7].Calls {
		logs[7].Calls[i].T0 = uint64(i)
	}
	key := calledRank{7, 1, 0, 1, 3, "world"}
	program := &suite.Program{Args: []string{"-n", "3"}}
	rowOf := func(change func(map[string][]*operation)) []*row {
		ops := calledOperations(t, logs, true)[key]
		change(ops)
		return []*row{{comm: &communicator{Name: "world", Members: make([]uint64, 3)}, process: 1, rank: 1,
			device: key.worldRank % pretendedDevices, ops: ops}}
	}
	want := calledOperations(t, logs, true)[key]
	if n := len(want["AllGather"]); n != 2 {
		t.Fatalf("%d operations of a graph that was replayed twice", n)
	}
	for _, test := range []struct {
		what      string
		change    func(map[string][]*operation)
		same, was bool // the archive is as called; or what had returned is there
	}{
		{"the same", func(map[string][]*operation) {}, true, true},
		{"one less", func(o map[string][]*operation) { o["AllGather"] = o["AllGather"][:1] }, false, false},
		{"one more", func(o map[string][]*operation) { o["AllReduce"] = append(o["AllReduce"], o["AllReduce"][0]) },
			false, true},
		{"two more", func(o map[string][]*operation) {
			o["AllReduce"] = append(o["AllReduce"], o["AllReduce"][0], o["AllReduce"][0])
		}, false, false},
		{"another count", func(o map[string][]*operation) { o["AllReduce"][0].Count++ }, false, false},
		{"another type", func(o map[string][]*operation) { o["AllReduce"][0].Datatype = "ncclInt8" }, false, false},
		{"another function", func(o map[string][]*operation) { o["Reduce"] = o["AllReduce"]; delete(o, "AllReduce") },
			false, false},
	} {
		all := rowOf(test.change)
		_, diff := nearest(key, want, all, program)
		if (diff == "") != test.same || begunBy(all[0].ops, want) != test.was {
			t.Errorf("%s: difference %q, what had returned is there: %v", test.what, diff, begunBy(all[0].ops, want))
		}
	}
	for _, change := range []func(*row){
		func(r *row) { r.rank = 0 }, func(r *row) { r.process = 0 }, func(r *row) { r.device++ },
		func(r *row) { r.taken = true },
		func(r *row) { r.comm.Members = r.comm.Members[1:] }, func(r *row) { r.comm.Name = "other" },
	} {
		all := rowOf(func(map[string][]*operation) {})
		if change(all[0]); best(nearest(key, want, all, program)) != nil {
			t.Error("another rank's row is taken")
		}
	}
}

func best(r *row, _ string) *row { return r }

// Intervals are held against launches one by one.
func TestOtherTimesAreFound(t *testing.T) {
	p := &suite.Process{}
	for launch, begin := range []uint64{100, 200, 300} {
		for channel := range 2 {
			k := suite.Kernel{Launch: launch, WorldRank: 1}
			k.T0, k.T1, k.Channel, k.Func = begin+uint64(channel), begin+50+uint64(channel), channel,
				"AllReduce_Sum_f32_RING_LL"
			k.TDone = k.T1
			p.Kernels = append(p.Kernels, k)
		}
	}
	other := p.Kernels[0]
	other.Comm = 1
	p.Kernels = append(p.Kernels, other)
	runs := launched(p, calledRank{worldRank: 1})
	if len(runs) != 3 || runs[1].begin != 200 || runs[1].end != 251 {
		t.Fatalf("launches are %v", runs)
	}
	plans := plansInOrder(map[string][]*operation{
		"A": {{region: 4, begin: 300, end: 351, source: "gpu"}, {region: 1, begin: 100, end: 151, source: "gpu"}},
		"B": {{region: 1, begin: 100, end: 151, source: "gpu"}, {region: 3, begin: 300, end: 300, source: "network"}},
	})
	off := offs(plans, runs, func(t uint64) int64 { return int64(t) + 3 })
	if len(plans) != 3 || len(off) != 4 || slices.Max(off) != 3 || slices.Min(off) != 3 {
		t.Errorf("%d plans are off by %v", len(plans), off)
	}
}

// The end of a launch is known to lie between its last stamp and its end where thread 0 may be done before others; a
// batch that is followed by another one is whole.
func TestEndsOfThreadZero(t *testing.T) {
	batch := func(channel int, function string, parts int, done, end uint64) suite.Kernel {
		k := suite.Kernel{WorldRank: 1, Parts: parts, TDone: done}
		k.Func, k.Channel, k.T0, k.T1 = function, channel, 100, end
		return k
	}
	for _, test := range []struct {
		name    string
		batches []suite.Kernel
		whole   bool
	}{
		{"ring", []suite.Kernel{batch(0, "AllGather_RING_SIMPLE", 1, 150, 150),
			batch(1, "AllReduce_Sum_f32_RING_LL128", 1, 200, 200)}, true},
		{"uneven all-gather", []suite.Kernel{batch(0, "AllGatherV_RING_LL", 1, 200, 200)}, true},
		{"tree", []suite.Kernel{batch(0, "AllReduce_Sum_f32_TREE_LL", 2, 150, 200)}, false},
		{"tree's root", []suite.Kernel{batch(0, "AllReduce_Sum_f32_TREE_LL", 1, 150, 200)}, false},
		{"ring and tree", []suite.Kernel{batch(0, "AllReduce_Sum_f32_RING_LL", 1, 150, 150),
			batch(1, "AllReduce_Sum_f32_TREE_LL", 2, 150, 200)}, false},
		{"tree before ring", []suite.Kernel{batch(0, "AllReduce_Sum_f32_TREE_LL", 2, 150, 151),
			batch(0, "AllReduce_Sum_f32_RING_LL", 1, 200, 200)}, true},
		{"message", []suite.Kernel{batch(0, "SendRecv", 1, 200, 200)}, true},
		{"messages", []suite.Kernel{batch(0, "SendRecv", 1, 100, 100), batch(1, "SendRecv", 3, 150, 200)}, false},
	} {
		runs := launched(&suite.Process{Kernels: test.batches}, calledRank{worldRank: 1})
		if len(runs) != 1 || runs[0].whole() != test.whole {
			t.Errorf("%s: the stamps of %v are its end: %v, want %v", test.name, runs, !test.whole, test.whole)
			continue
		}
		at150 := time.Duration(0)
		if test.whole {
			at150 = 50
		}
		for end, want := range map[int64]time.Duration{200: 0, 210: 10, 150: at150, 140: at150 + 10} {
			testkit.Equal(t, runs[0].off(end), want, "%s: an end at %d is off by", test.name, end)
		}
	}
}
