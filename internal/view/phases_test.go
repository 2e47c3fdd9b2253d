// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// thread is one of a rank, on which its application marks phases and calls NCCL.
type thread struct {
	t testing.TB
	w *otf2.EventWriter
	m *member
}

// thread is the rank's first thread, or one more.
func (r *member) thread(t testing.TB, n int) *thread {
	t.Helper()
	if n == 0 {
		return &thread{t, r.p.Writer(0), r}
	}
	return &thread{t, r.p.Location(description.KindThread, otf2.LocationTypeCPUThread, fmt.Sprint("Thread ", n), -1), r}
}

func (th *thread) check(err error) {
	if err != nil {
		th.t.Helper()
		th.t.Fatal(err)
	}
}

func (th *thread) phase(name string) otf2.RegionRef {
	region := th.m.p.Region(name, regions.GroupApplication, otf2.RegionRoleCode)
	th.m.p.Shard.Regions[region].Paradigm = otf2.ParadigmUser
	return region
}

// enter and leave mark a phase; times are from t0.
func (th *thread) enter(at uint64, name string) {
	th.t.Helper()
	th.check(th.w.Enter(otf2.Timestamp(t0+at), nil, th.phase(name)))
}

func (th *thread) leave(at uint64, name string) {
	th.t.Helper()
	th.check(th.w.Leave(otf2.Timestamp(t0+at), nil, th.phase(name)))
}

// call calls an AllReduce at a time, which the GPU runs from begin to end.
func (th *thread) call(at, begin, end uint64, graph bool) {
	th.t.Helper()
	event := th.asks(at, "ncclAllReduce", graph)
	th.m.plan(th.t, begin, end, regions.TimingGPU, "", item{fn: "AllReduce", sent: 8, received: 8, parent: event})
}

// asks calls a function of NCCL, and gives the call's event.
func (th *thread) asks(at uint64, function string, graph bool) uint64 {
	th.t.Helper()
	th.m.parent++
	var a otf2.AttributeList
	a.Uint64(regions.AttrCount, 1)
	a.Uint64(regions.AttrEventID, th.m.parent)
	if graph {
		a.Uint8(regions.AttrGraph, 1)
	}
	region := th.m.p.Region(function, regions.GroupAPI, otf2.RegionRoleFunction)
	th.check(th.w.Enter(otf2.Timestamp(t0+at), &a, region))
	th.check(th.w.Leave(otf2.Timestamp(t0+at), nil, region))
	return th.m.parent
}

// pathsOf lists what a rank of the view does: "enter" and "leave" of phases with their times, from t0, and of each
// operation the regions around it; all without calls, if they are not wanted.
func pathsOf(t testing.TB, anchor string, rank int, calls bool) (list []string) {
	t.Helper()
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	defer a.Close()
	var path []string
	for ev, err := range a.EventsOf(otf2.LocationRef(rank)) {
		testkit.Must(t, err)
		if ev.Kind != otf2.EventEnter && ev.Kind != otf2.EventLeave {
			continue
		}
		d := a.Defs.Region(otf2.RegionRef(ev.Args[0]))
		name, shown := a.Defs.String(d.Name), a.Defs.String(d.SourceFile) != sourceMPI
		if !calls && strings.HasPrefix(name, callPrefix) {
			continue
		}
		if ev.Kind == otf2.EventEnter {
			path = append(path, name)
		}
		within := strings.Join(path[1:], " > ")
		if ev.Kind == otf2.EventLeave {
			path = path[:len(path)-1]
		}
		switch {
		case within == "" || name == nameInit || name == nameFinalize:
		case shown && ev.Kind == otf2.EventEnter:
			list = append(list, fmt.Sprintf("%d enter %s", ev.Time-t0, within))
		case shown:
			list = append(list, fmt.Sprintf("%d leave %s", ev.Time-t0, within))
		case ev.Kind == otf2.EventEnter:
			list = append(list, fmt.Sprintf("%d %s", ev.Time-t0, within))
		}
	}
	return list
}

// pathsOfRanks lists what each rank of a view does.
func pathsOfRanks(t testing.TB, view *Result, calls bool) (text string) {
	t.Helper()
	for rank := range view.Ranks {
		text += fmt.Sprintf("rank %d\n  %s\n", rank, strings.Join(pathsOf(t, view.Archive, rank, calls), "\n  "))
	}
	return text
}

