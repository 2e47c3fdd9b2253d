// SPDX-License-Identifier: Apache-2.0

package phases_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/phases"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// program writes the events of a process's thread and of NCCL in it.
type program struct {
	t  testing.TB
	p  *shardtest.Process
	th *otf2.EventWriter
}

func (g *program) must(err error) {
	if err != nil {
		g.t.Helper()
		g.t.Fatal(err)
	}
}

func (g *program) phaseRegion(name string) otf2.RegionRef {
	r := g.p.Region(name, regions.GroupApplication, otf2.RegionRoleCode)
	g.p.Shard.Regions[r].Paradigm = otf2.ParadigmUser
	return r
}

func (g *program) begin(name string, t uint64) {
	g.must(g.th.Enter(otf2.Timestamp(t), nil, g.phaseRegion(name)))
}

func (g *program) end(name string, t uint64) {
	g.must(g.th.Leave(otf2.Timestamp(t), nil, g.phaseRegion(name)))
}

func (g *program) phase(name string, from, to uint64, inside func()) {
	g.begin(name, from)
	if inside != nil {
		inside()
	}
	g.end(name, to)
}

// call writes a call of NCCL's API, with the id unless that is 0.
func (g *program) call(name string, from, to, id uint64, captured bool) {
	g.callAround(name, from, to, id, captured, nil)
}

func (g *program) callAround(name string, from, to, id uint64, captured bool, inside func()) {
	var a otf2.AttributeList
	if id != 0 {
		a.Uint64(regions.AttrCount, 10)
		a.Uint64(regions.AttrEventID, id)
	}
	if captured {
		a.Uint8(regions.AttrGraph, 1)
	}
	r := g.p.Region(name, regions.GroupAPI, otf2.RegionRoleFunction)
	g.must(g.th.Enter(otf2.Timestamp(from), &a, r))
	if inside != nil {
		inside()
	}
	g.must(g.th.Leave(otf2.Timestamp(to), nil, r))
}

// plan writes a plan on a communicator rank, of operations that name the calls as their parents.
func (g *program) plan(comm int, from, to uint64, source string, unfinished bool, parents ...uint64) {
	w := g.p.Writer(g.p.Shard.Comms[comm].Location)
	t0, t1 := otf2.Timestamp(from), otf2.Timestamp(to)
	r := g.p.Region(fmt.Sprintf("Group (%d ops)", len(parents)), regions.GroupCollectives, otf2.RegionRoleCollOther)
	var a otf2.AttributeList
	a.String(regions.AttrTimingSource, g.p.String(source))
	if len(parents) == 1 {
		a.Uint64(regions.AttrParentID, parents[0])
	}
	if unfinished {
		a.Uint8(regions.AttrUnfinished, 1)
	}
	g.must(w.Enter(t0, &a, r))
	if len(parents) > 1 {
		for i, id := range parents {
			a.Reset()
			a.Uint64(regions.AttrParentID, id)
			g.must(w.NonBlockingCollectiveRequest(t0, &a, from+uint64(i)))
		}
	}
	kernel := g.p.Region("kernel phase", regions.GroupKernel, otf2.RegionRoleFunction)
	g.must(w.Enter(t0, nil, kernel))
	g.must(w.Leave(t1, nil, kernel))
	for i := range parents {
		if len(parents) > 1 {
			g.must(w.NonBlockingCollectiveComplete(
				t1, nil, otf2.CollectiveOpAllreduce, otf2.CommRef(comm), otf2.CollectiveRootNone, 80, 80,
				from+uint64(i)))
		}
	}
	g.must(w.Leave(t1, nil, r))
}

// phaseJob unifies a job of two processes on one communicator and opens its archive.
func phaseJob(t testing.TB, run func(rank int, g *program)) *otf2.Archive {
	t.Helper()
	return jobtest.Open(t, jobtest.Make(t, 2, 1, func(r int, p *shardtest.Process) {
		p.World()
		run(r, &program{t, p, p.Writer(0)})
		p.Destroy(0, t0+1_000_000*us)
	}))
}

