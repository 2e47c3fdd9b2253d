// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ncclotf2/shard"
	"ncclotf2/tests/realnccl/suite"
)

var (
	realBeds     = flag.String("beds", "", "run programs inside the real NCCL of these `folders` (separated by colons)")
	realPrograms = flag.String("programs", "", "only those whose GROUP/NAME matches `REGEXP`")
	realPresets  = flag.String("presets", "light,gpu,net,all", "with our plugin, recording what these `settings` of NCCL_OTF2_EVENTS (separated by commas, names by +) say")
	realLimit    = flag.Duration("limit", 0, "of time for each run, in place of the program's own")
	realShort    = flag.Bool("realshort", false, "only the programs of the short form")
)

// Without a plugin, and with one that does nothing, programs show what NCCL does by itself.
const (
	withoutPlugin = "none"
	emptyPlugin   = "empty"
)

// cells are what became of programs, by how they were run.
type cells struct {
	mu  sync.Mutex
	all map[string]map[string]string // by program and setting
}

func (c *cells) set(program, setting, says string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[program] == nil {
		c.all[program] = make(map[string]string)
	}
	c.all[program][setting] = says
}

// Every program inside the real NCCL ends with our plugin as it does without one, whatever is recorded; the archive then
// has what was called, at the times at which it ran.
func TestRealNCCL(t *testing.T) {
	if *realBeds == "" {
		t.Skip("NOT CHECKED here: `make real-nccl` runs programs inside the real NCCL")
	}
	suite.Limit = *realLimit
	wanted, err := regexp.Compile(*realPrograms)
	if err != nil {
		t.Fatal(err)
	}
	for dir := range strings.SplitSeq(*realBeds, ":") {
		bed, err := suite.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		results := &cells{all: make(map[string]map[string]string)}
		t.Run(bed.Release, func(t *testing.T) {
			for i := range suite.Programs {
				p := &suite.Programs[i]
				if (p.Short || !*realShort) && wanted.MatchString(p.FullName()) {
					t.Run(p.FullName(), func(t *testing.T) {
						t.Parallel()
						runProgram(t, bed, p, results)
					})
				}
			}
		})
		t.Log(results.text())
	}
}

func (c *cells) text() string {
	var b strings.Builder
	for _, p := range suite.Programs {
		if row := c.all[p.FullName()]; row != nil {
			fmt.Fprintf(&b, "%-50s", p.FullName())
			for _, s := range realSettings() {
				fmt.Fprintf(&b, " %s=%s", s, row[s])
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func realSettings() []string {
	return append([]string{withoutPlugin, emptyPlugin}, strings.Split(*realPresets, ",")...)
}

// runProgram runs a program in all ways.
func runProgram(t *testing.T, bed *suite.Bed, p *suite.Program, results *cells) {
	var base *suite.Result
	for _, setting := range realSettings() {
		t.Run(setting, func(t *testing.T) {
			r := &realRun{t: t, bed: bed, program: p, setting: setting, dir: t.TempDir()}
			r.play()
			says := r.result.Says()
			if base == nil {
				base = r.result
			}
			switch {
			case setting == emptyPlugin: // what it changes is not ours
			case r.result.Hung && !base.Hung:
				t.Errorf("hangs, and does not without a plugin:\n%s", r.where())
			case says != base.Says():
				t.Errorf("ends with %q, without a plugin with %q:\n%s", says, base.Says(), tail(r.result.Output))
			case setting == withoutPlugin && says != p.Ends():
				t.Errorf("by itself ends with %q, should end with %q:\n%s", says, p.Ends(), tail(r.result.Output))
			case !r.ours():
			default:
				r.check()
				if t.Failed() {
					says = "archive"
				}
			}
			results.set(p.FullName(), setting, says)
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
	setting string
	dir     string
	result  *suite.Result
}

func (r *realRun) ours() bool { return r.setting != withoutPlugin && r.setting != emptyPlugin }

func (r *realRun) logs() string       { return filepath.Join(r.dir, "logs") }
func (r *realRun) experiment() string { return filepath.Join(r.dir, "experiment") }

func (r *realRun) play() {
	var env []string
	switch r.setting {
	case withoutPlugin:
		env = []string{"NCCL_PROFILER_PLUGIN=none"}
	case emptyPlugin:
		env = []string{"NCCL_PROFILER_PLUGIN=" + builtFile(r.t, "gpu/libnccl-profiler-empty.so")}
	default:
		env = append(settings(r.experiment()), "NCCL_PROFILER_PLUGIN="+builtFile(r.t, "libnccl-profiler-otf2.so"),
			"NCCL_OTF2_EVENTS="+strings.ReplaceAll(r.setting, "+", ","))
	}
	var err error
	if r.result, err = r.bed.Run(context.Background(), r.program, r.logs(), env...); err != nil {
		r.t.Fatal(err)
	}
}

// where says what each process had called last.
func (r *realRun) where() string {
	logs, err := suite.Logs(r.logs())
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "release %s, program %s, recording %s: %s\n", r.bed.Release, r.program.FullName(), r.setting, r.program.Text)
	for pid, p := range logs {
		fmt.Fprintf(&b, "process %d has made %d calls, %d kernels have ended", pid, len(p.Calls), len(p.Kernels))
		if n := len(p.Calls); n > 0 {
			last := p.Calls[n-1]
			fmt.Fprintf(&b, "; the last call: %s of %d elements, rank %d, communicator %d", last.Op, last.Count, last.CommRank, last.Comm)
		}
		b.WriteByte('\n')
	}
	return b.String() + tail(r.result.Output)
}

// collected waits until nobody works on the shards any more.
func (r *realRun) collected() {
	deadline := time.Now().Add(30 * time.Second)
	for {
		entries, err := shard.List(r.experiment())
		if err != nil && !os.IsNotExist(err) {
			r.t.Fatal(err)
		}
		working := slices.ContainsFunc(entries, func(e shard.Entry) bool { return e.State == shard.Writing || e.State == shard.Starting })
		if !working {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("collectors still work in %s", r.experiment())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// check looks at what the plugin left.
func (r *realRun) check() {
	t := r.t
	r.collected()
	logs, err := suite.Logs(r.logs())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.experiment()); err != nil && !anyReported(logs) {
		return // nothing was called of which NCCL tells anything
	}
	anchor := unified(t, r.experiment())
	checkSound(t, anchor)
	got := readArchive(t, anchor)
	rows := compareCalls(t, logs, r.program, got)
	timesAgainstTruth(t, logs, rows, shardsOf(t, r.experiment()))
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
