// SPDX-License-Identifier: Apache-2.0

// Package tests holds what is tested from outside: the plugin in host processes that behave as NCCL
// does, the collector, unify and the archive, held against recordings of real NCCL runs and read by
// the reference tools.
package tests

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// way is one way of playing a recording.
type way struct {
	name    string
	changes []change
}

// ways are all ways a recording is played: all at once with both clocks, and spread over some flushes with the live one
// (tests of kernels spread with the recorded clock); through a collector, through spool files, and with the host
// processes killed after their last callback. In real time it is played once, through a collector: else it is spread by
// a fourth of the recorded distances, which is what the waiting is for.
func ways() []way {
	var out []way
	for _, c := range []struct {
		clock replay.Clock
		pace  replay.Pace
	}{{replay.ClockRecorded, replay.PaceFast}, {replay.ClockLive, replay.PaceFast},
		{replay.ClockLive, replay.PaceRecorded}} {
		for _, mode := range []struct {
			name string
			set  change
		}{
			{"collector", func(*replay.Options) {}},
			{"spool", spool},
			{"killed", func(o *replay.Options) { o.Die = replay.DieAfterLast }},
		} {
			changes := []change{clock(c.clock), mode.set, func(o *replay.Options) { o.Pace = c.pace }}
			if c.pace == replay.PaceRecorded && mode.name != "collector" {
				changes = append(changes, env("REPLAY_HOST_FASTER=4"))
			}
			out = append(out, way{fmt.Sprintf("%s-%s-%s", c.clock, c.pace, mode.name), changes})
		}
	}
	return out
}

// Every recording, played every way, gives an archive that the reference tools read without a
// warning and that shows every operation exactly once, as recorded.
func TestRecordings(t *testing.T) {
	t.Parallel()
	for _, rec := range recordings(t) {
		want := expect(rec)
		for _, w := range ways() {
			t.Run(rec.Name+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				dir, res := play(t, rec, w.changes...)
				anchor := filepath.Join(dir, "traces.otf2")
				var mayBe []check.Severity
				if strings.HasSuffix(w.name, "-killed") {
					mayBe = append(mayBe, check.Note) // which says so
				}
				checkSound(t, anchor, mayBe...)
				compareCounts(t, dir, res)
				got := readArchive(t, anchor)
				compareOperations(t, want, got)
			})
		}
	}
}

// Whatever is recorded, the archive is sound and says what was delivered.
func TestSelectionsOfEvents(t *testing.T) {
	t.Parallel()
	for _, rec := range recordings(t, "02-allcoll-4p-net", "03-onethread-4r-groups", "07-twocomms-streams",
		"10-graph-3p") {
		for _, events := range []string{"light", "gpu", "net", "net-sums", "all,net-sums", "GroupApi", "CollApi,P2pApi",
			"Coll", "P2p,Group", "KernelCh", "KernelLaunch", "ProxyOp", "ProxyStep", "ProxyCtrl", "light,NetPlugin"} {
			t.Run(rec.Name+"/"+events, func(t *testing.T) {
				t.Parallel()
				dir, res := play(t, rec, clock(replay.ClockLive), env("NCCL_OTF2_EVENTS="+events))
				checkSound(t, filepath.Join(dir, "traces.otf2"))
				compareCounts(t, dir, res)
			})
		}
	}
}

// compareCounts holds the counts of the shards against what the hosts delivered.
func compareCounts(t *testing.T, dir string, res *replay.Result) {
	t.Helper()
	n := len(shardsOf(t, dir))
	testkit.Require(t, n == len(res.Processes), "%d shards, want one for each of %d processes", n, len(res.Processes))
	byPID := shardsByProcess(t, dir)
	for _, r := range res.Processes {
		p := byPID[r.PID]
		testkit.Require(t, p != nil, "no shard of process %d", r.PID)
		d := r.Report.Delivered
		for _, c := range []struct {
			what      string
			delivered map[string]int
			recorded  map[string]uint64
		}{
			{"starts", d.Starts, p.Counts.Starts},
			{"stops", d.Stops, p.Counts.Stops},
			{"states", d.States, p.Counts.States},
		} {
			want := make(map[string]uint64)
			for k, n := range c.delivered {
				want[k] = uint64(n)
			}
			testkit.Equal(t, cmp.Diff(want, c.recorded, cmpopts.EquateEmpty()), "",
				"process %d: %s delivered (−) and recorded (+):\n", r.Rank, c.what)
		}
		for reason, n := range p.Counts.Lost {
			testkit.Check(t, len(n) == 0, "process %d: lost for %s: %v", r.Rank, reason, n)
		}
	}
}

// communicatorsByKey finds the archive's communicator of each recorded one: by name and size, those
// of one name in the order in which their members appear in the archive.
func communicatorsByKey(t *testing.T, want *expected, got *archive) map[string]*communicator {
	t.Helper()
	out := make(map[string]*communicator)
	for key, n := range want.nranks {
		if n < 2 {
			continue
		}
		name := want.names[key]
		if name == "" {
			name = fmt.Sprintf("ncclComm %s", strings.SplitN(key, "/", 2)[0])
		}
		for _, c := range got.comms {
			if c.Name == name && len(c.Members) == n {
				testkit.Check(t, out[key] == nil, "communicator %q is defined more than once", name)
				out[key] = c
			}
		}
		testkit.Check(t, out[key] != nil, "communicator %q of %d ranks is not in the archive", name, n)
	}
	found := 0
	for _, c := range got.comms {
		if !isNetwork(c) {
			found++
		}
	}
	testkit.Check(t, found == len(out), "the archive has %d communicators, want %d", found, len(out))
	return out
}

func compareOperations(t *testing.T, want *expected, got *archive) {
	t.Helper()
	shown := 0
	for key, c := range communicatorsByKey(t, want, got) {
		for rank, loc := range c.Members {
			ops, err := got.operations(loc)
			if err != nil {
				t.Errorf("%s rank %d: %v", c.Name, rank, err)
				continue
			}
			if l := got.locations[loc]; !strings.HasSuffix(l.Name, fmt.Sprintf(" rank %d", rank)) {
				t.Errorf("rank %d of %s is location %q", rank, c.Name, l.Name)
			}
			shown++
			expected := want.operations[member{key, rank}]
			for _, k := range slices.Sorted(maps.Keys(expected)) {
				if diff := cmp.Diff(expected[k], ops[k], cmpopts.IgnoreUnexported(operation{})); diff != "" {
					t.Errorf("%s rank %d, %s: recording (−) and archive (+):\n%s", c.Name, rank, k, diff)
				}
			}
			for k := range ops {
				if expected[k] == nil {
					t.Errorf("%s rank %d: %d operations %s that were not recorded", c.Name, rank, len(ops[k]), k)
				}
			}
		}
	}
	testkit.Check(t, shown != 0, "no communicator rank was compared")
}
