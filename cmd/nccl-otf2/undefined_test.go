// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2test"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// runCaptured gives what a command writes to standard output and to standard error, and its exit code.
func runCaptured(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	files, folder := [2]*os.File{}, t.TempDir()
	for i := range files {
		files[i] = testkit.Value(os.CreateTemp(folder, ""))(t)
	}
	out, errs := os.Stdout, os.Stderr
	defer func() { os.Stdout, os.Stderr = out, errs }()
	os.Stdout, os.Stderr = files[0], files[1]
	code = Main(args)
	text := func(f *os.File) string {
		defer f.Close()
		testkit.Value(f.Seek(0, io.SeekStart))(t)
		b := testkit.Value(io.ReadAll(f))(t)
		return string(b)
	}
	return text(files[0]), text(files[1]), code
}

// readers are the commands that read an archive, by what they make of it. Each writes into the folder out, if at all.
func readers(anchor, out string) [][]string {
	at := func(name string) string { return filepath.Join(out, name) }
	return [][]string{
		{"report", anchor},
		{"report", "--format", "json", anchor},
		{"report", "--waits", anchor},
		{"timeline", anchor, "--output", at("timeline.html")},
		{"profile", anchor, "--output", at("profile.cubex")},
		{"view", "--simple", anchor, "--output", at("simple")},
		{"view", "--scalasca", anchor, "--output", at("scalasca")},
		{"export", "--perfetto", anchor, "--output", at("run.pftrace")},
		{"export", "--jsonl", anchor, "--output", at("jsonl")},
		{"export", "--parquet", anchor, "--output", at("parquet")},
		{"export", "--prometheus", anchor, "--output", at("metrics.prom")},
		{"export", "--chakra", anchor, "--output", at("chakra")},
		{"export", "--program", anchor, "--output", at("program.txt")},
		{"check", anchor},
		{"diff", anchor, anchor},
		{"print", "-A", anchor},
	}
}

// manifold is an archive of two processes with all that this project's archives have.
func manifold(t *testing.T) (anchor string) {
	const t0, us = shardtest.Epoch + 1_000_000, 1000
	return jobtest.Make(t, 2, 1, func(r int, p *shardtest.Process) {
		world := p.Comm(description.Comm{ID: 7, Name: "world", NRanks: 2, Rank: r, InitTime: t0})
		p.Call("ncclAllReduce", t0+100*us, t0+105*us)
		p.AllReduce(world, t0+uint64(110+40*r)*us, t0+165*us, 1<<20)
		p.Broadcast(world, 1, t0+210*us, t0+230*us, 200, "enqueue")
		if r == 0 {
			p.Send(world, 1, t0+300*us, t0+310*us, 4096)
		} else {
			p.Recv(world, 0, t0+295*us, t0+312*us, 4096)
		}
		p.Network(world)
		p.Put(world, (r+1)%2, t0+560*us, t0+565*us, 1000)
		p.Arrival(world, t0+566*us, t0+575*us)
		row, power := p.GPUMetrics(0, shardtest.Power)
		p.Measure(row, power, t0+50*us, 300_000)
		p.Shard.Markers = append(p.Shard.Markers,
			description.Marker{Time: t0 + 120*us, Severity: otf2.MarkerSeverityHigh, Category: "c", Text: "t",
				Location: -1})
		p.Destroy(world, t0+700*us)
	})
}

// Whatever an archive does not define of what it refers to: every command answers, or says in a line what is wrong.
func TestUndefinedDefinitions(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // thousands of small commands
	said := func(t *testing.T, what string, args []string) {
		t.Helper()
		defer func() {
			p := recover()
			testkit.Check(t, p == nil, "%s: %q: %v", what, args, p)
		}()
		out, errs, code := runCaptured(t, args...)
		if code != exitDone && code != exitInput || code == exitInput && strings.TrimSpace(out+errs) == "" {
			t.Errorf("%s: %q ends with exit code %d and says %q", what, args, code, out+errs)
		}
	}
	anchors := []string{manifold(t), "../../otf2/testdata/all-defs/alldefs.otf2"}
	for _, anchor := range anchors {
		otf2test.EachUndefined(t, anchor, func(t *testing.T, what, anchor string) {
			t.Run(what, func(t *testing.T) { // whose files go with it
				for _, args := range readers(anchor, t.TempDir()) {
					said(t, what, args)
				}
			})
		})
	}
}
