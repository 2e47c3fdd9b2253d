// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/realnccl/suite"
)

var (
	realBeds     = flag.String("beds", "", "run programs inside the real NCCL of these `folders` (separated by colons)")
	realPrograms = flag.String("programs", "", "only those whose group/name matches `REGEXP`")
	realWays     = flag.String(
		"ways", "none,empty,light,gpu,net,all,gpu:NCCL_ALLGATHERV_ENABLE=0,all:NCCL_ALLGATHERV_ENABLE=0",
		"run each of them in these `ways`, the first to compare with: without a plugin, with an empty one, or what ours records (NCCL_OTF2_EVENTS, names separated by +), behind a colon a variable")
	realShort = flag.Bool("short-form", false, "only the programs of the short form")
	realLimit = flag.Duration("limit", 0, "of time for each run, in place of the program's own")
	realKeep  = flag.String("keep", "", "keep what runs leave in this `folder`")
)

// Without a plugin, and with one that does nothing, programs show what NCCL does by itself.
const (
	withoutPlugin = "none"
	emptyPlugin   = "empty"
)

// fewEnds of GPU intervals say nothing of how often uncertainties are true.
const fewEnds = 1000

// Every program inside the real NCCL ends with our plugin as it does without one, whatever is recorded; the archive
// then has what was called, at the times at which it ran.
func TestRealNCCL(t *testing.T) {
	if *realBeds == "" {
		t.Skip("NOT CHECKED here: `make real-nccl` runs programs inside the real NCCL")
	}
	wanted := testkit.Value(regexp.Compile(*realPrograms))(t)
	suite.Limit = *realLimit
	for dir := range strings.SplitSeq(*realBeds, ":") {
		bed := testkit.Value(suite.Open(dir))(t)
		results := &releaseResults{bed: bed, ways: strings.Split(*realWays, ","),
			of: make(map[string]map[string]string)}
		t.Run(bed.Release, func(t *testing.T) {
			for i := range suite.Programs {
				p := &suite.Programs[i]
				if (p.Short || !*realShort) && wanted.MatchString(p.FullName()) && p.RunsOn(bed.Release) {
					t.Run(p.FullName(), func(t *testing.T) {
						t.Parallel()
						runProgram(t, bed, p, results)
					})
				}
			}
		})
		fmt.Print(results.text())
		if g := &results.gpu; len(g.errors) >= fewEnds && g.covered*100 < len(g.errors)*95 {
			t.Errorf("NCCL %s: GPU times are less sure than the archives say: %v", bed.Release, g)
		}
		if g := &results.gpu; float64(g.far) > farShare*float64(len(g.errors)) {
			t.Errorf("NCCL %s: GPU times are off by far: %v", bed.Release, g)
		}
		if golden.Updating() {
			golden.SectionMadeBy(t, "realnccl/results.md", "results of NCCL "+bed.Release, "make real-nccl",
				results.page())
		}
	}
}

// Every program has a name of its own, and says where it was read if it is a framework's.
func TestRealProgramsAreNamed(t *testing.T) {
	seen := make(map[string]bool)
	short := 0
	for i := range suite.Programs {
		p := &suite.Programs[i]
		if name := p.FullName(); seen[name] || p.Name == "" || p.Text == "" {
			t.Errorf("program %q is named twice, or does nothing", name)
		}
		seen[p.FullName()] = true
		if p.Short {
			short++
		}
	}
	testkit.Check(t, short >= 12, "the short form has %d programs only", short)
}

// runProgram runs a program in all ways.
func runProgram(t *testing.T, bed *suite.Bed, p *suite.Program, results *releaseResults) {
	var base *suite.Result
	for _, way := range results.ways {
		t.Run(way, func(t *testing.T) {
			r := &realRun{t: t, bed: bed, program: p, way: way, dir: t.TempDir()}
			if *realKeep != "" {
				r.dir = filepath.Join(*realKeep, bed.Release, p.FullName(), way)
			}
			says := "failed"
			defer func() { results.set(r, says) }()
			r.play()
			if base == nil {
				base = r.result
			}
			says = r.outcome(base)
		})
		if base == nil {
			return
		}
	}
}

// realRun is a run of a program in one way.
type realRun struct {
	t       *testing.T
	bed     *suite.Bed
	program *suite.Program
	way     string
	dir     string
	result  *suite.Result
	shards  []*description.Process
	times   *stepTiming // nil: not looked at
}

func (r *realRun) ours() bool { return r.way != withoutPlugin && r.way != emptyPlugin }

