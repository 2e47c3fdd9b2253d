// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

func TestPauses(t *testing.T) {
	var said strings.Builder
	type gaps = []description.Gap
	at := func(from, to uint64) description.Gap {
		g := description.Gap{From: from, To: to, FromTime: t0 + 1_000_000 + from, ToTime: t0 + 1_000_000 + to}
		if to == 0 {
			g.ToTime = 0
		}
		return g
	}
	lost := func(from, to uint64) description.Gap {
		g := at(from, to)
		g.Lost = true
		return g
	}
	for _, c := range []struct {
		name    string
		of      [3]gaps // by rank; each records 4 AllReduces, 2 Broadcasts behind them and a message 0>1
		crashed int     // rank whose process died, −1: none

	}{
		{name: "none", crashed: -1},
		{name: "alike", of: [3]gaps{{at(2, 5), at(7, 0)}, {at(2, 5), at(7, 0)}, {at(2, 5), at(7, 0)}}, crashed: -1},
		{name: "one that never came to the end of it", of: [3]gaps{{at(6, 9)}, {at(6, 0)}, {at(6, 9)}}, crashed: -1},
		{name: "one that never came to its begin", of: [3]gaps{{at(6, 0)}, {at(6, 0)}, {}}, crashed: -1},
		{name: "one that died before", of: [3]gaps{{at(3, 5)}, {}, {at(3, 5)}}, crashed: 1},
		{name: "other operations", of: [3]gaps{{at(5, 9)}, {at(4, 8)}, {at(5, 9)}}, crashed: -1},
		{name: "lost alike", of: [3]gaps{{lost(2, 5)}, {lost(2, 5)}, {lost(2, 5)}}, crashed: -1},
		{name: "lost by one", of: [3]gaps{{}, {}, {lost(5, 8)}}, crashed: -1},
		{name: "the second time", of: [3]gaps{{at(1, 3), at(7, 9)}, {at(1, 3), at(7, 9)}, {at(1, 3), at(7, 8)}},
			crashed: -1},
		{name: "one that went on", of: [3]gaps{{at(5, 9)}, {}, {at(5, 9)}}, crashed: -1},
	} {
		dir := t.TempDir()
		procs := job(t, dir, 3, 4, func(rank int, p *shardtest.Process) {
			for i := range uint64(2) {
				p.Collective(0, shardtest.Op{Function: "Broadcast", Begin: t0 + 5_000_000 + 1000*i,
					End: t0 + 5_000_500 + 1000*i, Received: 4, Count: 1})
			}
			switch rank {
			case 0:
				p.Send(0, 1, t0+7_000_000, t0+7_000_100, 8)
			case 1:
				p.Recv(0, 0, t0+7_000_000, t0+7_000_100, 8)
			}
			p.Shard.Comms[0].Gaps = c.of[rank]
		})
		for r, p := range procs {
			if r == c.crashed {
				p.Flush()
				p.Crash(-1, nil)
			} else {
				p.Finish()
			}
		}
		run := unify(t, dir, muchLater).Runs[0]
		accept(t, run.Archive)
		a := open(t, run.Archive)
		fmt.Fprintf(&said, "%s: complete: %t\n", c.name, run.Complete)
		for _, p := range a.Anchor.Properties {
			if strings.Contains(p.Name, "::GAPS") || strings.Contains(p.Name, "::SEQUENCES_DIFFER") {
				fmt.Fprintf(&said, "  %s: %s\n", p.Name, p.Value)
			}
		}
		_, markers, err := a.Markers()
		testkit.Must(t, err)
		for _, m := range markers {
			fmt.Fprintf(&said, "  marked: %s\n", m.Text)
		}
	}
	golden.Text(t, "testdata/pauses.txt", said.String())
}

func TestPausesAreDrawnWhereTheyAre(t *testing.T) {
	dir := t.TempDir()
	finish(job(t, dir, 2, 4, func(rank int, p *shardtest.Process) {
		skew := uint64(rank) * 1000
		p.Shard.Comms[0].Gaps = []description.Gap{{From: 1, To: 9, FromTime: t0 + 600_000 + skew,
			ToTime: t0 + 900_000 + skew}}
		p.Shard.Counts.Paused = map[string]uint64{"Coll": 8, "KernelCh": 32}
	}))
	run := unify(t, dir, nil).Runs[0]
	a := open(t, run.Archive)
	_, markers, err := a.Markers()
	testkit.Check(t, err == nil && len(markers) == 1 && markers[0].Time == t0+600_000 &&
		markers[0].Duration == 301_000 && markers[0].Text == "world: operations 1-8 were not recorded", "%+v, %v",
		markers, err)
	testkit.Equal(t, propertyText(a, "NCCL_OTF2::PAUSED::KERNEL_CH"), "64", "paused")
	accept(t, run.Archive)
}

