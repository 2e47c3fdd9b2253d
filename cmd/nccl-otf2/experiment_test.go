// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	testkit.Write(t, path, []byte(text))
}

func TestPathArgument(t *testing.T) {
	dir := t.TempDir()
	at := func(p string) string { return filepath.Join(dir, p) }
	for _, p := range []string{"exp/traces.otf2", "exp/shards/x/shard.json", "shared/run-1/traces.otf2",
		"shared/run-2/traces.otf2",
		"many/run-1/traces.otf2", "many/run-9/traces.otf2", "many/run-10/traces.otf2", "many/run-own/traces.otf2",
		"left/run-1/traces.otf2", "left/run-2/traces.otf2", "left/run-3/traces.otf2", "others/a.otf2", "others/b.otf2",
		"single/run-1/traces.otf2", "scorep/other.otf2", "fresh/shards/x/shard.json", "text/readme.txt"} {
		write(t, at(p), "")
	}
	old := time.Now().Add(-time.Hour)
	testkit.Must(t, os.Chtimes(at("left/run-3/traces.otf2"), old, old)) // of an earlier unify
	for _, c := range []struct{ arg, want, failure string }{
		{"exp", "exp/traces.otf2", ""},
		{"exp/traces.otf2", "exp/traces.otf2", ""},
		{"single", "single/run-1/traces.otf2", ""},
		{"scorep", "scorep/other.otf2", ""},
		{"shared", "shared/run-2/traces.otf2", ""},
		{"many", "many/run-10/traces.otf2", ""},
		{"left", "left/run-2/traces.otf2", ""},
		{"others", "", "holds 2 archives"},
		{"fresh", "", "nccl-otf2 unify"},
		{"text", "", "no archive"},
		{"text/readme.txt", "", "not an anchor"},
		{"nowhere", "", "does not exist"},
	} {
		got, err := anchorPath(at(c.arg))
		switch {
		case c.failure != "":
			testkit.Check(t, err != nil && strings.Contains(err.Error(), c.failure),
				"anchorPath(%s) = %q, %v; want an error with %q", c.arg, got, err, c.failure)
		case err != nil || got != at(c.want):
			t.Errorf("anchorPath(%s) = %q, %v; want %s", c.arg, got, err, c.want)
		}
	}
}

// shardOf lays a shard whose collector holds its lock until release is called.
func shardOf(t *testing.T, dir string, pid int) (release func()) {
	t.Helper()
	start, err := shm.ProcessStart(pid)
	if err != nil {
		start = 1
	}
	host := testkit.Value(os.Hostname())(t)
	text := testkit.Value(json.Marshal(description.Process{Version: description.Version, Host: host,
		BootID: experiment.BootID(), PID: pid, PIDStart: start}))(t)
	write(t, filepath.Join(dir, "shard.json"), string(text))
	f := testkit.Value(os.Create(filepath.Join(dir, "lock")))(t)
	testkit.Must(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	return func() { f.Close() }
}

// endedPID is the id of a process that has ended.
func endedPID(t *testing.T) int {
	t.Helper()
	c := exec.Command("true")
	testkit.Must(t, c.Run())
	return c.Process.Pid
}

func TestWaitForCollectors(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, "shards", name) }
	defer shardOf(t, at("alive"), os.Getpid())() // its process runs: not waited for
	release := shardOf(t, at("late"), endedPID(t))
	shardOf(t, at("crashed"), endedPID(t))() // its collector has died
	defer shardOf(t, at("finished"), endedPID(t))()
	write(t, filepath.Join(at("finished"), "done"), "")

	ended, cancel := context.WithCancel(context.Background())
	cancel()
	late := waitForCollectors(ended, dir, experiment.Await{Over: true}, newProgress())
	testkit.Require(t, len(late) == 1 && late[0] == "late", "late: %v, want [late]", late)
	time.AfterFunc(10*time.Millisecond, release)
	late = waitForCollectors(context.Background(), dir, experiment.Await{Over: true}, newProgress())
	testkit.Require(t, late == nil, "late: %v after the last lock was given back", late)
}

