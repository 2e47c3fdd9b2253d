// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/peer"
)

func TestPluginsAskForTheSame(t *testing.T) {
	b := &bench{host: &caller.Host{Plugin: "ours.so", Empty: "empty.so"}}
	if got := kinds(presets, nil)[0].environment(b, "dir"); len(got) != 1 || got[0] != "NCCL_PROFILER_PLUGIN=none" {
		t.Errorf("no plugin: %q", got)
	}
	for _, preset := range presets {
		mask, err := config.ParseEvents(preset)
		if err != nil || mask == 0 {
			t.Fatalf("%s: %#x, %v", preset, mask, err)
		}
		ours := strings.Join((&plugin{preset: preset, ours: true}).environment(b, "dir"), " ")
		if !strings.Contains(ours, "ours.so") || !strings.Contains(ours, "NCCL_OTF2_EVENTS="+preset) {
			t.Errorf("%s: ours has %s", preset, ours)
		}
		empty := strings.Join((&plugin{preset: preset}).environment(b, "dir"), " ")
		if !strings.Contains(empty, "empty.so") || !strings.Contains(empty, "EMPTY_PLUGIN_EVENTS=0x") {
			t.Errorf("%s: the empty one has %s", preset, empty)
		}
	}
}

// Beside others' plugins ours runs with its defaults, and they are held against the empty one that asks for the same.
func TestPeersStandBesideTheDefaults(t *testing.T) {
	peers := []peer.Plugin{{Name: "another", File: "/another.so", Settings: []string{"OUT={dir}/out"}}}
	all := kinds((&bench{peers: peers}).loops()[0].presets, peers)
	if len(all) != 4 || all[1].ours || all[1].preset != defaultPreset || !all[2].ours ||
		all[2].preset != defaultPreset || all[3].title() != "another" {
		t.Fatalf("%+v", all)
	}
	if got := all[3].environment(new(bench), "/run"); !slices.Equal(
		got, []string{"NCCL_PROFILER_PLUGIN=/another.so", "OUT=/run/out"}) {
		t.Errorf("%q", got)
	}
	one := func(loop float64) []*job {
		return []*job{{Init: []float64{1}, First: []float64{1}, CallMedian: 1, CallMean: 1, Loop: loop}}
	}
	if row := loopOf(all[3], [][]*job{one(1), one(2), one(3), one(5)}, 3); row.LoopRatio != 2.5 || row.Aim != 0 {
		t.Errorf("%+v", row)
	}
}

// Ratios are of runs of the same round, so that a machine that gets slower meanwhile does not make them.
func TestRatiosAreOfOneRound(t *testing.T) {
	var empty, ours []*job
	for round := range 3 {
		slow := float64(round + 1)
		empty = append(empty, &job{Init: []float64{1}, First: []float64{1}, CallMedian: slow, CallMean: slow,
			Loop: slow})
		ours = append(ours, &job{Init: []float64{1}, First: []float64{1}, CallMedian: 1.04 * slow, CallMean: 1.5 * slow,
			Loop: 2 * slow})
	}
	row := loopOf(&plugin{preset: "gpu", ours: true}, [][]*job{empty, ours}, 1)
	if row.CallRatio != 1.04 || row.MeanRatio != 1.5 || row.LoopRatio != 2 || row.verdict() != "≤ 1.05, met" {
		t.Errorf("%+v: %s", row, row.verdict())
	}
	row = loopOf(&plugin{preset: "all", ours: true}, [][]*job{empty, ours}, 1)
	testkit.Equal(t, row.verdict(), "–", "all has the aim")
}

func TestPageHasATableForEachWay(t *testing.T) {
	r := &result{Loops: []loopRow{{Call: "a", Plugin: "no plugin"},
		{Call: "a", Plugin: "gpu", CallRatio: 1.2, Aim: callAim}, {Call: "b"}}, Firsts: []firstRow{
		{How: "one way", Case: "light"}, {How: "one way", Case: "gpu"}, {How: "another", Case: "light"}}}
	p := r.Page()
	if len(p.Tables) != 6 || len(p.Tables[0].Rows) != 2 || len(p.Tables[2].Rows) != 1 || len(p.Tables[4].Rows) != 2 ||
		len(p.Tables[5].Rows) != 1 {
		t.Fatalf("%+v", p.Tables)
	}
	testkit.Contains(t, p.Text(), "missed by 14 %")
}

func TestWithoutNCCLItSaysWhatToDo(t *testing.T) {
	err := new(bench).prepare(".", t.TempDir(), t.TempDir())
	if !errors.Is(err, errNoBed) || !strings.Contains(err.Error(), "make real-nccl-bed") {
		t.Error(err)
	}
	build := t.TempDir()
	testkit.Must(t, errors.Join(os.MkdirAll(filepath.Join(build, "realnccl"), 0o755),
		os.WriteFile(filepath.Join(build, "realnccl/beds"), []byte("/nowhere\n/elsewhere\n"), 0o644)))
	b := new(bench)
	if err := b.prepare(".", build, t.TempDir()); !errors.Is(err, errNoBed) || b.bed != "/nowhere" {
		t.Errorf("%q: %v", b.bed, err)
	}
}
