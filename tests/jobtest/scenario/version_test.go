// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// releases are one of each release whose calls differ, with the version that it speaks.
var releases = []struct {
	name   string
	native int
}{
	{"2.23.4", 1}, {"2.24.3", 2}, {"2.25.1", 2}, {"2.26.6", 3}, {"2.27.7", 4}, {"2.28.9", 5}, {"2.29.7", 6},
	{"2.30.7", 6}, {"2.31.2", 7},
}

// mixed has an operation of every kind.
func mixed(release string) *Scenario {
	s := New("mixed", release)
	ranks := s.Job(2, Comm{ID: 0xabc, Name: "dp"})
	s.All(ranks, Same(Op{Func: "AllReduce", Channels: 2, Steps: 3, UserTag: 42}), 0, 10)
	s.All(ranks, Same(Op{Func: "AllGather", Datatype: "ncclBfloat16", Algo: "TREE", Proto: "LL128"}))
	s.All(ranks, AllToAll(2, Op{Steps: 1, Net: NetSocket}))
	s.All(ranks, Same(Op{Func: "AllReduce", Steps: 1, Net: NetIB}))
	s.All(ranks, Same(Op{Func: "AllReduce", Steps: 1, Net: 0x70001}))
	s.All(ranks, Same(Op{Func: "AllGather", CE: true}))
	s.All(ranks, Same(Op{Func: "AllReduce", Symmetric: "AllReduce_AGxLL_R"}))
	if s.minor >= 28 {
		for _, r := range ranks {
			g := r.Capture(Op{Func: "AllReduce"})
			g.Replay()
			g.Replay()
		}
	}
	Leave(ranks)
	return s
}

// typesOf are the types of each version. Source: docs/nccl-profiler-api.md §2.2.
func typesOf(version int) uint64 {
	return []uint64{1: 0x3f, 2: 0x3f, 3: 0xff, 4: 0xff, 5: 0xfff, 6: 0x7fff, 7: 0xffff}[version]
}

func TestEveryVersionHearsWhatItCan(t *testing.T) {
	for _, rel := range releases {
		for version := 1; version <= rel.native; version++ {
			t.Run(fmt.Sprintf("%s/v%d", rel.name, version), func(t *testing.T) {
				s := mixed(rel.name)
				rec, err := s.Load(t.TempDir())
				testkit.Must(t, err)
				want := map[string]int{}
				for _, p := range rec.Processes {
					for _, e := range p.Events {
						if typesOf(version)&e.Type.Bit() != 0 {
							want[e.Type.String()]++
						}
					}
				}
				h := play(t, s, replay.Options{API: version})
				if got := h.starts(); !maps.Equal(got, want) {
					t.Errorf("starts %v, want %v", got, want)
				}
				if got := h.Total().Plugin; got != fmt.Sprintf("v%d", version) {
					t.Errorf("the plugin's %s was taken", got)
				}
				for k := range rec.Processes {
					h.inits(k, version)
					h.tasks(k, version, s.minor)
					h.proxies(k, version, s.minor)
				}
			})
		}
	}
}

// inits: what of the communicator is told when it is made.
func (h *heard) inits(k, version int) {
	l := h.lines[k][0]
	switch {
	case l.F != "init" || l.API != version:
		h.t.Errorf("process %d begins with %+v", k, l)
	case version <= 3 && (l.CommID != 0 || l.NRanks != 0 || l.CommName != nil),
		version >= 4 && (l.CommID != 0xabc || l.NRanks != 2 || l.Rank != k || l.CommName == nil || *l.CommName != "dp"):
		h.t.Errorf("process %d: init %+v", k, l)
	}
}

// is compares one member of a descriptor; nil: the version does not have it, or it is NULL.
func (h *heard) is(l *line, name string, want any) {
	h.t.Helper()
	got := l.D[name]
	if want == nil && got != nil || want != nil && fmt.Sprint(got) != fmt.Sprint(want) {
		h.t.Errorf("%s.%s is %v, want %v", l.TypeName, name, got, want)
	}
}