func phasesOf(t testing.TB, a *otf2.Archive) []phases.Row {
	t.Helper()
	r, err := operations.Observe(a, new(operations.Observer))
	testkit.Require(t, err == nil && len(r.Problems) == 0, "%v %v", r, err)
	return r.Phases
}

// training is a program of three steps, 1000 µs apart. Each has forward (100 µs) and backward (300 µs; on rank 1 350
// µs) with an AllReduce of 20 µs on the host and 60 µs on the GPU, which ends after the step, and a group of two
// operations with one plan of 40 µs. Of the last step's plan only the enqueueing is known.
func training(rank int, g *program) {
	g.call("ncclAllReduce", t0+10*us, t0+20*us, 1, false) // in no phase
	g.plan(0, t0+15*us, t0+25*us, "gpu", false, 1)
	for i := range uint64(3) {
		at, slow, id := t0+(100+1000*i)*us, uint64(rank)*50*us, 10*(i+1)
		name := fmt.Sprint("step ", i+1)
		g.phase(name, at, at+500*us+slow, func() {
			g.phase("forward", at, at+100*us, nil)
			g.phase("checkpoint", at+100*us, at+100*us, nil) // a point
			g.phase("backward", at+110*us, at+410*us+slow, func() {
				g.call("ncclAllReduce", at+120*us, at+140*us, id, false)
				g.callAround("ncclGroup", at+150*us, at+180*us, 0, false, func() {
					g.call("ncclAllReduce", at+155*us, at+160*us, id+1, false)
					g.call("ncclAllGather", at+160*us, at+170*us, id+2, false)
				})
			})
		})
		source := "gpu"
		if i == 2 {
			source = "enqueue"
		}
		g.plan(0, at+560*us, at+620*us, "gpu", false, id)
		g.plan(0, at+620*us, at+660*us, source, false, id+1, id+2)
	}
}

// On the GPU a rank has 3 × 60 µs, and 40 µs for each of two plans although they have two operations; NCCL's calls take
// 3 × (20 + 30) µs.
func TestPhasesInTheReport(t *testing.T) {
	a := phaseJob(t, func(rank int, g *program) {
		training(rank, g)
		g.begin("evaluate\x1b[2J", t0+5000*us) // never ends
		counts := &g.p.Shard.Counts
		counts.Network = map[string]uint64{"PUTS": 2, "PUT_BYTES": 1500, "RECEIVED_BYTES": 300, "SOCKET_EVENTS": 1,
			"SOCKET_BYTES": 100}
		counts.Paused = map[string]uint64{"Coll": 2, "ProxyOp": 10}
		g.p.Shard.Comms[0].Gaps = []description.Gap{
			{From: 10, To: 20, FromTime: t0 + 5001*us, ToTime: t0 + 5002*us}, {From: 30, FromTime: t0 + 5003*us},
		}
	})
	r := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	rows := phasesOf(t, a)
	testkit.Same(t, rows, r.Phases)
	last := uint64(19)
	gaps := []selfreport.Gap{{Communicator: "world", First: 10, Last: &last}, {Communicator: "world", First: 30}}
	diff := cmp.Diff(gaps, r.Summary.Gaps)
	testkit.Check(t, diff == "" && r.Summary.GapCount == 2, "%v %v", r.Summary.GapCount, diff)
	r.Summary.Archive = "traces.otf2"
	var b bytes.Buffer
	testkit.Must(t, report.WriteStyled(r, &b, report.Style{}))
	golden.Text(t, "testdata/phases.txt", b.String())
	golden.Text(t, "testdata/phases.json", string(testkit.Value(json.MarshalIndent(r, "", "  "))(t))+"\n")
}

func TestNamesOfPhases(t *testing.T) {
	rows := phasesOf(t, phaseJob(t, func(rank int, g *program) {
		at := uint64(t0)
		for _, name := range []string{"warm-up 7", "17", "18", "epoch 1", "epoch", "epoch 02", "layer3.1",
			"warm-up 7"} {
			g.phase(name, at, at+us, func() { g.phase("part 1", at, at+us/2, nil) })
			at += 10 * us
		}
	}))
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprint(r.Phase, ": ", r.Count))
	}
	want := []string{
		"warm-up 7: 4", "warm-up 7 / part 1: 4", "*: 4", "* / part 1: 4", "epoch *: 4", "epoch * / part 1: 4",
		"epoch: 2", "epoch / part 1: 2", "layer3.1: 2", "layer3.1 / part 1: 2",
	}
	testkit.Same(t, want, got)
	testkit.Check(t, !rows[0].CallsKnown, "without any call of NCCL nothing is known of calls")
}

