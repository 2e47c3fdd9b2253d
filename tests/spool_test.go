// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// Unifying while processes still write raw files takes nothing from them: neither what they have written, nor what they
// write afterwards.
func TestUnifyWhileProcessesSpool(t *testing.T) {
	rec := recording(t, "09-straggler-4p")
	dir := filepath.Join(t.TempDir(), "experiment")
	unify := func() *scorep.RunResult {
		t.Helper()
		res := testkit.Value(unifyAll(dir))(t)
		testkit.Require(t, len(res.Problems) == 0 && len(res.Runs) == 1,
			"%d runs, problems %q", len(res.Runs), res.Problems)
		return &res.Runs[0]
	}
	var before uint64
	opt := usual(t, dir, spool, clock(replay.ClockLive))
	opt.Pace = replay.PaceRecorded // so that something is written before it stops
	opt.StopAt = func(k int) int {
		if k != 0 {
			return 0
		}
		return len(rec.Processes[k].Calls) / 2
	}
	opt.Stopped = func(_, pid int) {
		r := unify()
		for net := time.Now().Add(5 * time.Minute); r.Events == 0 && time.Now().Before(net); r = unify() {
			time.Sleep(50 * time.Millisecond) // the others go on
		}
		for range 2 { // the second finds what the first has made
			testkit.Check(t, r.Running != 0 && r.Events != 0 && r.Events >= before,
				"half-way %d processes run, %d events (%d before)", r.Running, r.Events, before)
			before = r.Events
			r = unify()
		}
	}
	res := run(t, rec, opt)
	for range 2 {
		if r := unify(); r.Finished != len(rec.Processes) || r.Events <= before {
			t.Errorf("at the end %d of %d processes have finished; %d events, %d half-way", r.Finished,
				len(rec.Processes), r.Events, before)
		}
	}
	compareCounts(t, dir, res)
	checkSound(t, filepath.Join(dir, "traces.otf2"))
	compareOperations(t, expect(rec), readArchive(t, filepath.Join(dir, "traces.otf2")))
}

// A conversion that was killed, before or after the shard was complete, counts nothing twice.
func TestConversionThatWasKilled(t *testing.T) {
	rec := recording(t, "01-allreduce-2p")
	dir, res := play(t, rec, spool)
	files, err := filepath.Glob(filepath.Join(dir, "shards", "*.spool.done"))
	testkit.Require(t, err == nil && len(files) == len(rec.Processes), "%d raw files: %v", len(files), err)
	for _, file := range files { // as if it was killed before it gave the file its name
		testkit.Must(t, os.Rename(file, strings.TrimSuffix(file, ".done")))
	}
	// And once before the shard was complete.
	done, _ := filepath.Glob(filepath.Join(dir, "shards", "*", "done"))
	testkit.Must(t, os.Remove(done[0]))
	unified(t, dir)
	compareCounts(t, dir, res)
	checkSound(t, filepath.Join(dir, "traces.otf2"))
	compareOperations(t, expect(rec), readArchive(t, filepath.Join(dir, "traces.otf2")))
}
