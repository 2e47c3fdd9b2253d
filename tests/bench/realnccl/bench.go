// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/peer"
)

// bench runs everything.
type bench struct {
	bed, program  string
	host          *caller.Host // the plugins
	dir           string
	rounds, ranks int
	operations    int
	communicators int
	peers         peer.List
	log           io.Writer // may be nil
	runs          int
}

func (b *bench) say(format string, args ...any) {
	if b.log != nil {
		fmt.Fprintf(b.log, format, args...)
	}
}

// prepare finds NCCL, and builds the job and the plugins.
func (b *bench) prepare(root, build, dir string) (err error) {
	if b.bed == "" {
		text, err := os.ReadFile(filepath.Join(build, "realnccl/beds"))
		if err != nil {
			return fmt.Errorf("%w: %w", errNoBed, err)
		}
		b.bed, _, _ = strings.Cut(string(text), "\n")
	}
	if b.bed, err = filepath.Abs(b.bed); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(b.bed, "libnccl.so.2")); err != nil {
		return fmt.Errorf("%w: %w", errNoBed, err)
	}
	if b.host, err = caller.Build(root, build, dir); err != nil {
		return err
	}
	b.dir, b.program = dir, filepath.Join(dir, "job")
	args := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o", b.program,
		filepath.Join(root, "tests/bench/realnccl/job/main.c"), "-pthread", "-ldl"}
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("cc: %w\n%s", err, out)
	}
	return nil
}

// plugin is what NCCL loads: none, the empty one, or ours, with the events of a preset.
type plugin struct {
	preset string // empty: no plugin
	ours   bool
	peer   *peer.Plugin // nil: it is none that the command line names
}

func (p *plugin) title() string {
	switch {
	case p.peer != nil:
		return p.peer.Name
	case p.preset == "":
		return "no plugin"
	case p.ours:
		return p.preset
	}
	return "empty, " + p.preset
}

// environment is what makes NCCL load it. What is recorded is of no use, so no archive is made.
func (p *plugin) environment(b *bench, dir string) []string {
	if p.peer != nil {
		return append([]string{"NCCL_PROFILER_PLUGIN=" + p.peer.File}, p.peer.Environment(dir)...)
	}
	mask, err := config.ParseEvents(p.preset)
	switch {
	case p.preset == "":
		return []string{"NCCL_PROFILER_PLUGIN=none"}
	case err != nil:
		panic(err) // the presets are ours
	case p.ours:
		return []string{"NCCL_PROFILER_PLUGIN=" + b.host.Plugin, "NCCL_OTF2_DIR=" + dir, "NCCL_OTF2_EVENTS=" + p.preset,
			"NCCL_OTF2_UNIFY=off"}
	}
	return []string{"NCCL_PROFILER_PLUGIN=" + b.host.Empty, fmt.Sprintf("EMPTY_PLUGIN_EVENTS=%#x", mask)}
}

var presets = []string{"light", defaultPreset, "net", "all"}

// defaultPreset is what is recorded where nothing else is asked for (setting EVENTS).
const defaultPreset = "gpu"

// aLoop is what operations in a loop are measured with.
type aLoop struct {
	call    string // that the job makes
	presets []string
}

// loops are all: with others' plugins ours with its defaults.
func (b *bench) loops() []aLoop {
	byDefault := []string{defaultPreset}
	if len(b.peers) > 0 {
		return []aLoop{{"AllReduce", byDefault}, {"SendRecv", byDefault}}
	}
	return []aLoop{{"AllReduce", presets}, {"SendRecv", byDefault}}
}

// kinds are all that is compared, in the order in which they run.
func kinds(presets []string, peers []peer.Plugin) (all []*plugin) {
	all = []*plugin{{}}
	for _, p := range presets {
		all = append(all, &plugin{preset: p}, &plugin{preset: p, ours: true})
	}
	for i := range peers {
		all = append(all, &plugin{peer: &peers[i]})
	}
	return all
}

func (b *bench) run(ctx context.Context) (*result, error) {
	r := &result{Machine: measure.Machine(), Library: filepath.Base(b.bed), Rounds: b.rounds, Ranks: b.ranks,
		Operations: b.operations}
	for _, l := range b.loops() {
		if err := b.perOperation(ctx, r, l); err != nil {
			return nil, err
		}
	}
	if len(b.peers) > 0 { // it is NCCL's own cost, whatever the plugin
		return r, nil
	}
	if err := b.firstOperation(ctx, r); err != nil {
		return nil, err
	}
	return r, nil
}