// What a process of another machine's collector does is that machine's to wait for: the process may run for hours yet.
func TestARankDoesNotWaitForOtherMachines(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "shards", "elsewhere")
	defer shardOf(t, at, endedPID(t))()
	var p description.Process
	testkit.Must(t, json.Unmarshal(testkit.Read(t, filepath.Join(at, "shard.json")), &p))
	p.Host, p.BootID = "another", "another"
	text := testkit.Value(json.Marshal(p))(t)
	write(t, filepath.Join(at, "shard.json"), string(text))

	ended, cancel := context.WithCancel(context.Background())
	cancel()
	late := waitForCollectors(ended, dir, experiment.Await{Over: true, Here: true}, newProgress())
	testkit.Check(t, late == nil, "a rank waits for %v", late)
	late = waitForCollectors(ended, dir, experiment.Await{Over: true}, newProgress())
	testkit.Check(t, len(late) == 1, "the job's own `run` waits for %v", late)
}

func TestEnvironmentHoldsEachNameOnce(t *testing.T) {
	e := newEnvironment([]string{"A=1", "B=2", "A=3", "=C:=x", "broken"})
	e.set("B", "x=y")
	testkit.Equal(t, strings.Join(e.list(), " "), "A=3 B=x=y", "strings.Join")
	testkit.Check(t, e.get("A") == "3" && e.get("B") == "x=y" && e.get("AB") == "", "A=%q B=%q", e.get("A"), e.get("B"))
}

func TestArchiveIsDueWhenTheLastProcessIsDone(t *testing.T) {
	part := func(rank, size, commRank int) description.Process {
		return description.Process{Version: description.Version, Launcher: provenance.Launcher{Rank: rank, Size: size},
			Comms: []description.Comm{{ID: 7, NRanks: 2, Rank: commRank}}}
	}
	for _, c := range []struct {
		name    string
		parts   []description.Process
		writing int           // index of one that is not done, -1: none
		archive time.Duration // age against the last done marker; 0: there is none
		want    bool
	}{
		{"all of the launcher's processes", []description.Process{part(0, 2, 0), part(1, 2, 1)}, -1, 0, true},
		{"one of two", []description.Process{part(0, 2, 0)}, -1, 0, false},
		{"one still writes", []description.Process{part(0, 2, 0), part(1, 2, 1)}, 1, 0, false},
		{"without launcher, all ranks", []description.Process{part(-1, -1, 0), part(-1, -1, 1)}, -1, 0, true},
		{"without launcher, a rank is missing", []description.Process{part(-1, -1, 0)}, -1, 0, false},
		{"the archive is there", []description.Process{part(0, 2, 0), part(1, 2, 1)}, -1, time.Second, false},
		{"the archive is old", []description.Process{part(0, 2, 0), part(1, 2, 1)}, -1, -time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, p := range c.parts {
				text := testkit.Value(json.Marshal(p))(t)
				at := filepath.Join(dir, experiment.Folder, string(rune('a'+i)))
				write(t, filepath.Join(at, "shard.json"), string(text))
				lock := testkit.Value(os.Create(filepath.Join(at, "lock")))(t)
				defer lock.Close()
				if i == c.writing {
					testkit.Must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
				} else {
					write(t, filepath.Join(at, "done"), "")
				}
			}
			if c.archive != 0 {
				anchor := filepath.Join(dir, anchorName)
				write(t, anchor, "")
				at := time.Now().Add(c.archive)
				testkit.Must(t, os.Chtimes(anchor, at, at))
			}
			if complete, made := archiveState(dir, false); (complete && !made) != c.want || made && c.archive <= 0 {
				t.Errorf("complete %v, made %v", complete, made)
			}
			_, made := archiveState(dir, true)
			testkit.Check(t, !made, "tables that are not there count as made")
			for _, age := range []time.Duration{-time.Second, time.Second} { // than the archive's
				at := time.Now().Add(c.archive + age)
				write(t, lastTable(dir), "")
				testkit.Must(t, os.Chtimes(lastTable(dir), at, at))
				if _, made := archiveState(dir, true); made != (age > 0 && c.archive > 0 && !c.want && c.writing < 0) {
					t.Errorf("tables that are %v newer than the archive: made %v", age, made)
				}
			}
		})
	}
}
