// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
)

var clocks = []replay.Clock{replay.ClockRecorded, replay.ClockLive}

func TestRawValuesArePlayedAsTheyAre(t *testing.T) {
	values := []Raw{1, 0xdead, math.MaxUint64, 1 << 63, 0x7fc900000003}
	s := New("raw", "2.29.7")
	p := s.Process()
	u := p.Thread("app")
	c := u.Init(Comm{ID: 1, NRanks: 1})
	for _, v := range values {
		u.Stop(v)
		u.State(v, replay.StateProxyOpInProgress, nil)
		u.State(v, replay.StateKernelChStop, PTimer(7))
		e := u.Start(v, replay.ProxyOp{}, Under(v), Before(v))
		u.Stop(e)
		u.finalize(v)
	}
	u.Stop(Raw(0))
	u.State(Raw(0), replay.StateNetPluginUpdate, new(replay.Args))
	u.finalize(c)
	for _, clock := range clocks {
		h := play(t, s, replay.Options{Clock: clock})
		lines := h.lines[0][1:]
		for i, v := range values {
			l := lines[6*i : 6*i+6]
			want := replay.Pointer(v)
			if l[0].H != want || l[1].H != want || l[1].Args != nil || l[2].H != want || l[2].Args.U64 != 7 ||
				l[3].Ctx != want ||
				l[3].ParentObj != want || l[3].HandleBefore != want || l[4].H != l[3].H || l[5].F != "finalize" ||
				l[5].Ctx != want {
				t.Errorf("%#x: %+v %+v %+v %+v %+v %+v", v, l[0], l[1], l[2], l[3], l[4], l[5])
			}
		}
		rest := lines[6*len(values):]
		if len(rest) != 3 || rest[0].H != 0 || rest[1].H != 0 || rest[2].F != "finalize" {
			t.Errorf("at the end %+v", rest)
		}
		sum := h.Total()
		if sum.RawHandles != 3*len(values) || sum.NullHandles != 2 {
			t.Errorf("%d raw handles, %d NULL", sum.RawHandles, sum.NullHandles)
		}
	}
}

func TestHandlesAreMisused(t *testing.T) {
	s := New("misused", "2.30.7")
	ranks := s.Job(1, Comm{ID: 1})
	r, u := ranks[0], ranks[0].App
	d := r.Call(Op{Func: "AllReduce", Steps: 1})
	s.Advance(1000)
	group, step := d.GroupApi, d.Steps[0]
	u.Stop(group)                                      // again
	u.State(group, replay.StateGroupEndApiStart, nil)  // after its stop
	u.State(step, replay.StateKernelChStop, PTimer(1)) // another type's
	u.State(step, 77, new(replay.Args))                // nobody's
	u.State(step, -1, nil)
	other := u.Start(r.Context, replay.Other{}, WithType(1<<20), Under(step))
	none := u.Start(r.Context, replay.Other{}, WithType(0))
	two := u.Start(r.Context, replay.Other{}, WithType(0x8003))
	newer := u.Start(r.Context, replay.Other{}, WithType(1<<15)) // KernelPhase in version 7, RCCL's in its version 6
	for _, e := range []*Event{other, none, two, newer} {
		u.Stop(e)
	}
	r.Leave()
	late := u.Start(r.Context, replay.ProxyCtrl{}) // after finalize
	u.Stop(late)

	// A second communicator keeps the plugin loaded.
	s.At(0.5)
	u.Init(Comm{ID: 2, NRanks: 1})

	for _, clock := range clocks {
		h := play(t, s, replay.Options{Clock: clock})
		groups, ctrls := h.of(0, replay.TypeGroupApi), h.of(0, replay.TypeProxyCtrl)
		stops := map[replay.Pointer]int{}
		var unknown []uint64
		finalized := false
		for _, l := range h.lines[0] {
			switch {
			case l.F == "stop":
				stops[l.H]++
			case l.F == "start" && l.TypeName == "":
				unknown = append(unknown, l.UnknownType)
			case l.F == "finalize":
				finalized = true
			case finalized && l.F == "start" && l.TypeName != "ProxyCtrl":
				t.Errorf("after finalize: %+v", l)
			}
		}
		if stops[groups[0].H] != 2 {
			t.Errorf("GroupApi was stopped %d times", stops[groups[0].H])
		}
		if len(h.states(0, groups[0].H)) != 3 {
			t.Errorf("GroupApi got %d states", len(h.states(0, groups[0].H)))
		}
		if fmt.Sprint(unknown) != fmt.Sprint([]uint64{1 << 20, 0, 0x8003, 1 << 15}) {
			t.Errorf("unknown types %#x", unknown)
		}
		if last := ctrls[len(ctrls)-1]; last.Ctx != h.lines[0][1].Ctx && last.Ctx != h.lines[0][0].Ctx {
			t.Errorf("the last ProxyCtrl is in context %#x", last.Ctx)
		}
		odd := map[int]bool{}
		for _, l := range h.states(0, h.of(0, replay.TypeProxyStep)[0].H) {
			odd[l.State] = true
		}
		for _, n := range []int{22, 77, -1} {
			if !odd[n] {
				t.Errorf("state %d did not come", n)
			}
		}
	}

	// Adapted, a plugin gets only what its version knows.
	h := play(t, s, replay.Options{API: 5})
	for _, l := range h.lines[0] {
		if l.F == "start" && l.TypeName == "" || l.F == "state" && (l.State > 24 || l.State < 0) {
			t.Errorf("version 5 got %+v", l)
		}
	}
}

