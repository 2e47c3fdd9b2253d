// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// The job's numbers by hand. AllReduces begin at 110 and 210 µs, each rank 10 µs after the one
// before, and end at 150 and 250 µs on all: intervals 40, 30, 20 µs, mean 30 µs, 20 µs from the last
// arrival. The first one is the communicator's start-up. 1000 float32 are
// 4000 bytes: 4000 B / 30 µs = 0.1333 GB/s, busbw × 2·2/3.
func TestNumbersOfOperations(t *testing.T) {
	r := jobtest.Operations(t, jobtest.Typical(t, nil))
	one := func(ns float64) analysis.Times {
		return analysis.Times{Total: ns, Avg: ns, Min: ns, P50: ns, P99: ns, Max: ns}
	}
	base := operations.Row{
		Communicator: "world", Role: "world", Ranks: 3, Datatype: "ncclFloat32", TimingSource: "gpu",
		Algorithms: []string{}, Protocols: []string{}, Variants: []string{}, Calls: 3, MinCallsPerRank: 1,
		MaxCallsPerRank: 1, Count: 1, Timed: 1,
	}
	late := func(o *operations.Row, ns float64) { // ranks take 40, 30 and 20 µs, so the last one takes 20
		t, rank0 := one(ns), 2*ns
		o.Transfer, o.TransferTimed, o.Members = &t, 1, &bandwidth.MemberTimes{Rank0: &rank0, Min: ns, Max: 2 * ns}
	}
	elements := func(n uint64) *uint64 { return &n }
	root, enqueued := 1, 20_000.0
	row := func(change func(o *operations.Row)) operations.Row {
		o := base
		change(&o)
		return o
	}
	message := func(operation string, size uint64, took float64) operations.Row {
		return row(func(o *operations.Row) {
			o.Operation, o.Size, o.Datatype, o.Calls, o.MinCallsPerRank, o.Time = operation, size, "ncclInt8", 1, 0,
				one(took)
			o.AlgBW, o.Elements = float64(size)/took, elements(size)
			o.BusBW = o.AlgBW
		})
	}
	want := []operations.Row{
		row(func(o *operations.Row) { // 100 float32 per rank
			o.Operation, o.Size, o.Grouped, o.Time = "AllGather", 1200, true, one(30_000)
			o.Elements = elements(100)
			late(o, 20_000)
		}),
		row(func(o *operations.Row) {
			o.Operation, o.Size, o.Calls, o.Count, o.MinCallsPerRank, o.MaxCallsPerRank = "AllReduce", 4000, 6, 2, 2, 2
			o.Time = one(30_000)
			o.Time.Total, o.StartUp, o.Elements = 60_000, 1, elements(1000)
			late(o, 20_000)
			o.AlgBWNobodyLate, o.BusBWNobodyLate = 4000.0/20_000, 4000.0/20_000*4/3
			o.Algorithms, o.Protocols, o.MinChannels, o.MaxChannels = []string{"RING"}, []string{"SIMPLE"}, 4, 4
			o.AlgBW, o.BusBW = 4000.0/30_000, 4000.0/30_000*4/3
		}),
		row(func(o *operations.Row) { // enqueue times are not execution times, so there is no bandwidth
			o.Operation, o.Size, o.TimingSource, o.Time = "Broadcast", 800, "enqueue", one(20_000)
			o.Root, o.Elements, o.Members = &root, elements(200),
				&bandwidth.MemberTimes{Rank0: &enqueued, Min: enqueued, Max: enqueued}
		}),
		message("Recv", 64, 12_000),
		message("Recv", 100, 11_000),
		message("Recv", 4096, 12_000),
		row(func(o *operations.Row) { // 200 float32 per rank
			o.Operation, o.Size, o.Grouped, o.Time = "ReduceScatter", 2400, true, one(30_000)
			o.Elements = elements(200)
			late(o, 20_000)
		}),
		message("Send", 64, 10_000),
		message("Send", 100, 10_000),
		message("Send", 4096, 10_000),
	}
	testkit.Same(t, want, r.Operations, cmpopts.EquateApprox(1e-12, 0))
}