// Phases are around the operations that were called in them, whenever the GPU ran these.
func TestPhasesAreCallPaths(t *testing.T) {
	var said strings.Builder
	for _, c := range []struct {
		name string
		draw func(th *thread) // of each of two ranks

	}{
		{"one in another", func(th *thread) {
			th.enter(10, "step 0")
			th.enter(20, "forward")
			th.call(30, 40, 50, false)
			th.leave(60, "forward")
			th.enter(70, "backward")
			th.call(80, 90, 100, false)
			th.leave(110, "backward")
			th.call(120, 130, 140, false)
			th.leave(150, "step 0")
			th.call(160, 170, 180, false)
		}},
		{"of one name, one after the other", func(th *thread) {
			th.enter(10, "step")
			th.call(20, 30, 40, false)
			th.leave(50, "step")
			th.enter(60, "step")
			th.call(70, 80, 90, false)
			th.leave(100, "step")
		}},
		{"of one name, one in the other", func(th *thread) {
			th.enter(10, "solve")
			th.enter(20, "solve")
			th.call(30, 40, 50, false)
			th.leave(60, "solve")
			th.leave(70, "solve")
		}},
		{"the GPU runs operations long after their phases", func(th *thread) {
			th.enter(10, "a")
			th.call(12, 100, 200, false)
			th.leave(20, "a")
			th.enter(30, "b")
			th.call(32, 200, 300, false)
			th.leave(40, "b")
		}},
		{"without operations", func(th *thread) {
			th.enter(10, "load")
			th.leave(20, "load")
			th.enter(30, "step")
			th.enter(32, "augment")
			th.leave(34, "augment")
			th.call(40, 50, 60, false)
			th.leave(70, "step")
		}},
		{"that never end", func(th *thread) {
			th.enter(10, "training")
			th.enter(20, "step")
			th.call(30, 40, 50, false)
		}},
		{"that end with the one around", func(th *thread) {
			th.enter(10, "step")
			th.enter(20, "forward")
			th.call(30, 40, 50, false)
			th.leave(60, "step")
			th.call(70, 80, 90, false)
		}},
		{"captured into a graph", func(th *thread) {
			th.enter(10, "capture")
			th.call(20, 100, 110, true)
			th.leave(30, "capture")
		}},
	} {
		m := makeJob(t, 2)
		for _, r := range m.comm("", 0, 1) {
			c.draw(r.thread(t, 0))
		}
		fmt.Fprintf(&said, "%s:\n%s\n", c.name, pathsOfRanks(t, viewOf(t, m.unify(), nil), false))
	}
	golden.Text(t, "testdata/phases.txt", said.String())
}

// Calls of NCCL's API are below the phases, from when the host called until the GPU ended: so time before the host
// called is the phase's, time from then on the call's. Groups are around the calls in them, and messages of one launch
// are in what they have in common.
func TestCallsAreCallPaths(t *testing.T) {
	m := makeJob(t, 2)
	for rank, r := range m.comm("", 0, 1) {
		th := r.thread(t, 0)
		group := r.p.Region("ncclGroup", regions.GroupAPI, otf2.RegionRoleFunction)
		th.enter(10, "step")
		th.call(20, 50, 60, false)
		th.call(55, 70, 80, false) // while the GPU is at the first
		th.check(th.w.Enter(t0+90, nil, group))
		th.call(91, 100, 110, false)
		first := th.asks(92, "ncclSend", false)
		second := th.asks(93, "ncclRecv", false)
		th.check(th.w.Leave(t0+95, nil, group))
		r.plan(t, 120, 130, regions.TimingGPU, "", item{fn: "Send", peer: 1 - rank, sent: 8, parent: first},
			item{fn: "Recv", peer: 1 - rank, sent: 8, parent: second})
		th.leave(140, "step")
	}
	golden.Text(t, "testdata/calls.txt", pathsOfRanks(t, viewOf(t, m.unify(), nil), true))
}

// Threads of a rank have phases of their own: each operation is in that of the thread that called it. A rank leaves
// what another thread is still in, and comes back to it.
func TestPhasesOfSeveralThreads(t *testing.T) {
	m := makeJob(t, 2)
	for _, r := range m.comm("", 0, 1) {
		main, loader := r.thread(t, 0), r.thread(t, 1)
		main.enter(10, "step 0")
		loader.enter(15, "sync")
		main.call(20, 30, 40, false)
		loader.call(45, 50, 60, false)
		main.call(65, 70, 80, false)
		main.leave(90, "step 0")
		loader.leave(95, "sync")
	}
	golden.Text(t, "testdata/threads.txt", pathsOfRanks(t, viewOf(t, m.unify(), nil), false))
}

// Ranks in different phases meet in an operation all the same.
func TestPhasesThatDifferBetweenRanks(t *testing.T) {
	m := makeJob(t, 2)
	for rank, r := range m.comm("", 0, 1) {
		th := r.thread(t, 0)
		if rank == 0 {
			th.enter(10, "stage 0")
		}
		th.call(20, uint64(30+10*rank), 50, false)
		if rank == 0 {
			th.leave(60, "stage 0")
		}
	}
	res := viewOf(t, m.unify(), nil)
	testkit.Check(t, res.Collectives == 1 && res.Waits == (Waits{Recorded: 10, Shown: 10}),
		"%d collectives, waits %+v", res.Collectives, res.Waits)
	for rank, want := range [][]string{{"10 enter stage 0", "30 stage 0 > ncclAllReduce", "60 leave stage 0"},
		{"40 ncclAllReduce"}} {
		testkit.Equal(t, gocmp.Diff(want, pathsOf(t, res.Archive, rank, false)), "", "rank %d", rank)
	}
}