// tasks: descriptors and parents of Coll and P2p. Source: docs/nccl-profiler-api.md §2.4.
func (h *heard) tasks(k, version, minor int) {
	byHandle := map[replay.Pointer]*line{}
	for _, l := range h.lines[k] {
		if l.F == "start" {
			byHandle[l.H] = l
		}
	}
	parentType := func(l *line) string {
		if p := byHandle[l.ParentObj]; p != nil {
			return p.TypeName
		}
		return ""
	}
	stated := version <= 3 && minor <= 26 // the communicator, in each descriptor
	colls := h.of(k, replay.TypeColl)
	for i, l := range colls {
		switch {
		case version <= 4 && parentType(l) != "Group", version >= 5 && parentType(l) != "CollApi":
			h.t.Errorf("Coll %d is under %q", i, parentType(l))
		}
		if version <= 4 {
			h.is(l, "parentGroup", nil)
		} else {
			h.is(l, "parentGroup", fmt.Sprintf("0x%x", uint64(h.of(k, replay.TypeGroup)[groupOf(h, k, l)].H)))
		}
		switch {
		case stated:
			h.is(l, "name", "dp")
			h.is(l, "commHash", 0xabc)
		case version <= 3:
			h.is(l, "name", nil)
			h.is(l, "commHash", 0)
		default:
			h.is(l, "commHash", nil)
		}
		if version == 7 {
			symmetric := l.D["kernelVariant"] != nil
			h.is(l, "isSymColl", map[bool]int{false: 0, true: 1}[symmetric])
		} else {
			h.is(l, "kernelVariant", nil)
			h.is(l, "userTag", nil)
		}
	}
	if version == 1 {
		for name, want := range map[string]int{"func": 4, "algo": 1, "proto": 2,
			"datatype": 7} { // AllReduce RING SIMPLE Float32
			h.is(colls[0], name, want)
		}
		for name, want := range map[string]int{"func": 2, "algo": 0, "proto": 1,
			"datatype": 0} { // AllGather TREE LL128 Int8
			h.is(colls[1], name, want)
		}
	} else {
		h.is(colls[1], "func", "AllGather")
		h.is(colls[1], "count", 2048)
		h.is(colls[1], "datatype", "ncclInt8")
	}
	if version == 7 {
		h.is(colls[0], "userTag", 42)
	}
	if version <= 2 {
		traffic := 0
		if minor <= 25 {
			traffic = 8192
		}
		h.is(colls[0], "trafficBytes", traffic)
	}
	for _, l := range h.of(k, replay.TypeP2p) {
		switch {
		case version <= 3:
			h.is(l, "nChannels", nil)
		case version == 4 && minor >= 28:
			h.is(l, "nChannels", 0xa5) // never copied
		default:
			h.is(l, "nChannels", 1)
		}
	}
}

// groupOf is the number of the Group that was started last before a line.
func groupOf(h *heard, k int, before *line) int {
	n := -1
	for _, l := range h.lines[k] {
		if l == before {
			break
		}
		if l.F == "start" && l.TypeName == "Group" {
			n++
		}
	}
	return n
}