// Three launches have GPU times on all ranks: two AllReduces and the group. In each rank 2 is last,
// rank 0 waits 20 µs for it, rank 1 10 µs. The communicator's first is its start-up.
func TestWhoWaitedForWhom(t *testing.T) {
	w := jobtest.Operations(t, jobtest.Typical(t, nil)).Waits
	want := waits.ByRank{
		Collectives: 2, LeftOut: 1, Hosts: 2, Total: 60_000,
		StartUp: waits.StartUp{Collectives: 1, Waited: 30_000, Rank: "Rank 2", Host: "node1", Caused: 30_000},
		Ranks: []waits.Rank{
			{Rank: "Rank 0", Host: "node0", Collectives: 2, Time: 80_000, Waited: 40_000},
			{Rank: "Rank 1", Host: "node0", Collectives: 2, Time: 60_000, Waited: 20_000},
			{Rank: "Rank 2", Host: "node1", Collectives: 2, Time: 40_000,
				Blame: waits.Blame{Caused: 60_000, Last: 2, MaxCaused: 30_000, WorstAt: t0 + 230*us}},
		},
	}
	testkit.Same(t, want, w)
}

// Scalasca 2.6 finds Wait at NxN of 6, 4, 2 and 0 ms in this archive.
func TestWaitsAreThoseThatScalascaFinds(t *testing.T) {
	w := jobtest.Operations(t, filepath.Join("..", "..", "..", "tests", "jobtest", "testdata", "scalasca-min", "traces.otf2")).Waits
	var waits []uint64
	culprit := 0
	for i, r := range w.Ranks {
		waits = append(waits, r.Waited)
		if r.Caused > w.Ranks[culprit].Caused {
			culprit = i
		}
	}
	diff := cmp.Diff([]uint64{6_000_000, 4_000_000, 2_000_000, 0}, waits)
	testkit.Check(t, diff == "" && culprit == 3, "%+v\n%s", w, diff)
}

func TestSummaryOfAJob(t *testing.T) {
	s := jobtest.Operations(t, jobtest.Typical(t, nil)).Summary
	s.Archive = ""
	want := operations.Summary{
		Creator: "nccl-otf2", Processes: 3, Died: []string{}, Ranks: 3, Hosts: 2, GPUs: 3, Communicators: 1,
		Locations: 6,
		Events:    3*4 + 28 + 32 + 24, Operations: 5 + 3, Bytes: 1200 + 2*4000 + 800 + 2400 + 64 + 100 + 4096,
		Calls: 15 + 6,
		Begin: t0, Duration: 600 * us, Complete: true,
		Lost: map[string]uint64{}, Oddities: map[string]uint64{}, Filtered: map[string]uint64{},
		Network: map[string]uint64{}, CUPTI: map[string]uint64{}, Paused: map[string]uint64{}, Gaps: []analysis.Gap{},
		Deviations: []operations.Deviation{},
		Timing:     map[string]uint64{"GPU": 18, "ENQUEUE": 3}, Ends: map[string]uint64{},
		Hidden:  hidden.Of(hidden.Place{Library: "NCCL", Version: 22907, Network: true}),
		Untimed: "no GPU times were recorded: NCCL was asked for them and reported none",
	}
	testkit.Same(t, want, s)
}

// Operations on a GPU's memory have a row of their own and a mark; one buffer of one rank suffices. Managed memory,
// which a GPU shares, counts as GPU memory; pinned and unknown memory does not.
func TestDeviceMemoryIsMarked(t *testing.T) {
	path := jobtest.Typical(t, func(rank int, p *shardtest.Process) {
		for i, class := range []string{regions.ClassDevice, regions.ClassManaged, regions.ClassPinned,
			regions.ClassHost, regions.ClassUnknown} {
			if i == 0 && rank < 2 {
				class = regions.ClassUnknown
			}
			begin := t0 + uint64(1000+100*i)*us
			p.Collective(0, shardtest.Op{Function: "AllReduce", Begin: begin, End: begin + 10*us, Count: 1000,
				Memory: class})
		}
		begin := uint64(t0 + 2000*us)
		p.Plan(0, []shardtest.Op{
			{Function: "AllGather", Begin: begin, End: begin + 40*us, Count: 100, Memory: regions.ClassDevice},
			{Function: "Reduce", Begin: begin, End: begin + 40*us, Root: 1, Count: 100}})
	})
	r := jobtest.Operations(t, path)
	got := make(map[string]uint64)
	for _, o := range r.Operations {
		if o.Operation == "AllReduce" || o.Operation == "AllGather" || o.Operation == "Reduce" {
			got[fmt.Sprint(o.Operation, " ", o.Grouped, " ", o.Device)] += o.Count
		}
	}
	want := map[string]uint64{"AllReduce false false": 2 + 3, "AllReduce false true": 2, "AllGather true false": 1,
		"AllGather true true": 1, "Reduce true false": 1}
	testkit.Same(t, want, got)
	var b strings.Builder
	testkit.Must(t, report.WriteStyled(r, &b, report.Style{}))
	for _, want := range []string{" *AllReduce ", " AllReduce ", " *AllGather* ", " Reduce* ",
		"\n* before the name: a buffer is in GPU memory, or memory that it shares (managed)\n"} {
		testkit.Check(t, strings.Contains(b.String(), want), "no %q in\n%s", want, b.String())
	}
}