// perOperation runs the loop with all plugins in turn.
func (b *bench) perOperation(ctx context.Context, r *result, l aLoop) error {
	all := kinds(l.presets, b.peers)
	runs := make([][]*job, len(all))
	for range b.rounds {
		for i, p := range all {
			b.say("%s, %s ", l.call, p.title())
			j, err := b.job(ctx, request{plugin: p, communicators: 1, operations: b.operations, call: l.call})
			if err != nil {
				return err
			}
			runs[i] = append(runs[i], j)
		}
		b.say("\n")
	}
	for i, p := range all {
		row := loopOf(p, runs, i)
		row.Call = l.call
		r.Loops = append(r.Loops, row)
	}
	return nil
}

// loopOf are the medians of a plugin's runs. Ratios are those of runs of the same round.
func loopOf(p *plugin, runs [][]*job, i int) loopRow {
	against := func(other int, get func(*job) float64) float64 {
		var ratios []float64
		for round, j := range runs[i] {
			ratios = append(ratios, get(j)/get(runs[other][round]))
		}
		return median(ratios)
	}
	own := func(get func(*job) float64) float64 { return medianOf(runs[i], get) }
	row := loopRow{
		Plugin: p.title(), CallMedian: own(callMedian), CallMean: own(callMean), Loop: own(loop),
		Init: own(func(j *job) float64 { return j.Init[0] }), First: own(func(j *job) float64 { return j.First[0] }),
		Own: own(func(j *job) float64 { return j.own }), Collector: own(func(j *job) float64 { return j.collector }),
		Processor: own(func(j *job) float64 { return j.processor }),
	}
	switch {
	case p.ours: // the one before is empty, with the same events
		row.CallRatio, row.MeanRatio, row.LoopRatio = against(i-1, callMedian), against(i-1, callMean),
			against(i-1, loop)
		if p.preset != "all" {
			row.Aim = callAim
		}
	case p.peer != nil: // the second is empty, with the events that ours has by default
		row.CallRatio, row.MeanRatio, row.LoopRatio = against(1, callMedian), against(1, callMean), against(1, loop)
	}
	return row
}

func callMedian(j *job) float64 { return j.CallMedian }
func callMean(j *job) float64   { return j.CallMean }
func loop(j *job) float64       { return j.Loop }

// firstCases are what the first operation of a communicator is measured with.
var firstCases = []struct {
	title    string
	preset   string
	settings []string
}{
	{"no plugin", "", nil},
	{"light", "light", nil},
	{"gpu", "gpu", nil},
	{"gpu, NCCL_MAX_NCHANNELS=2", "gpu", []string{"NCCL_MAX_NCHANNELS=2"}},
}

// firstOperation measures it with many communicators, and with ranks that have the processors to themselves.
func (b *bench) firstOperation(ctx context.Context, r *result) error {
	for _, how := range []struct {
		title          string
		spin, oneByOne bool
		communicators  int
	}{
		{"threads that wait nap", false, false, b.communicators},
		{"threads that wait spin", true, false, (b.communicators + 3) / 4}, // each takes seconds
		{"threads that wait spin, one rank calls at a time", true, true, (b.communicators + 1) / 2},
	} {
		runs := make([][]*job, len(firstCases))
		for range b.rounds {
			for i, c := range firstCases {
				b.say("first, %s, %s ", how.title, c.title)
				j, err := b.job(ctx, request{plugin: &plugin{preset: c.preset, ours: c.preset != ""},
					communicators: how.communicators, operations: 1, call: "AllReduce",
					settings: c.settings, spin: how.spin, oneByOne: how.oneByOne})
				if err != nil {
					return err
				}
				runs[i] = append(runs[i], j)
			}
			b.say("\n")
		}
		for i, c := range firstCases {
			var all []float64
			for _, j := range runs[i] {
				all = append(all, j.First...)
			}
			r.Firsts = append(r.Firsts, firstRow{How: how.title, Case: c.title, Communicators: how.communicators,
				Median: median(all), Least: slices.Min(all),
				Most: slices.Max(all), Sum: medianOf(runs[i], func(j *job) float64 { return sum(j.First) }),
				Init: medianOf(runs[i], func(j *job) float64 { return sum(j.Init) })})
		}
	}
	return nil
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

func median(v []float64) float64 { return stats.Median(slices.Clone(v)) }

func medianOf(runs []*job, get func(*job) float64) float64 {
	var v []float64
	for _, j := range runs {
		v = append(v, get(j))
	}
	return median(v)
}