func TestShortThreads(t *testing.T) {
	const n = 300
	s := New("short", "2.29.7")
	p := s.Process()
	u := p.Thread("app")
	c := u.Init(Comm{ID: 1, NRanks: 1})
	for i := range n {
		g := p.ShortThread(fmt.Sprintf("g%d", i))
		e := g.Start(c, replay.Group{})
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
		if len(names) != n {
			t.Errorf("%d threads, want %d", len(names), n)
		}
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
		origin, task := h.lines[0][0].Ctx, h.of(0, replay.TypeP2p)[0].H
		found := 0
		for _, op := range h.of(1, replay.TypeProxyOp) {
			if fmt.Sprint(op.D["isSend"]) != "1" {
				continue
			}
			found++
			if op.Ctx != origin || op.ParentObj != task || op.Rank != 0 ||
				fmt.Sprint(op.D["pid"]) != fmt.Sprint(h.Processes[0].PID) {
				t.Errorf("%s: %+v, want context %#x, parent %#x, pid %d", clock, op, origin, task, h.Processes[0].PID)
			}
			for _, step := range h.of(1, replay.TypeProxyStep) {
				if step.ParentObj == op.H && (step.Ctx != origin || step.Rank != 0) {
					t.Errorf("%s: %+v", clock, step)
				}
			}
		}
		if found != 1 || len(h.of(0, replay.TypeProxyOp)) != 0 {
			t.Errorf("%s: %d sends by the second process, %d by the first", clock, found,
				len(h.of(0, replay.TypeProxyOp)))
		}
	}
}

func TestMisuseIsAnError(t *testing.T) {
	for name, f := range map[string]func(s *Scenario, u, v *Thread){
		"no release":    func(s *Scenario, u, v *Thread) { s.fail("%v", New("", "1.0").err) },
		"no descriptor": func(s *Scenario, u, v *Thread) { u.Start(Raw(1), 5) },
		"a type without its descriptor": func(s *Scenario, u,
			v *Thread) {
			u.Start(Raw(1), replay.Other{}, WithType(2))
		},
		"a foreign event":   func(s *Scenario, u, v *Thread) { v.Stop(u.Start(Raw(1), replay.Group{})) },
		"a foreign context": func(s *Scenario, u, v *Thread) { v.Start(u.Init(Comm{}), replay.Group{}) },
		"a parent to come": func(s *Scenario, u,
			v *Thread) {
			e := u.Start(Raw(1), replay.Group{})
			s.At(0)
			u.Stop(e)
		},
		"a context as event": func(s *Scenario, u, v *Thread) { u.Stop(u.Init(Comm{})) },
		"an old event": func(s *Scenario, u, v *Thread) {
			w := s.Process().Thread("w")
			c := w.Init(Comm{})
			e := w.Start(c, replay.Group{})
			w.finalize(c)
			w.Init(Comm{})
			w.Stop(e)
		},
		"a short main thread": func(s *Scenario, u, v *Thread) { s.Process().ShortThread("x") },
		"captures before 2.28": func(s *Scenario, u, v *Thread) {
			old := New("old", "2.27.7")
			old.Process().Thread("x").Join(Comm{NRanks: 1}).Capture(Op{Func: "AllReduce"})
			s.err = old.err
		},
	} {
		s := New("misuse", "2.29.7")
		s.At(5)
		u, v := s.Process().Thread("u"), s.Process().Thread("v")
		u.Init(Comm{ID: 1, NRanks: 2})
		v.Init(Comm{ID: 1, NRanks: 2, Rank: 1})
		f(s, u, v)
		if err := s.Write(t.TempDir()); err == nil {
			t.Errorf("%s: it is written", name)
		}
	}
}
