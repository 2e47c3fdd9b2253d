// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

var clocks = []replay.Clock{replay.ClockRecorded, replay.ClockLive}

// Small jobs in which something is as it should not be, or seldom is, and all that the plugin hears of them, whatever
// the clock.
func TestWhatIsHeardOfHazards(t *testing.T) {
	decline, rccl := []string{"RECORDER_DECLINE=1"}, []string{"RECORDER_RCCL=1"}
	for _, test := range []struct {
		name string
		make func() *Scenario
		opt  replay.Options
	}{
		{"raw-values", rawValues, replay.Options{}},
		{"misused-handles", misusedHandles, replay.Options{}},
		{"misused-handles-v5", misusedHandles, replay.Options{API: 5}}, // which gets only what its version knows
		{"clique", oneGroupApi, replay.Options{}},
		{"graph", replayedGraph, replay.Options{}}, // replays have the parents of the capture
		{"loaded-anew", loadedAnew, replay.Options{}},
		{"rccl-v6", diagnosed, replay.Options{Env: rccl}},
		// NCCL itself has no ProxyDiag, and a plugin that does not ask for the bit is not told of it.
		{"rccl-v6-nccl", diagnosed, replay.Options{Library: "nccl"}},
		{"rccl-v6-without-the-bit", diagnosed, replay.Options{Env: append(rccl, "RECORDER_MASK=32767")}},
		// Group is declined: up to 2.27 there is no Coll then.
		{"declined-2.27", func() *Scenario { return oneCall("2.27.7") }, replay.Options{Env: decline}},
		{"declined-2.28", func() *Scenario { return oneCall("2.28.9") }, replay.Options{Env: decline}},
	} {
		for _, clock := range clocks {
			test.opt.Clock = clock
			golden.Text(t, filepath.Join("testdata/heard", test.name+".txt"),
				play(t, test.make(), test.opt).transcript(0))
		}
	}
}

func rawValues() *Scenario {
	s := New("raw", "2.29.7")
	u := s.Process().Thread("app")
	c := u.Init(Comm{ID: 1, NRanks: 1})
	for _, v := range []Raw{1, 0xdead, math.MaxUint64, 1 << 63, 0x7fc900000003} {
		u.Stop(v)
		u.State(v, descriptor.StateProxyOpInProgress, nil)
		u.State(v, descriptor.StateKernelChStop, PTimer(7))
		u.Stop(u.Start(v, descriptor.ProxyOp{}, Under(v), Before(v)))
		u.finalize(v)
	}
	u.Stop(Raw(0))
	u.State(Raw(0), descriptor.StateNetPluginUpdate, new(replay.Args))
	u.finalize(c)
	return s
}

func misusedHandles() *Scenario {
	s := New("misused", "2.30.7")
	r := s.Job(1, Comm{ID: 1})[0]
	u := r.App
	d := r.Call(Op{Func: "AllReduce", Steps: 1})
	s.Advance(1000)
	group, step := d.GroupApi, d.Steps[0]
	u.Stop(group)                                          // again
	u.State(group, descriptor.StateGroupEndApiStart, nil)  // after its stop
	u.State(step, descriptor.StateKernelChStop, PTimer(1)) // another type's
	u.State(step, 77, new(replay.Args))                    // nobody's
	u.State(step, -1, nil)
	// 1 << 15: KernelPhase in version 7, RCCL's in its version 6
	for _, typ := range []uint64{1 << 20, 0, 0x8003, 1 << 15} {
		u.Stop(u.Start(r.Context, descriptor.Other{}, WithType(typ), Under(step)))
	}
	r.Leave()
	u.Stop(u.Start(r.Context, descriptor.ProxyCtrl{})) // after finalize
	// A second communicator keeps the plugin loaded.
	s.At(0.5)
	u.Init(Comm{ID: 2, NRanks: 1})
	return s
}

func oneGroupApi() *Scenario {
	s := New("clique", "2.29.7")
	u := s.Process().Thread("app")
	var ranks []*Rank
	for rank := range 3 {
		ranks = append(ranks, u.Join(Comm{ID: 7, NRanks: 3, Rank: rank}))
	}
	clique(ranks, Same(Op{Func: "AllReduce", Steps: 1}))
	Leave(ranks)
	return s
}