// The summary has CUPTI's counts of kernels, also of those that could not be used.
func TestKernelsInTheSummary(t *testing.T) {
	failed := func(rank int) *experiment.Cupti {
		if rank == 0 {
			return &experiment.Cupti{State: "ended", Version: 22}
		}
		return &experiment.Cupti{State: "failed", Error: 15, Why: "libcupti.so.12: no driver"}
	}
	busy := func(int) *experiment.Cupti { return &experiment.Cupti{State: "busy", Error: 39} }
	for _, tc := range []struct {
		counts map[string]uint64 // of each rank
		cupti  func(rank int) *experiment.Cupti
		want   string
	}{
		{nil, nil, ""},
		{nil, busy, "CUPTI is busy: error 39"},
		{map[string]uint64{"RECORDS": 9}, failed,
			"0 of NCCL's not linked; CUPTI is failed in processes 1-2: libcupti.so.12: no driver"},
		{map[string]uint64{"RECORDS": 9, "MEMORY_OPERATIONS": 9}, nil,
			"0 recorded, 0 of them linked with their launches; 0 of NCCL's not linked"},
		{map[string]uint64{"RECORDS": 20, "KERNELS": 7, "KERNELS_LINKED": 4, "KERNELS_GRAPH_LINKED": 1,
			"KERNELS_NO_EXTERNAL_ID": 2}, nil,
			"21 recorded, 12 of them linked with their launches, 3 with replayed operations; 0 of NCCL's not linked"},
		{map[string]uint64{"RECORDS": 20, "KERNELS": 7, "KERNELS_LINKED": 3, "KERNELS_AGED_OUT": 2,
			"KERNELS_IMPLAUSIBLE": 1, "KERNELS_UNDECIDED": 1, "NCCL_KERNELS_UNLINKED": 3, "WITHOUT_TIMES": 2,
			"UNDRAWN": 1}, nil,
			"21 recorded, 9 of them linked with their launches; 9 of NCCL's not linked; 3 still undecided; 9 records " +
				"not drawn"},
	} {
		path := jobtest.Typical(t, func(rank int, p *shardtest.Process) {
			p.Shard.Counts.CUPTI = tc.counts
			if tc.cupti != nil {
				p.Shard.Cupti = tc.cupti(rank)
			}
		})
		r := jobtest.Operations(t, path)
		var b strings.Builder
		testkit.Must(t, report.WriteStyled(r, &b, report.Style{}))
		testkit.Check(t, (tc.want != "" || !strings.Contains(b.String(), "\n  kernels ")) &&
			strings.Contains(b.String(), tc.want), "no %q in\n%s", tc.want, b.String())
		for name, n := range tc.counts {
			testkit.Equal(t, r.Summary.CUPTI[name], 3*n, "%s", name)
		}
	}
}

func TestReportAsText(t *testing.T) {
	r := jobtest.Operations(t, jobtest.Typical(t, nil))
	r.Summary.Archive = "traces.otf2"
	var b bytes.Buffer
	testkit.Must(t, report.WriteStyled(r, &b, report.Style{}))
	golden.Text(t, "testdata/report.txt", b.String())
}

func TestReportAsJSONHasStableNames(t *testing.T) {
	b := testkit.Value(json.Marshal(jobtest.Operations(t, jobtest.Typical(t, nil))))(t)
	for _, want := range []string{`"busbw":`, `"avg_ns":30000`, `"caused_ns":60000`, `"duration_ns":600000`,
		`"min_calls_per_rank":2`} {
		testkit.Check(t, strings.Contains(string(b), want), "no %s in %s", want, b)
	}
}

