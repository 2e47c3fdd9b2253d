// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Aims for a report of 100 million events on two processors: seconds, MiB.
const timeAim, memoryAim = 60, 1024

// reportText is what a report says it has seen.
type reportText struct {
	Summary struct{ Events uint64 }
	Waits   struct{ Collectives uint64 }
	Tally   struct{ Groups []struct{ Calls uint64 } }
	Matrix  struct{ Ranks []struct{ Transfers uint64 } }
}

// sections are the parts of the report, and how to tell that they have seen everything.
var sections = []struct {
	name string
	args []string
	seen func(*reportText) uint64
	made func(*jobtest.Large) uint64
}{
	{"operations, waits in short", nil, func(r *reportText) uint64 { return r.Summary.Events },
		func(s *jobtest.Large) uint64 { return s.Events() }},
	{"--waits", []string{"--waits"}, func(r *reportText) uint64 { return r.Waits.Collectives },
		func(s *jobtest.Large) uint64 { return s.Operations - 1 }},
	{"--tally", []string{"--tally"}, func(r *reportText) (n uint64) {
		for _, g := range r.Tally.Groups {
			n += g.Calls
		}
		return n
	}, func(s *jobtest.Large) uint64 { return s.Regions() }},
	{"--matrix", []string{"--matrix"}, func(r *reportText) (n uint64) {
		for _, rank := range r.Matrix.Ranks {
			n += rank.Transfers
		}
		return n
	}, func(s *jobtest.Large) uint64 { return s.Transfers() }},
}

// prepareReport measures how long `nccl-otf2 report` takes for archives that are made here, and how much memory. What
// the reports say is held against what the archives were made of.
func prepareReport(b *bench, flags *flag.FlagSet) func(context.Context) (*Page, error) {
	b.rounds, b.scale = 1, 1
	millions := flags.Float64("events", 100, "`million` events of the larger archive")
	ranks := flags.Int("ranks", 8, "`number` of ranks")
	return func(ctx context.Context) (*Page, error) { return b.report(ctx, uint64(*millions*1e6), *ranks) }
}

func (b *bench) report(ctx context.Context, events uint64, ranks int) (*Page, error) {
	t := &Table{Figures: true, Columns: []string{"section", "million events", "time, s", "processors, s",
		"ns of processors / event", "memory, MiB"}}
	page := &Page{Tables: []*Table{t}, Heading: fmt.Sprintf(
		"%s. Two processors for the tool. Aims for 100 million events: %d s, %d MiB. Where others use the machine "+
			"the time of processors says more: half of it is what two idle ones would take.", machine(), timeAim,
		memoryAim)}
	for _, n := range []uint64{events / 10, events} {
		s := jobtest.NewLarge(n, ranks)
		dir := b.newRun()
		path, err := s.Write(dir)
		if err != nil {
			return nil, err
		}
		for _, section := range sections {
			say("%s of %d events", section.name, s.Events())
			var out bytes.Buffer
			took, err := b.runTool(ctx, &out, append([]string{"report", path, "--format", "json"}, section.args...)...)
			if err != nil {
				return nil, err
			}
			var report reportText
			if err := json.Unmarshal(out.Bytes(), &report); err != nil {
				return nil, err
			}
			if got, want := section.seen(&report), section.made(s); got != want {
				return nil, fmt.Errorf("%s has seen %d, the archive has %d", section.name, got, want)
			}
			t.Rows = append(t.Rows, []string{section.name, digits(float64(s.Events()) / 1e6),
				digits(took.wall.Seconds()), digits(took.cpu.Seconds()),
				digits(float64(took.cpu.Nanoseconds()) / float64(s.Events())), fmt.Sprint(took.rss >> 20)})
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// taken is what a program took.
type taken struct {
	wall, cpu time.Duration
	rss       int64 // the most, bytes
}

// tool is a run of nccl-otf2 that uses two processors.
func (b *bench) tool(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(b.build, "nccl-otf2"), args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOMAXPROCS=2"), os.Stderr
	return cmd
}

func (b *bench) runTool(ctx context.Context, out io.Writer, args ...string) (taken, error) {
	cmd := b.tool(ctx, args...)
	cmd.Stdout = out
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return taken{}, fmt.Errorf("nccl-otf2 %s: %w", args[0], err)
	}
	t := taken{wall: time.Since(began), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		t.rss = usage.Maxrss << 10
	}
	return t, nil
}