func replayedGraph() *Scenario {
	s := New("graph", "2.30.7")
	r := s.Job(1, Comm{ID: 1})[0]
	g := r.Capture(Op{Func: "AllReduce"})
	g.Replay()
	s.Advance(100)
	g.Replay()
	r.Leave()
	return s
}

func loadedAnew() *Scenario {
	s := New("anew", "2.29.7")
	u := s.Process().Thread("app")
	for id := range uint64(3) {
		r := u.Join(Comm{ID: id + 1, NRanks: 1})
		r.Call(Op{Func: "Send", Peer: 0})
		r.Leave()
		s.Advance(10)
	}
	return s
}

func oneCall(release string) *Scenario {
	s := New("orphans", release)
	r := s.Job(1, Comm{ID: 1})[0]
	r.Call(Op{Func: "AllReduce"})
	s.Advance(200)
	r.Leave()
	return s
}

// diagnosed has RCCL's own members of ProxyOp, and its ProxyDiag.
func diagnosed() *Scenario {
	s := New("rccl", "2.29.7")
	s.Library = "rccl"
	r := s.Job(1, Comm{ID: 1, NRanks: 1})[0]
	op := r.Progress.Start(r.Context, descriptor.ProxyOp{NSteps: 1, ChunkSize: 4096, IsSend: true, CommHash: 0xabcdef,
		OpCount: -5, TraceFuncIdx: 3, TraceProtocol: 2, TracePattern: 1, TraceTotalBytes: 4096, ProxyNbytes: 4000,
		RawProxyNsteps: 7})
	diag := r.Progress.Start(r.Context, descriptor.ProxyDiag{}, Under(op))
	args := &replay.Args{Diag: &replay.Diag{CounterKind: 9, Flags: 0x1234, Value: -2, Value2: 1 << 40}}
	r.Progress.State(diag, descriptor.StateProxyDiagUpdate, args)
	r.Progress.State(op, descriptor.StateProxyDiagUpdate, args)
	r.Progress.Stop(diag)
	r.Progress.Stop(op)
	r.Leave()
	return s
}

func TestShortThreads(t *testing.T) {
	const n = 300
	s := New("short", "2.29.7")
	p := s.Process()
	u := p.Thread("app")
	c := u.Init(Comm{ID: 1, NRanks: 1})
	for i := range n {
		g := p.ShortThread(fmt.Sprintf("g%d", i))
		e := g.Start(c, descriptor.Group{})
		g.Stop(e)
	}
	u.finalize(c)
	for _, clock := range clocks {
		h := play(t, s, replay.Options{Clock: clock})
		names := map[string]bool{}
		for _, l := range h.lines[0] {
			if l.F == "start" {
				names[l.Thread] = true
			}
		}
		testkit.Check(t, len(names) == n, "%d threads, want %d", len(names), n)
	}
}

func TestOneProcessCarriesOutAnothersSends(t *testing.T) {
	for _, clock := range clocks {
		s := New("pxn", "2.29.7")
		ranks := s.Job(2, Comm{ID: 1})
		s.All(ranks, func(rank int) []Op {
			if rank == 0 {
				return []Op{{Func: "Send", Peer: 1, Steps: 2, Net: NetSocket, Via: ranks[1]}}
			}
			return []Op{{Func: "Recv", Peer: 0, Steps: 2}}
		})
		Leave(ranks)
		h := play(t, s, replay.Options{Clock: clock})
		origin, task := h.lines[0][0].Ctx, h.of(0, descriptor.TypeP2p)[0].H
		found := 0
		for _, op := range h.of(1, descriptor.TypeProxyOp) {
			if fmt.Sprint(op.D["isSend"]) != "1" {
				continue
			}
			found++
			testkit.Check(t, op.Ctx == origin && op.ParentObj == task && op.Rank == 0 &&
				fmt.Sprint(op.D["pid"]) == fmt.Sprint(h.Processes[0].PID),
				"%s: %+v, want context %#x, parent %#x, pid %d", clock, op, origin, task, h.Processes[0].PID)
			for _, step := range h.of(1, descriptor.TypeProxyStep) {
				testkit.Check(t, step.ParentObj != op.H || step.Ctx == origin && step.Rank == 0, "%s: %+v", clock, step)
			}
		}
		if found != 1 || len(h.of(0, descriptor.TypeProxyOp)) != 0 {
			t.Errorf("%s: %d sends by the second process, %d by the first", clock, found, len(h.of(0, descriptor.TypeProxyOp)))
		}
	}
}