// proxies: states and arguments of what the progress thread does.
func (h *heard) proxies(k, version, minor int) {
	for _, op := range h.of(k, replay.TypeProxyOp) {
		states := h.states(k, op.H)
		h.is(op, "pid", h.Processes[k].PID)
		switch {
		case minor <= 26: // posted, and so on
			for _, l := range states {
				if l.State > 7 || l.Args == nil {
					h.t.Errorf("ProxyOp got %+v", l)
				}
			}
			last := states[len(states)-1]
			if want := states[len(states)-2].Args; *last.Args != *want || want.U64 == 0 || want.I32at8 == 0 {
				h.t.Errorf("ProxyOp ended with %+v after %+v", last.Args, want)
			}
		case version <= 3:
			if len(states) != 0 {
				h.t.Errorf("ProxyOp got %d states", len(states))
			}
		default:
			if len(states) != 1 || states[0].State != 19 {
				h.t.Errorf("ProxyOp got %+v", states)
			}
		}
	}
	for _, step := range h.of(k, replay.TypeProxyStep) {
		states := h.states(k, step.H)
		sized := false
		for _, l := range states {
			switch {
			case l.State == 20 && version <= 3:
				h.t.Error("version 3 and older have no SendPeerWait")
			case minor <= 26 && l.Args != nil:
				h.t.Errorf("ProxyStep got arguments %+v", l.Args)
			case minor > 26 && version <= 3 && (l.Args == nil || l.Args.U64 != 0):
				h.t.Errorf("ProxyStep got arguments %+v", l.Args)
			}
			sized = sized || (l.State == 9 || l.State == 11) && l.Args != nil && l.Args.U64 == 4096
		}
		if len(states) < 2 || sized != (version >= 4) {
			h.t.Errorf("ProxyStep: %d states, bytes %t", len(states), sized)
		}
	}
	for _, kernel := range h.of(k, replay.TypeKernelCh) {
		stops := h.states(k, kernel.H)
		if version == 3 {
			h.is(kernel, "pTimer", nil)
			if len(stops) != 0 {
				h.t.Errorf("KernelCh got %+v", stops[0])
			}
			continue
		}
		if len(stops) != 1 || stops[0].State != 22 || stops[0].Args.U64 == 0 {
			h.t.Errorf("KernelCh got %+v", stops)
		}
	}
	for _, net := range h.of(k, replay.TypeNetPlugin) {
		switch fmt.Sprint(net.D["id"]) {
		case fmt.Sprint(NetSocket):
			h.is(net, "ib", nil)
			if net.D["sock"] == nil {
				h.t.Error("no socket")
			}
		case fmt.Sprint(NetIB):
			if net.D["ib"] == nil || net.D["sock"] != nil {
				h.t.Errorf("InfiniBand: %v", net.D)
			}
		default:
			updates := len(h.states(k, net.H))
			if want := map[bool]int{false: 0, true: 1}[version >= 4]; updates != want {
				h.t.Errorf("NetPlugin got %d updates, want %d", updates, want)
			}
		}
	}
}

func TestKernelPhasesTileTheirChannel(t *testing.T) {
	s := New("symmetric", "2.31.2")
	ranks := s.Job(2, Comm{ID: 1})
	s.All(ranks, Same(Op{Func: "AllReduce", Symmetric: "AllReduce_AGxLL_R", Channels: 2}))
	Leave(ranks)
	h := play(t, s, replay.Options{})
	phases := h.of(0, replay.TypeKernelPhase)
	if len(phases) != 6 {
		t.Fatalf("%d phases", len(phases))
	}
	for i, name := range []string{"initial_sync", "compute", "final_sync"} {
		h.is(phases[i], "phaseName", name)
		st := h.states(0, phases[i].H)
		if len(st) != 1 || st[0].State != 31 {
			t.Fatalf("phase %d got %+v", i, st)
		}
		if i < 2 {
			h.is(phases[i+1], "pTimer", st[0].Args.U64)
		}
	}
	coll := h.of(0, replay.TypeColl)[0]
	h.is(coll, "algo", "AGxLL_R")
	if proto, ok := coll.D["proto"].(string); !ok || proto != "" {
		t.Errorf("proto is %v, not empty", coll.D["proto"])
	}
}

func TestCliquesHaveOneGroupApi(t *testing.T) {
	s := New("clique", "2.29.7")
	u := s.Process().Thread("app")
	var ranks []*Rank
	for rank := range 3 {
		ranks = append(ranks, u.Join(Comm{ID: 7, NRanks: 3, Rank: rank}))
	}
	done := clique(ranks, Same(Op{Func: "AllReduce", Steps: 1}))
	Leave(ranks)
	h := play(t, s, replay.Options{Clock: replay.ClockRecorded})
	groups, apis, launches := h.of(0, replay.TypeGroupApi), h.of(0, replay.TypeCollApi),
		h.of(0, replay.TypeKernelLaunch)
	if len(done) != 3 || len(groups) != 1 || len(apis) != 3 || len(launches) != 3 ||
		groups[0].Ctx != h.lines[0][0].Ctx {
		t.Fatalf("%d GroupApi, %d CollApi, %d KernelLaunch", len(groups), len(apis), len(launches))
	}
	for i := range apis {
		context := h.lines[0][i].Ctx // init
		if apis[i].ParentObj != groups[0].H || launches[i].ParentObj != groups[0].H || apis[i].Ctx != context ||
			launches[i].Ctx != context {
			t.Errorf("rank %d: %+v, %+v", i, apis[i], launches[i])
		}
	}
}