func TestSharesOfSizes(t *testing.T) {
	for _, c := range []struct {
		op             otf2.CollectiveOp
		sent, received uint64
		root           bool
		want           []uint64
	}{
		{otf2.CollectiveOpAllreduce, 400, 400, false, []uint64{100}},
		{otf2.CollectiveOpAllreduce, 400, 404, false, nil},
		{otf2.CollectiveOpAllreduce, 402, 402, false, nil},
		{otf2.CollectiveOpAllgather, 400, 400, false, []uint64{100}},
		{otf2.CollectiveOpAllgather, 300, 300, false, []uint64{75, 100}},
		{otf2.CollectiveOpAllgather, 0, 0, false, []uint64{0}},
		{otf2.CollectiveOpBcast, 400, 100, true, []uint64{100}},
		{otf2.CollectiveOpBcast, 0, 100, false, []uint64{100}},
		{otf2.CollectiveOpBcast, 400, 100, false, nil},
		{otf2.CollectiveOpReduce, 100, 400, true, []uint64{100}},
		{otf2.CollectiveOpReduce, 100, 0, false, []uint64{100}},
		{otf2.CollectiveOpGather, 100, 400, true, []uint64{100}},
		{otf2.CollectiveOpScatter, 0, 100, false, []uint64{100}},
		{otf2.CollectiveOpAlltoall, 400, 400, false, []uint64{100}},
		{otf2.CollectiveOpReduceScatterBlock, 400, 400, false, []uint64{100}},
	} {
		got := regions.CollectiveOf(c.op).Shares(c.sent, c.received, 4, c.root)
		testkit.Check(t, cmp.Equal(got, c.want), "%v %d/%d: %v, want %v", c.op, c.sent, c.received, got, c.want)
	}
}

// nccl-tests, doc/PERFORMANCE.md: for 4 ranks.
func TestBusBandwidthFactors(t *testing.T) {
	for name, want := range map[string]float64{
		"AllReduce": 1.5, "AllGather": 0.75, "ReduceScatter": 0.75, "AlltoAll": 0.75,
		"Broadcast": 1, "Reduce": 1, "Gather": 0.75, "Scatter": 0.75,
	} {
		got := regions.CollectiveNamed(name).BusFactor(4)
		testkit.Check(t, math.Abs(got-want) <= 1e-15, "%s: %g", name, got)
	}
}

// In an archive merged with one of MPI, a process is one rank, whether its thread or its GPU is in a communicator, and
// teams of threads are not communicators.
func TestRanksOfMergedArchives(t *testing.T) {
	alone := jobtest.Operations(t, jobtest.Typical(t, nil))
	s := jobtest.Load(t, jobtest.Typical(t, nil))
	name := s.Defs.Strings[0].Self
	group := func(self otf2.GroupRef, kind otf2.GroupType, paradigm otf2.Paradigm, members ...uint64) {
		s.Defs.Groups = append(s.Defs.Groups, otf2.Group{Self: self, Name: name, Type: kind, Paradigm: paradigm,
			Members: members})
	}
	threads := []uint64{uint64(jobtest.Thread(0)), uint64(jobtest.Thread(1)), uint64(jobtest.Thread(2))}
	for _, g := range s.Defs.Groups { // NCCL's groups then have a paradigm of their own
		if g.Paradigm == otf2.ParadigmMPI {
			s.Defs.Group(g.Self).Paradigm = regions.ParadigmNCCL
		}
	}
	s.Defs.Paradigms = append(s.Defs.Paradigms,
		otf2.ParadigmDef{Paradigm: otf2.ParadigmPthread, Name: name, Class: otf2.ParadigmClassThreadCreateWait})
	for i, p := range []otf2.Paradigm{otf2.ParadigmMPI, otf2.ParadigmMeasurementSystem, otf2.ParadigmPthread} {
		ref := otf2.GroupRef(100 + 2*i)
		group(ref, otf2.GroupTypeCommLocations, p, threads...)
		group(ref+1, otf2.GroupTypeCommGroup, p, 0, 1, 2)
		s.Defs.Comms = append(s.Defs.Comms, otf2.Comm{Self: otf2.CommRef(100 + i), Name: name, Group: ref + 1,
			Parent: otf2.UndefinedComm})
	}
	got := jobtest.Operations(t, s.Write())
	testkit.Check(t, got.Summary.Ranks == 3 && got.Summary.Communicators == alone.Summary.Communicators+1,
		"%d ranks in %d communicators; without MPI %d in %d", got.Summary.Ranks, got.Summary.Communicators,
		alone.Summary.Ranks, alone.Summary.Communicators)
	testkit.Same(t, alone.Waits.Ranks, got.Waits.Ranks)
}
