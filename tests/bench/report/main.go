// SPDX-License-Identifier: Apache-2.0

// Command report measures how long `nccl-otf2 report` takes for an archive that it makes itself, and how much memory.
//
//	go run ./tests/bench/report                                  100 million events, and a tenth of them
//	go run ./tests/bench/report --events 10                      10 million
//	go run ./tests/bench/report --update docs/performance.md     puts the table into that page
//
// It needs what `make build` makes. What the reports say is held against what the archive was made of.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Aims, for 100 million events on two processors.
const (
	timeAim   = 60 * time.Second
	memoryAim = 1 << 30
)

// section is a part of the report, and how to tell that it has seen everything.
type section struct {
	name, flag string
	seen       func(report map[string]any) float64 // a figure; wanted says which
	wanted     func(s *jobtest.Large) float64
}

func member(report map[string]any, path ...string) any {
	var v any = report
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func figure(v any) float64 {
	f, _ := v.(float64)
	return f
}

// sum adds a field of the objects of a list.
func sum(list any, field string) (total float64) {
	all, _ := list.([]any)
	for _, one := range all {
		if m, ok := one.(map[string]any); ok {
			total += figure(m[field])
		}
	}
	return total
}

var sections = []section{
	{"operations, waits in short", "", func(r map[string]any) float64 { return figure(member(r, "summary", "events")) },
		func(s *jobtest.Large) float64 { return float64(s.Events()) }},
	{"--waits", "--waits", func(r map[string]any) float64 { return figure(member(r, "waits", "collectives")) },
		func(s *jobtest.Large) float64 { return float64(s.Operations - 1) }},
	{"--tally", "--tally", func(r map[string]any) float64 { return sum(member(r, "tally", "groups"), "calls") },
		func(s *jobtest.Large) float64 { return float64(s.Regions()) }},
	{"--matrix", "--matrix", func(r map[string]any) float64 { return sum(member(r, "matrix", "ranks"), "transfers") },
		func(s *jobtest.Large) float64 { return float64(s.Transfers()) }},
}

// outcome is one run of the tool.
type outcome struct {
	Section string  `json:"section"`
	Events  uint64  `json:"events"`
	Wall    float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"`
	RSS     int64   `json:"max_rss"` // bytes
}

// findings are the runs, and where they ran.
type findings struct {
	machine string
	all     []outcome
}

// MarshalJSON writes the runs alone.
func (f *findings) MarshalJSON() ([]byte, error) { return json.Marshal(f.all) }

func main() {
	var (
		millions = flag.Float64("events", 100, "`million` events of the larger archive")
		ranks    = flag.Int("ranks", 8, "`number` of ranks")
		tool     = flag.String("tool", "build/nccl-otf2", "`file` that is measured")
	)
	command := measure.NewCommand("report", "the archives, 5 GB")
	command.Run(func() bool { return *millions > 0 && *ranks >= 2 },
		func(ctx context.Context, dir string) (measure.Findings, error) {
			machine := measure.Machine()
			all, err := measureAll(ctx, dir, *tool, uint64(*millions*1e6), *ranks)
			return &findings{machine, all}, err
		})
}

func measureAll(ctx context.Context, work, tool string, events uint64, ranks int) (all []outcome, err error) {
	for _, n := range []uint64{events / 10, events} {
		s := jobtest.NewLarge(n, ranks)
		dir := filepath.Join(work, fmt.Sprint(n))
		began := time.Now()
		path, err := s.Write(dir)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "%d events made in %.1f s\n", s.Events(), time.Since(began).Seconds())
		for _, sec := range sections {
			o, err := run(ctx, tool, path, s, &sec)
			if err != nil {
				return nil, fmt.Errorf("%s of %d events: %w", sec.name, s.Events(), err)
			}
			fmt.Fprintf(os.Stderr, "%s: %.1f s, %.1f s of processors, %d MiB\n", o.Section, o.Wall, o.CPU, o.RSS>>20)
			all = append(all, o)
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func run(ctx context.Context, tool, archive string, s *jobtest.Large, sec *section) (outcome, error) {
	args := []string{"report", archive, "--format", "json"}
	if sec.flag != "" {
		args = append(args, sec.flag)
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	began := time.Now()
	out, err := cmd.Output()
	wall := time.Since(began)
	if err != nil {
		return outcome{}, err
	}
	var report map[string]any
	if err := json.Unmarshal(out, &report); err != nil {
		return outcome{}, err
	}
	if got, want := sec.seen(report), sec.wanted(s); got != want {
		return outcome{}, fmt.Errorf("the report has seen %.0f, the archive has %.0f", got, want)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return outcome{}, fmt.Errorf("%s does not tell what processes used", runtime.GOOS)
	}
	return outcome{
		Section: sec.name, Events: s.Events(), Wall: wall.Seconds(), RSS: usage.Maxrss << 10,
		CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
	}, nil
}

// Page shows the runs as a table.
func (f *findings) Page() *measure.Page {
	t := measure.Table{Figures: true, Columns: []string{"section", "million events", "time, s", "processors, s",
		"ns of processors / event", "memory, MiB"}}
	for _, o := range f.all {
		t.Rows = append(t.Rows, []string{o.Section, measure.Digits(float64(o.Events) / 1e6), measure.Digits(o.Wall),
			measure.Digits(o.CPU),
			measure.Digits(o.CPU * 1e9 / float64(o.Events)), fmt.Sprint(o.RSS >> 20)})
	}
	heading := fmt.Sprintf(
		"%s. Two processors for the tool. Aims for 100 million events: %.0f s, %d MiB. Where others use the machine "+
			"the time of processors says more: half of it is what two idle ones would take.",
		f.machine, timeAim.Seconds(), memoryAim>>20)
	return &measure.Page{Heading: heading, Tables: []measure.Table{t}}
}