func TestReplaysOfAGraphHaveTheParentsOfTheCapture(t *testing.T) {
	s := New("graph", "2.30.7")
	r := s.Job(1, Comm{ID: 1})[0]
	g := r.Capture(Op{Func: "AllReduce"})
	g.Replay()
	s.Advance(100)
	g.Replay()
	r.Leave()
	h := play(t, s, replay.Options{})
	colls, apis := h.of(0, replay.TypeColl), h.of(0, replay.TypeCollApi)
	if len(colls) != 2 || len(apis) != 1 || len(h.of(0, replay.TypeKernelLaunch)) != 1 ||
		len(h.of(0, replay.TypeKernelCh)) != 2 {
		t.Fatalf("started %v", h.starts())
	}
	h.is(apis[0], "graphCaptured", 1)
	for i, l := range colls {
		if l.ParentObj != apis[0].H || l.Thread == apis[0].Thread {
			t.Errorf("replay %d: %+v", i, l)
		}
		h.is(l, "seqNumber", i)
	}
}

func TestLoadingAnew(t *testing.T) {
	s := New("anew", "2.29.7")
	p := s.Process()
	u := p.Thread("app")
	for id := range uint64(3) {
		r := u.Join(Comm{ID: id + 1, NRanks: 1})
		r.Call(Op{Func: "Send", Peer: 0})
		r.Leave()
		s.Advance(10)
	}
	for _, clock := range clocks {
		h := play(t, s, replay.Options{Clock: clock})
		if sum := h.Total(); sum.Loads != 3 || sum.Inits != 3 || sum.Finalizes != 3 ||
			sum.Delivered.Starts["P2p"] != 3 {
			t.Errorf("%s: %+v", clock, sum)
		}
	}
}

func TestTheMaskAfterInit(t *testing.T) {
	for _, test := range []struct {
		release         string
		api, mask, want int
	}{
		{"2.31.2", 7, 0xffff, 0xffff},
		{"2.31.2", 7, 0x8000, 0x8040}, // KernelPhase needs KernelCh
		{"2.31.2", 6, 0xffff, 0x7fff},
		{"2.31.2", 5, 0xffff, 0x0fff},
		{"2.29.7", 6, 0xffff, 0xffff},
		{"2.29.7", 5, 0xffff, 0x8fff}, // the copy-engine bits
		{"2.29.7", 4, 0xffff, 0xffff},
		{"2.28.9", 5, 0xffff, 0xffff},
	} {
		s := New("mask", test.release)
		Leave(s.Job(1, Comm{ID: 1}))
		h := play(t, s, replay.Options{API: test.api, Env: []string{fmt.Sprintf("RECORDER_MASK=%d", test.mask)}})
		if got := h.Total().Mask; got != test.want {
			t.Errorf("%s, version %d: mask %#x became %#x, want %#x", test.release, test.api, test.mask, got, test.want)
		}
	}
}

func TestOldReleasesDropChildrenOfNothing(t *testing.T) {
	for release, want := range map[string]int{"2.27.7": 0, "2.28.9": 1} {
		s := New("orphans", release)
		r := s.Job(1, Comm{ID: 1})[0]
		r.Call(Op{Func: "AllReduce"})
		s.Advance(200)
		r.Leave()
		// Group is declined: up to 2.27 there is no Coll then.
		h := play(t, s, replay.Options{Env: []string{"RECORDER_DECLINE=1"}})
		if got := h.starts()["Coll"]; got != want {
			t.Errorf("%s: %d Coll below no Group, want %d", release, got, want)
		}
	}
}
