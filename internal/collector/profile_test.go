// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// callsIn counts the calls and the operations in profiles.
func callsIn(t *testing.T, entries ...experiment.Entry) (calls, operations uint64) {
	t.Helper()
	for _, e := range entries {
		files, _ := filepath.Glob(filepath.Join(e.Path, "*.evt"))
		testkit.Check(t, len(files) == 0, "%s has event files", e.Path)
		a := testkit.Value(profile.Open(experiment.ProfileFile(e.Path)))(t)
		for i := range a.Rows {
			for _, c := range a.Rows[i].Cells {
				switch n := a.Nodes[c.Node]; {
				case n.Kind != profile.Size:
				case a.Nodes[n.Parent].Kind == profile.Call:
					calls += c.Visits
				default:
					operations += c.Visits
				}
			}
		}
	}
	return calls, operations
}

// In profile mode nothing is on disk but what events came to: as much after one flush as after many.
func TestProfileMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	now := monotonic()
	// all calls last equally long, however busy the machine is: other durations are other figures
	a := newApplication(job, 0, func() uint64 {
		now += 1000
		return now
	})
	wait := startRun(t, job, Options{Lookup: environment(
		"NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light", "NCCL_OTF2_MODE=profile", "NCCL_OTF2_CHANNELS=on")})
	sizes := make(map[uint64]int64)
	n := uint64(0)
	for range 40 {
		for range 100 {
			a.allReduce(n)
			n++
		}
		flushAll(t, job)
		info := testkit.Value(os.Stat(experiment.ProfileFile(onlyShard(t, dir).Path)))(t)
		sizes[n] = info.Size()
	}
	first, last := sizes[1000], sizes[n]
	testkit.Check(t, last <= first+first/10, "%d bytes after 1000 operations, %d after %d", first, last, n)
	if calls, operations := callsIn(t, onlyShard(t, dir)); calls != n || operations != n {
		t.Errorf("%d calls, %d operations of %d while the process runs", calls, operations, n)
	}
	process.end()
	testkit.Must(t, wait())
	e := onlyShard(t, dir)
	calls, operations := callsIn(t, e)
	testkit.Check(t, calls == n && operations == n && e.State == experiment.Done && e.Process.IsProfile(),
		"%d calls, %d operations of %d, state %v", calls, operations, n, e.State)
	for _, c := range e.Process.Comms {
		for f, s := range c.Sequences {
			testkit.Check(t, s.Count == n && len(s.Digests) == 0,
				"%s: %d operations, %d digests", f, s.Count, len(s.Digests))
		}
	}
}

// A collector is killed at any moment, again and again: each call is in the profiles once in the end.
func TestProfileSurvivesKills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const kills = 4
	n := killedAgain(t, kills, 1000, 512, "NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light", "NCCL_OTF2_MODE=profile")
	entries := shards(t, dir)
	total := uint64(0)
	for _, e := range entries {
		total += starts(e.Process)
	}
	// The call that a kill falls into may be incomplete.
	if got, _ := callsIn(t, entries...); total != n*perCall || got > n || got < n-kills {
		t.Errorf("%d starts of %d, %d calls of %d in %d shards", total, n*perCall, got, n, len(entries))
	}
}

// liveBy is the collector of a process of two as far as the settings make it, without a recording.
func liveBy(t *testing.T, job *shmtest.Job, dir string, vars ...string) *live {
	t.Helper()
	lookup := environment(append(vars, "WORLD_SIZE=2")...)
	settings := testkit.Value(config.Load(lookup))(t)
	return &live{memory: mapped(t, job), settings: settings, launcher: config.FindLauncher(lookup), experiment: dir}
}

// The collector of the first rank makes profiles while the process runs, if it is asked to.
func TestProfilesOfARunningJob(t *testing.T) {
	for _, c := range []struct {
		rank string
		want bool
	}{{"0", true}, {"1", false}} {
		dir := t.TempDir()
		job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
		newApplication(job, 0, monotonic)
		made, due := 0, make(chan string, 1)
		live := liveBy(t, job, dir, "NCCL_OTF2_MODE=profile", "NCCL_OTF2_PROFILE_INTERVAL=10s", "RANK="+c.rank)
		live.startProfiles(due)
		live.profiles.request(dir)
		testkit.Check(t, len(due) == 0, "a profile was due before its time")
		for range 2 {
			live.profiles.next = time.Now().Add(-time.Second)
			live.profiles.request(dir)
			live.profiles.request(dir) // not again at once
			for len(due) > 0 {
				testkit.Equal(t, <-due, dir, "folder of the profile")
				made++
			}
		}
		testkit.Check(t, c.want == (made == 2) && (c.want || made == 0), "rank %s: %d profiles were due", c.rank, made)
		process.end()
	}
}

// The collector of the first rank has the metrics of the job kept, if it is asked to.
func TestMetricsAreKeptByTheFirstRank(t *testing.T) {
	for _, c := range []struct {
		rank, folder, mode string
		want               bool
	}{{"0", "/metrics", "trace", true}, {"0", "/metrics", "profile", true}, {"1", "/metrics", "trace", false},
		{"0", "", "trace", false}, {"0", "/metrics", "record", false}} {
		job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
		newApplication(job, 0, monotonic)
		live := liveBy(t, job, "/job", "NCCL_OTF2_PROMETHEUS="+c.folder, "NCCL_OTF2_MODE="+c.mode, "RANK="+c.rank)
		kept := 0
		live.startMetrics(func(experiment, folder string) {
			testkit.Check(t, experiment == "/job" && folder == c.folder, "metrics of %s in %s", experiment, folder)
			kept++
		})
		testkit.Check(t, c.want == (kept == 1), "%+v: kept %d times", c, kept)
		process.end()
	}
}

// A profile is on disk a moment before the checkpoint that goes with it. Where the collector dies in between, at
// whatever record: each operation is in a profile, or counted as one that the collector had in memory.
func TestProfileAheadOfItsCheckpoint(t *testing.T) {
	t.Parallel()
	settings := config.RecordedSettings(map[string]string{"EVENTS": "all", "MODE": "profile"})
	settings.Profile = true
	clock := shm.ReadClock(shm.ClockMonotonic)
	records := int((newExchange(t, 0, clock).ticks - clock.Ticks) / pause)
	counted := 0
	for at := 0; at < records; at += fewUnderRace(1, 7) {
		dir, e := t.TempDir(), newExchange(t, 0, clock)
		first := collectBy(t, settings, e.Job, dir)
		first.drainRings(clock.Ticks + uint64(at/2)*pause)
		testkit.Must(t, first.flush())
		first.drainRings(clock.Ticks + uint64(at)*pause)
		testkit.Must(t, first.output.writeAll())
		bury(t, first)
		second := collectBy(t, settings, e.Job, dir)
		second.drainAll()
		testkit.Must(t, second.finish(true))

		died := 0
		for _, n := range second.shard.process.Counts.Lost[loss.WithCollector] {
			died += int(n)
		}
		if died > 0 {
			counted++
		}
		if _, written := callsIn(t, shards(t, dir)...); int(written)+died != 2*exchanges {
			t.Errorf("record %d: %d operations are in profiles and %d are counted as lost, of %d", at, written, died,
				2*exchanges)
		}
	}
	testkit.Check(t, counted != 0, "no operation was in memory anywhere")
}