func (r *realRun) logs() string      { return filepath.Join(r.dir, "logs") }
func (r *realRun) directory() string { return filepath.Join(r.dir, "experiment") }

func (r *realRun) play() {
	var env []string
	switch r.way {
	case withoutPlugin:
		env = []string{"NCCL_PROFILER_PLUGIN=none"}
	case emptyPlugin:
		env = []string{"NCCL_PROFILER_PLUGIN=" + builtFile(r.t, "gpu/libnccl-profiler-empty.so")}
	default:
		events, variable, _ := strings.Cut(r.way, ":")
		env = append(settings(r.directory()), "NCCL_PROFILER_PLUGIN="+builtFile(r.t, "libnccl-profiler-otf2.so"),
			"NCCL_OTF2_EVENTS="+strings.ReplaceAll(events, "+", ","), variable)
	}
	r.result = testkit.Value(r.bed.Run(context.Background(), r.program, r.logs(), env...))(r.t)
	if r.ours() {
		r.collected()
		r.shards = shardsOf(r.t, r.directory())
	}
}

// outcome looks at what became of the run, and says it in a word. What NCCL does by itself, without our plugin, is no
// failure but of the program.
func (r *realRun) outcome(base *suite.Result) string {
	says := r.result.Says()
	switch {
	case r.way == withoutPlugin && says != r.program.Ends():
		r.t.Errorf("by itself ends with %q, should end with %q:\n%s", says, r.program.Ends(), tail(r.result.Output))
	case !r.ours():
	case r.result.Hung && !base.Hung:
		r.t.Errorf("hangs, and does not without a plugin:\n%s", r.where())
	case says != base.Says():
		r.t.Errorf("ends with %q, without a plugin with %q:\n%s", says, base.Says(), tail(r.result.Output))
	case !r.program.Unfinished && !slices.Equal(r.result.Results, base.Results):
		r.t.Errorf("results %q, without a plugin %q", r.result.Results, base.Results)
		return "other results"
	default:
		if says = r.recorded(); says == "ok" {
			return base.Says()
		}
	}
	return says
}

// recorded looks at what the plugin left.
func (r *realRun) recorded() string {
	logs := testkit.Value(suite.Logs(r.logs()))(r.t)
	if len(r.shards) == 0 && !anyReported(logs) {
		return "ok" // nothing was called of which NCCL tells anything
	}
	anchor := unified(r.t, r.directory())
	mayBe := []check.Severity{}
	if r.program.Unfinished {
		mayBe = append(mayBe, check.Note)
	}
	checkSound(r.t, anchor, mayBe...)
	rows := compareCalls(r, logs, readArchive(r.t, anchor))
	if r.t.Failed() {
		return "archive"
	}
	if !r.program.Unfinished {
		r.times = timesAgainstTruth(r.t, logs, rows, r.shards)
		if r.program.EndsLater && len(r.times.errors) > 0 && endedLater(logs) == 0 {
			r.t.Error("all kernels ended before the ends of others that wait for a late rank were stamped")
		}
	}
	if r.t.Failed() {
		return "times"
	}
	return "ok"
}

// where says what each process had called last, and where the driver sees it.
func (r *realRun) where() string {
	logs, err := suite.Logs(r.logs())
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "release %s, program %s, recording %s: %s\n", r.bed.Release, r.program.FullName(), r.way,
		r.program.Text)
	for pid, p := range logs {
		fmt.Fprintf(&b, "process %d has made %d calls, %d kernels have ended", pid, len(p.Calls), len(p.Kernels))
		if n := len(p.Calls); n > 0 {
			last := p.Calls[n-1]
			fmt.Fprintf(&b, "; the last call: %s of %d elements, rank %d, communicator %d", last.Op, last.Count,
				last.CommRank, last.Comm)
		}
		b.WriteByte('\n')
	}
	return b.String() + tail(r.result.Output)
}

// collected waits until nobody works on the shards any more.
func (r *realRun) collected() {
	eventually(r.t, "the collectors have finished", func() bool {
		entries, err := experiment.List(r.directory())
		return err != nil || !slices.ContainsFunc(
			entries, func(e experiment.Entry) bool {
				return e.State == experiment.Writing || e.State == experiment.Starting
			})
	})
}

// anyReported says whether there were calls on communicators of several ranks: NCCL reports nothing of others.
func anyReported(logs map[int]*suite.Process) bool {
	for _, p := range logs {
		if slices.ContainsFunc(p.Calls, func(c suite.Call) bool { return c.NRanks > 1 }) {
			return true
		}
	}
	return false
}