// A phase around part of a group of calls, captured calls, calls whose operations were cut off or never
// came, ids of another process, and phases that end with the data.
func TestPhasesAndCallsThatDoNotFit(t *testing.T) {
	rows := phasesOf(t, phaseJob(t, func(rank int, g *program) {
		g.phase("step", t0+100*us, t0+500*us, func() {
			g.callAround("ncclGroup", t0+110*us, t0+210*us, 0, false, func() {
				g.phase("inner", t0+120*us, t0+160*us, func() { g.call("ncclSend", t0+130*us, t0+140*us, 1, false) })
				g.call("ncclRecv", t0+170*us, t0+180*us, 2, false)
			})
			g.call("ncclAllReduce", t0+300*us, t0+310*us, 3, true)
			if rank == 0 {
				g.call("ncclAllReduce", t0+320*us, t0+330*us, 4, false)
				g.call("ncclAllReduce", t0+340*us, t0+350*us, 5, false) // its operation never comes
			}
		})
		g.plan(0, t0+200*us, t0+230*us, "gpu", false, 1, 2)
		g.plan(0, t0+320*us, t0+330*us, "gpu", false, 3) // a replay
		if rank == 0 {
			g.plan(0, t0+340*us, t0+350*us, "gpu", true, 4)
		} else {
			g.plan(0, t0+340*us, t0+350*us, "gpu", false, 4) // only the other process made such a call
		}
		r := g.phaseRegion("cut")
		g.must(g.th.Enter(t0+600*us, nil, r))
		var a otf2.AttributeList
		a.Uint8(regions.AttrUnfinished, 1)
		g.must(g.th.Leave(t0+700*us, &a, r))
		g.begin("open", t0+800*us)
	}))
	type row struct {
		Phase                     string
		Count, Points, Unfinished uint64
		NCCL                      uint64
		phases.Operations
		GPU float64
	}
	var got []row
	for _, r := range rows {
		got = append(got, row{r.Phase, r.Count, r.Points, r.Unfinished, r.NCCL, r.Operations, r.GPU})
	}
	want := []row{
		{"step", 2, 0, 0, 2*(100+10)*us + 20*us, phases.Operations{Calls: 8, Captured: 2, Timed: 4, Untimed: 1},
			30 * us},
		{"step / inner", 2, 0, 0, 20 * us, phases.Operations{Calls: 2, Timed: 2}, 30 * us},
		{"cut", 0, 0, 2, 0, phases.Operations{}, 0},
		{"open", 0, 0, 2, 0, phases.Operations{}, 0},
	}
	testkit.Same(t, want, got)
}

func TestTooManyPhasesShareARow(t *testing.T) {
	const mostPhases = 10_000 // rows
	names := func(i int) string { return fmt.Sprintf("%d.", i) }
	rows := phasesOf(t, phaseJob(t, func(rank int, g *program) {
		at := uint64(t0)
		for i := range mostPhases/2 + 100 {
			i += rank * (mostPhases/2 + 100)
			g.phase(names(i), at, at+us, func() { g.phase("x", at, at+us/2, nil) })
			at += 10 * us
		}
		g.phase(names(0), at, at+us, nil) // known
	}))
	testkit.Require(t, len(rows) == mostPhases+1, "%v rows", len(rows))
	last := rows[mostPhases]
	var all uint64
	for _, r := range rows {
		if r.Depth == 0 {
			all += r.Count
		}
	}
	// Nothing is counted twice in the shared row, although phases inside those phases belong to it, too.
	want := uint64(mostPhases + 200 + 2)
	testkit.Check(t, last.Phase == "(further phases)" && all == want, "%q: %d of %d phases", last.Phase, all, want)
}

// Times in the test jobs.
const (
	t0 = jobtest.T0
	us = jobtest.Microsecond
)
