// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ncclotf2/analysis"
	"ncclotf2/replay"
	"ncclotf2/shard"
	"ncclotf2/tests/scenario"
)

// faultRuns is how many random jobs are played with something killed in the middle.
const faultRuns = 200

// victim is who is killed (SIGKILL) at a random callback.
type victim int

const (
	theJob        victim = iota
	theCollector         // a new one takes over
	both                 // the collector, and a few callbacks later the job
	bothWithFiles        // with the records' memory in /dev/shm
	victims
)

func (v victim) String() string {
	return [victims]string{"job", "collector", "both", "both-shm"}[v]
}

// collectorsOf finds the collectors that work for an experiment directory, by their environment.
func collectorsOf(dir string) (pids []int) {
	wanted := []byte("NCCL_OTF2_DIR=" + dir + "\x00")
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		comm, _ := os.ReadFile(filepath.Join(p, "comm"))
		if string(bytes.TrimSpace(comm)) != "nccl-otf2" {
			continue
		}
		env, _ := os.ReadFile(filepath.Join(p, "environ"))
		if bytes.Contains(append(env, 0), wanted) {
			if pid, err := strconv.Atoi(filepath.Base(p)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// follows tells whether a collector has begun the shard of a process. One that dies before is replaced by a spool file,
// whose last 10 ms are not in any file while the job runs.
func follows(collector, pid int) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", collector))
	for _, fd := range fds {
		lock, err := os.Readlink(fd)
		if err != nil || filepath.Base(lock) != "lock" {
			continue
		}
		if p, err := shard.Read(filepath.Dir(lock)); err == nil && p.PID == pid {
			return true
		}
	}
	return false
}

// awaitNoCollectors waits until all collectors of a directory have ended and let go of their shards.
func awaitNoCollectors(t *testing.T, dir string) {
	t.Helper()
	atWork := func() bool {
		entries, err := shard.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return len(collectorsOf(dir)) > 0 || slices.ContainsFunc(entries, func(e shard.Entry) bool { return e.State == shard.Writing })
	}
	for deadline := time.Now().Add(5 * time.Minute); atWork(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("collectors %v are still at work in %s", collectorsOf(dir), dir)
		}
	}
}

// Whoever dies, and when: what is left is an archive. If only the job dies nothing that it recorded is lost, and if both
// die nothing of what is in shared memory files.
func TestFaults(t *testing.T) {
	var killed atomic.Int64 // collectors
	t.Run("runs", func(t *testing.T) {
		for seed := range uint64(faultRuns) {
			who := victim(seed % uint64(victims))
			t.Run(fmt.Sprintf("%d-%s", seed, who), func(t *testing.T) {
				t.Parallel()
				fault(t, seed, who, &killed)
			})
		}
	})
	// Those of processes that have not initialised a communicator yet are not there.
	if n := killed.Load(); n < faultRuns/4 {
		t.Errorf("only %d collectors were killed in %d runs", n, faultRuns)
	}
}

func fault(t *testing.T, seed uint64, who victim, killed *atomic.Int64) {
	random := rand.New(rand.NewPCG(seed, 7))
	s := scenario.Random(seed, scenario.RandomOptions{Hazards: true})
	rec, err := s.Load(filepath.Join(t.TempDir(), "recording"))
	if err != nil {
		t.Fatal(err)
	}
	least := len(rec.Processes[0].Calls)
	for _, p := range rec.Processes {
		least = min(least, len(p.Calls))
	}
	at := 1 + random.IntN(least)
	dir := filepath.Join(t.TempDir(), "experiment")
	opt := usual(t, dir, clock(replay.ClockLive), env("NCCL_OTF2_MEMORY=16M"))
	kill := func(_, pid int) {
		for _, c := range collectorsOf(dir) {
			if follows(c, pid) && syscall.Kill(c, syscall.SIGKILL) == nil {
				killed.Add(1)
			}
		}
	}
	switch who {
	case theJob:
		opt.Die = strconv.Itoa(at)
		opt.Clock = replay.ClockRecorded // one call at a time: other threads count none that they have not made
	case theCollector:
		opt.StopAt, opt.Stopped = func(int) int { return at }, kill
	case both, bothWithFiles:
		opt.StopAt, opt.Stopped = func(int) int { return at }, kill
		opt.Die = strconv.Itoa(at + 1 + random.IntN(20))
		if who == bothWithFiles {
			opt.Clock = replay.ClockRecorded // for the same reason
			opt.Env = append(opt.Env, "NCCL_OTF2_RING=shm")
		}
	}
	res := run(t, rec, opt)
	awaitNoCollectors(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "shards")); os.IsNotExist(err) && who != bothWithFiles {
		return // killed before anything was
	}
	checkSound(t, unified(t, dir), analysis.Note) // notes are what the archive says of itself: unfinished, incomplete
	if who != both {
		nothingLost(t, dir, res)
	}
	if left, _ := filepath.Glob(fmt.Sprintf("/dev/shm/nccl-otf2-%d-%d-*", os.Geteuid(), res.Processes[0].PID)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// nothingLost holds what the shards counted against what the hosts delivered; several shards may be one process's.
func nothingLost(t *testing.T, dir string, res *replay.Result) {
	t.Helper()
	o := &outcome{t: t, dir: dir}
	o.readShards()
	for _, r := range res.Processes {
		starts, stops := map[string]int{}, map[string]int{}
		for _, p := range o.shards {
			if p.PID != r.PID {
				continue
			}
			for typ, n := range p.Counts.Starts {
				starts[typ] += int(n)
			}
			for typ, n := range p.Counts.Stops {
				stops[typ] += int(n)
			}
		}
		d := r.Report.Delivered
		for typ, n := range d.Starts {
			// A process that kills itself counts first; its other threads, if there are, go on until they are dead.
			if starts[typ] < n {
				t.Errorf("process %d: %d starts of %s in the shards, %d were made", r.Rank, starts[typ], typ, n)
			}
		}
		for typ, n := range d.Stops {
			if stops[typ] < n {
				t.Errorf("process %d: %d stops of %s in the shards, %d were made", r.Rank, stops[typ], typ, n)
			}
		}
	}
}
