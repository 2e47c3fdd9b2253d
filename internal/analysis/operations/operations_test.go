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

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

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
	failed := func(rank int) *provenance.Cupti {
		if rank == 0 {
			return &provenance.Cupti{State: "ended", Version: 22}
		}
		return &provenance.Cupti{State: "failed", Error: 15, Why: "libcupti.so.12: no driver"}
	}
	busy := func(int) *provenance.Cupti { return &provenance.Cupti{State: "busy", Error: 39} }
	for _, tc := range []struct {
		counts map[string]uint64 // of each rank
		cupti  func(rank int) *provenance.Cupti
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

// By hand: AllReduces begin at 110 and 210 µs, each rank 10 µs after the one before, and end at 150 and 250 µs on all:
// intervals 40, 30, 20 µs, mean 30 µs, 20 µs from the last arrival. The first one is the communicator's start-up. 1000
// float32 are 4000 bytes: 4000 B / 30 µs = 0.1333 GB/s, busbw × 2·2/3. Enqueue times are not execution times, so
// Broadcast has no bandwidth.
//
// Three launches have GPU times on all ranks: two AllReduces and the group. In each rank 2 is last, rank 0 waits 20 µs
// for it, rank 1 10 µs.
func TestReportOfAJob(t *testing.T) {
	r := jobtest.Operations(t, jobtest.Typical(t, nil))
	r.Summary.Archive = "traces.otf2"
	var b bytes.Buffer
	testkit.Must(t, report.WriteStyled(r, &b, report.Style{}))
	golden.Text(t, "testdata/report.txt", b.String())
	golden.Text(t, "testdata/report.json", string(testkit.Value(json.MarshalIndent(r, "", "  "))(t))+"\n")
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
