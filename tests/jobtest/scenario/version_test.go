// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
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

// Each version hears of a job what it can, and as its release calls: how often which calls come, with which descriptors
// and states.
func TestEveryVersionHearsWhatItCan(t *testing.T) {
	for _, rel := range releases {
		t.Run(rel.name, func(t *testing.T) {
			rec := testkit.Value(mixed(rel.name).Load(t.TempDir()))(t)
			text := ""
			for version := 1; version <= rel.native; version++ {
				want := map[string]int{}
				for _, p := range rec.Processes {
					for _, e := range p.Events {
						if typesOf(version)&e.Type.Bit() != 0 {
							want[e.Type.String()]++
						}
					}
				}
				h := play(t, mixed(rel.name), replay.Options{API: version})
				got := h.starts()
				testkit.Check(t, maps.Equal(got, want), "version %d: starts %v, want %v", version, got, want)
				testkit.Equal(t, h.Total().Plugin, fmt.Sprintf("v%d", version), "the plugin's version that was taken")
				text += fmt.Sprintf("version %d\n%s\n", version, shapes(h.transcript(0)+h.transcript(1)))
			}
			golden.Text(t, filepath.Join("testdata/heard", rel.name+".txt"), text)
		})
	}
}

func TestKernelPhasesTileTheirChannel(t *testing.T) {
	s := New("symmetric", "2.31.2")
	ranks := s.Job(2, Comm{ID: 1})
	s.All(ranks, Same(Op{Func: "AllReduce", Symmetric: "AllReduce_AGxLL_R", Channels: 2}))
	Leave(ranks)
	h := play(t, s, replay.Options{})
	phases := h.of(0, descriptor.TypeKernelPhase)
	testkit.Require(t, len(phases) == 6, "%d phases", len(phases))
	for i := range 3 {
		st := h.states(0, phases[i].H)
		testkit.Require(t, len(st) == 1 && st[0].State == 31, "phase %d got %+v", i, st)
		if i < 2 {
			testkit.Equal(t, fmt.Sprint(phases[i+1].D["pTimer"]), fmt.Sprint(st[0].Args.U64), "phase %d begins", i+1)
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
		testkit.Equal(t, h.Total().Mask, test.want, "%s, version %d: mask %#x became", test.release, test.api,
			test.mask)
	}
}