// Up to maxNames phases that differ in a number have regions of their own, more share one. Others keep theirs.
func TestManyPhasesShareAName(t *testing.T) {
	for _, c := range []struct {
		steps int
		names func(step int) string
	}{
		{maxNames, func(step int) string { return fmt.Sprint("step ", step) }},
		{maxNames + 1, func(int) string { return "step *" }},
	} {
		t.Run(fmt.Sprint(c.steps), func(t *testing.T) {
			m := makeJob(t, 2)
			for _, r := range m.comm("", 0, 1) {
				th, at := r.thread(t, 0), uint64(0)
				th.enter(at, "epoch 1")
				for step := range c.steps {
					th.enter(at+1, fmt.Sprint("step ", step))
					th.call(at+2, at+3, at+4, false)
					th.leave(at+5, fmt.Sprint("step ", step))
					at += 10
				}
				th.leave(at, "epoch 1")
				th.enter(at+1, fmt.Sprint("step ", c.steps)) // in which nothing is called: it does not count
				th.leave(at+2, fmt.Sprint("step ", c.steps))
			}
			res := viewOf(t, m.unify(), nil)
			var want []string
			for step := range c.steps {
				want = append(want, fmt.Sprintf("%d epoch 1 > %s > ncclAllReduce", 10*step+3, c.names(step)))
			}
			got := slices.DeleteFunc(pathsOf(t, res.Archive, 1, false),
				func(s string) bool { return strings.Contains(s, "enter") || strings.Contains(s, "leave") })
			testkit.Same(t, want, got)
			a := testkit.Value(otf2.Open(res.Archive, nil))(t)
			defer a.Close()
			defined := 0
			for _, r := range a.Defs.Regions {
				if strings.HasPrefix(a.Defs.String(r.Name), "step ") {
					defined++
				}
			}
			names := slices.Compact(slices.Collect(func(yield func(string) bool) {
				for step := range c.steps {
					if !yield(c.names(step)) {
						return
					}
				}
			}))
			testkit.Check(t, defined == len(names), "%d regions of steps, want %d", defined, len(names))
		})
	}
}

// Whatever phases the threads of each rank are in, each operation is in those that were open on the thread that called
// it, in their order, and the waiting is that of the operations' times.
func TestAnyPhasesAreCallPaths(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := makeJob(t, 2)
		var want [2][]string
		var begins, ends [2][]uint64
		threads := rapid.IntRange(1, 3).Draw(rt, "threads")
		operations := rapid.IntRange(1, 8).Draw(rt, "operations")
		for rank, r := range m.comm("", 0, 1) {
			var all []*thread
			for n := range threads {
				all = append(all, r.thread(t, n))
			}
			open, now, gpu := make([][]string, threads), uint64(0), uint64(0)
			tick := func(what string) uint64 { now += rapid.Uint64Range(0, 9).Draw(rt, what); return now }
			mark := func() {
				for range rapid.IntRange(0, 4).Draw(rt, "marks") {
					n := rapid.IntRange(0, threads-1).Draw(rt, "thread")
					if k := len(open[n]); k > 0 && rapid.Bool().Draw(rt, "leave") {
						all[n].leave(tick("pause"), open[n][k-1])
						open[n] = open[n][:k-1]
					} else {
						open[n] = append(open[n], rapid.SampledFrom([]string{"a", "b", "step 1", "step 2"}).Draw(
							rt, "name"))
						all[n].enter(tick("pause"), open[n][k])
					}
				}
			}
			for range operations {
				mark()
				n := rapid.IntRange(0, threads-1).Draw(rt, "caller")
				begin := max(gpu, tick("pause")+rapid.Uint64Range(0, 40).Draw(rt, "delay"))
				gpu = begin + rapid.Uint64Range(0, 20).Draw(rt, "duration")
				all[n].call(now, begin, gpu, false)
				begins[rank], ends[rank] = append(begins[rank], begin), append(ends[rank], gpu)
				want[rank] = append(want[rank], fmt.Sprintf(
					"%d %s", begin, strings.Join(append(
						slices.Clone(open[n]), "call of ncclAllReduce", "ncclAllReduce"), " > ")))
			}
			mark()
		}
		res := soundView(rt, m.unify(), nil, func(anchor string) {
			for rank := range want {
				got := slices.DeleteFunc(pathsOf(t, anchor, rank, true),
					func(s string) bool { return strings.Contains(s, " enter ") || strings.Contains(s, " leave ") })
				testkit.Equal(rt, gocmp.Diff(want[rank], got), "", "rank %d", rank)
			}
		})
		waits := uint64(0)
		for i := range operations {
			for rank := range want {
				waits += min(max(begins[0][i], begins[1][i]), ends[rank][i]) - begins[rank][i]
			}
		}
		if res.Collectives != uint64(operations) || res.Waits != (Waits{Recorded: waits, Shown: waits}) ||
			res.Lost() != 0 {
			rt.Errorf("%d collectives of %d, waits %+v, want %d, %d lost", res.Collectives, operations, res.Waits,
				waits, res.Lost())
		}
	})
}
