// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/fakegpu"
)

// builtFile is a file that `make build` makes.
func builtFile(t *testing.T, name string) string {
	t.Helper()
	path := testkit.Value(filepath.Abs(filepath.Join("..", "build", name)))(t)
	_, err := os.Stat(path)
	testkit.Require(t, err == nil, "%s is not built: run `make build` first", name)
	return path
}

func recording(t *testing.T, name string) *replay.Recording {
	t.Helper()
	return testkit.Value(replay.Load(filepath.Join("../testdata/nccl-callbacks", name)))(t)
}

// recordings are those of the names, all if there are none.
func recordings(t *testing.T, names ...string) (out []*replay.Recording) {
	t.Helper()
	if len(names) == 0 {
		files, err := filepath.Glob("../testdata/nccl-callbacks/*/run.json")
		testkit.Require(t, err == nil && len(files) == 13, "%d recordings found, want 13: %v", len(files), err)
		for _, f := range files {
			names = append(names, filepath.Base(filepath.Dir(f)))
		}
	}
	for _, name := range names {
		out = append(out, recording(t, name))
	}
	return out
}

// kernelRecordings are those of which it is known what the GPU ran.
func kernelRecordings(t *testing.T) []*replay.Recording {
	t.Helper()
	return slices.DeleteFunc(recordings(t), func(rec *replay.Recording) bool {
		return len(rec.Processes[0].Kernels) == 0
	})
}

// change is something of a play that is not as usual.
type change func(*replay.Options)

// env adds variables to the hosts' environment; of a variable that is there already the last one counts.
func env(vars ...string) change {
	return func(o *replay.Options) { o.Env = append(o.Env, vars...) }
}

func clock(c replay.Clock) change { return func(o *replay.Options) { o.Clock = c } }

func spool(o *replay.Options) { o.Spool = true }

func kernels(o *replay.Options) {
	o.GPU = &replay.GPU{Library: "../build/fakecupti/libcupti.so.12", Program: fakegpu.Program}
}

// limited starts the hosts under limits of the shell's ulimit, "" for none.
func limited(limits string) change {
	return func(o *replay.Options) {
		if limits == "" {
			return
		}
		host, err := filepath.Abs(o.Host)
		if err != nil {
			panic(err)
		}
		o.Host = filepath.Join(filepath.Dir(strings.TrimPrefix(o.Env[0], "NCCL_OTF2_DIR=")), "limited-host")
		if err := os.WriteFile(o.Host, []byte("#!/bin/sh\nulimit "+limits+" && exec "+host+" \"$@\"\n"),
			0o777); err != nil {
			panic(err)
		}
	}
}

// settings are the plugin's in nearly all tests: everything is recorded into the directory, and not yet unified.
func settings(dir string) []string {
	return []string{"NCCL_OTF2_DIR=" + dir, "NCCL_OTF2_EVENTS=all", "NCCL_OTF2_UNIFY=off", "NCCL_OTF2_START_LIMIT=60"}
}

// usual is how recordings are played: all calls in the recorded order, with our plugin.
func usual(t *testing.T, dir string, changes ...change) replay.Options {
	t.Helper()
	opt := replay.Options{
		Host: builtFile(t, replay.HostFile), Plugin: builtFile(t, "libnccl-profiler-otf2.so"),
		Clock: replay.ClockRecorded, Env: settings(dir),
	}
	for _, c := range changes {
		c(&opt)
	}
	return opt
}

// run plays a recording in host processes, which must end as they are to.
func run(t *testing.T, rec *replay.Recording, opt replay.Options) *replay.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	res, err := replay.Run(ctx, rec, opt)
	if err == nil {
		err = res.Err()
	}
	testkit.Must(t, err)
	return res
}

// runQuietly is run where the plugin has nothing to say.
func runQuietly(t *testing.T, rec *replay.Recording, opt replay.Options) *replay.Result {
	t.Helper()
	res := run(t, rec, opt)
	for i := range res.Processes {
		s := res.Processes[i].Stderr
		testkit.Check(t, !strings.Contains(s, "NCCL_OTF2"), "the plugin had to say something: %s", s)
	}
	return res
}

// play plays a recording in host processes and unifies what they left, returning the directory.
func play(t *testing.T, rec *replay.Recording, changes ...change) (dir string, res *replay.Result) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "experiment")
	opt := usual(t, dir, changes...)
	res = runQuietly(t, rec, opt)
	if !opt.Spool {
		waitDone(t, dir, len(rec.Processes))
	}
	unified(t, dir)
	return dir, res
}

// waitDone waits for the collectors, which outlive their processes while they have work.
func waitDone(t *testing.T, dir string, processes int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		done, _ := filepath.Glob(filepath.Join(dir, "shards", "*", "done"))
		if len(done) == processes {
			return
		}
		testkit.Require(t, !time.Now().After(deadline),
			"%d of %d collectors have finished in %s", len(done), processes, dir)
		time.Sleep(10 * time.Millisecond)
	}
}

// unified makes the archive of what is there, as `nccl-otf2 unify` does.
func unified(t *testing.T, dir string) (anchor string) {
	t.Helper()
	testkit.Value(collector.Salvage(dir))(t)
	testkit.Value(unifyAll(dir))(t)
	return filepath.Join(dir, "traces.otf2")
}

// checkSound wants an archive to be without findings, but for those of the severities that may be and for what unify
// has said (SEQUENCES_DIFFER, which tests ask for where it matters), and read by the reference tool without a warning.
func checkSound(t *testing.T, anchor string, mayBe ...check.Severity) {
	t.Helper()
	checked := testkit.Value(check.Archive(anchor, nil))(t)
	for _, f := range checked.Findings {
		said := f.Severity == check.Note && strings.HasPrefix(f.Text, "not compared, as members differ: ")
		testkit.Check(t, said || slices.Contains(mayBe, f.Severity), "check: %v", f)
	}
	otf2Print(t, anchor)
}

// shardsOf are the shards of an experiment directory.
func shardsOf(t *testing.T, dir string) (out []*description.Process) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "shards", "*", "shard.json"))
	for _, f := range files {
		p := testkit.Value(experiment.Read(filepath.Dir(f)))(t)
		out = append(out, p)
	}
	return out
}

// shardsByProcess are those of an experiment directory, by process id.
func shardsByProcess(t *testing.T, dir string) map[int]*description.Process {
	t.Helper()
	byPID := make(map[int]*description.Process)
	for _, p := range shardsOf(t, dir) {
		byPID[p.PID] = p
	}
	return byPID
}