func TestEqualIDs(t *testing.T) {
	const ms = 1_000_000
	type rank struct {
		gpu, rank int
		at        uint64 // ms
	}
	for _, c := range []struct {
		name  string
		procs [][]rank // communicators of one id and two ranks, of each process
		skew  []uint64 // ms, of each process's clock
		want  [][2]int // processes of each communicator, by rank
	}{
		{"one", [][]rank{{{0, 0, 1}}, {{0, 1, 2}}}, []uint64{0, 0}, [][2]int{{0, 1}}},
		{"the same shrink twice", [][]rank{{{0, 0, 1}, {0, 0, 5}}, {{0, 1, 2}, {0, 1, 6}}}, []uint64{0, 0},
			[][2]int{{0, 1}, {0, 1}}},
		{"on machines whose clocks differ by more", [][]rank{{{0, 0, 1}, {0, 0, 5}}, {{0, 1, 2}, {0, 1, 6}}},
			[]uint64{0, 100}, [][2]int{{0, 1}, {0, 1}}},
		{"with the ranks exchanged", [][]rank{{{0, 0, 1}, {0, 1, 5}}, {{0, 1, 2}, {0, 0, 6}}}, []uint64{0, 100},
			[][2]int{{0, 1}, {1, 0}}},
		{"of different members", [][]rank{{{0, 0, 1}}, {{0, 1, 1}, {0, 0, 5}}, {{0, 1, 6}}}, []uint64{0, 0, 0},
			[][2]int{{0, 1}, {1, 2}}},
		{"both ranks in one process, beside another such process",
			[][]rank{{{0, 0, 1}, {1, 1, 1}}, {{0, 0, 3}, {1, 1, 3}}}, []uint64{0, 0}, [][2]int{{0, 0}, {1, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, ranks := range c.procs {
				p := shardtest.New(t, dir, fmt.Sprint(i)).On(fmt.Sprint("node", i), i).Launched(
					"slurm", i, len(c.procs))
				p.GPU(0, "", "")
				p.GPU(1, "", "")
				for _, r := range ranks {
					p.Comm(description.Comm{ID: 5, NRanks: 2, Rank: r.rank, GPU: r.gpu,
						InitTime: t0 + (r.at+c.skew[i])*ms})
				}
				p.Finish()
			}
			parts, left, err := jobs.Read(dir, 2, time.Now())
			testkit.Require(t, err == nil && len(left.Problems) == 0, "%v %v", err, left.Problems)
			var got [][2]int
			for _, r := range runsOf(t, parts) {
				for _, in := range r.Communicators {
					of := [2]int{-1, -1}
					for m := range in.Present() {
						fmt.Sscan(m.Process.Shard.UUID, &of[m.Comm().Rank])
					}
					got = append(got, of)
				}
			}
			testkit.Same(t, c.want, got)
		})
	}
}

func TestEvidenceOfTheRecording(t *testing.T) {
	dir := t.TempDir()
	finish(job(t, dir, 4, 1, func(rank int, p *shardtest.Process) {
		if rank < 2 {
			p.Shard.Cupti = &provenance.Cupti{State: "ended", Version: 130000}
		}
		if rank == 2 {
			p.Shard.Cupti = &provenance.Cupti{State: "busy", Error: 39, Why: "another profiler uses CUPTI"}
			p.Shard.LibraryVersion = 22803
			p.Shard.Memory = provenance.Memory{Kind: "shm", Path: "/dev/shm/x"}
		}
		if rank == 3 {
			p.Shard.Library, p.Shard.LibraryVersion, p.Shard.Clock.Source = "RCCL", 0, "monotonic"
			p.Shard.Counts.NullHandles = 5
			p.Shard.Counts.Lost = map[string]map[string]uint64{"disk": {"Coll": 2}, "memory": {"ProxyStep": 7}}
		}
		p.Shard.Costs = []provenance.Cost{
			{Callback: "start", Type: "ProxyStep", Samples: uint64(10 * (rank + 1)), MeanNs: float64(20 + rank),
				MostNs: float64(100 * rank)},
			{Callback: "stop", Type: "Coll", Samples: 1, MeanNs: 1.25, MostNs: 2},
			{Callback: "state", Type: "ProxyOp"},
		}
	}))
	run := unify(t, dir, nil).Runs[0]
	var text strings.Builder
	for _, p := range open(t, run.Archive).Anchor.Properties {
		fmt.Fprintf(&text, "%s = %s\n", p.Name, p.Value)
	}
	golden.Text(t, "testdata/evidence.txt", text.String())
	accept(t, run.Archive)
	for code, want := range map[int]string{0: "", -3: "", 2804: "2.8.4", 20903: "2.9.3", 22907: "2.29.7",
		30001: "3.0.1"} {
		testkit.Equal(t, libraryVersion(code), want, "%d", code)
	}
}
