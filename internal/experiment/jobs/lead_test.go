// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// sight is a process as its machine saw it: in which job it was, where, with which rank of which communicators, and
// when by a good clock, in s.
type sight struct {
	job, host  string
	rank, size int
	begin, end float64
	comms      []uint64
}

// seenBy are processes with the times that their hosts' clocks showed, by how much these lead, in s.
func seenBy(all []sight, leads map[string]float64) (parts []*Process) {
	const epoch = 1_760_000_000_000_000_000
	for i, s := range all {
		at := func(t float64) uint64 { return uint64(int64(epoch) + int64((t+leads[s.host])*1e9)) }
		p := &description.Process{
			UUID: fmt.Sprintf("%x", 7*i%13), Host: s.host, BootID: "boot of " + s.host, PID: 100 + i,
			PIDStart: uint64(100*s.begin) + uint64(i), Tag: uint16(i + 1),
			Executable: s.job, Launcher: provenance.Launcher{Rank: -1, Size: -1},
			Clock:     provenance.Clock{Source: "tsc", AnchorRaw: 5, AnchorReal: at(-1000)},
			FirstTime: at(s.begin), LastTime: at(s.end), End: &description.End{Called: true},
		}
		p.Clock.AnchorRaw = 1e12 // all of a boot by one clock
		for k, id := range s.comms {
			begin := s.begin + float64(k)*0.01
			p.Comms = append(p.Comms, description.Comm{
				ID: id, NRanks: s.size, Rank: s.rank, GPU: -1, Location: -1, InitTime: at(begin), FinalTime: at(s.end),
				Sequences: map[string]sequence.Sequence{"AllReduce": {Count: uint64(10 * (s.end - s.begin))}},
			})
		}
		parts = append(parts, &Process{Shard: p, State: Finished, Life: life(p)})
	}
	return parts
}

// job is one on two hosts, of two processes each.
func job(name string, begin, end float64, comms ...uint64) (all []sight) {
	for rank := range 4 {
		all = append(all, sight{name, []string{"a", "b"}[rank/2], rank, 4, begin + float64(rank)*0.02, end, comms})
	}
	return all
}

// withoutSight leaves out what a host saw of a job.
func withoutSight(all []sight, name, host string) []sight {
	return slices.DeleteFunc(all, func(s sight) bool { return s.job == name && s.host == host })
}

// Which processes are a job does not depend on what the clocks of their hosts say: that these have a communicator in
// common does. Jobs that have communicators of one id are told apart by their ranks, and by when these lived, as far as
// a clock's lead can be found out.
func TestJobsWhateverTheClocksSay(t *testing.T) {
	again := func(second float64) []sight {
		return slices.Concat(job("one", 0, 3, 7), job("two", second, second+3.2, 7))
	}
	for _, lead := range []float64{0, 0.4, 2, 30, -30, 3600, -3600, 86400 * 365, -1e9} {
		for _, tc := range []struct {
			name string
			all  []sight
			want string
		}{
			{"one job", job("one", 0, 3, 7), "one×4"},
			{"with several communicators", job("one", 0, 3, 7, 8, 9), "one×4"},
			{"that was played twice", again(100), "one×4 two×4"},
			{"at once", again(3.1), "one×4 two×4"},
			{"as far apart as the clocks", again(30), "one×4 two×4"},
			{"three times", slices.Concat(again(40), job("three", 200, 203, 7)), "one×4 two×4 three×4"},
			{"restarted with other communicators", slices.Concat(job("one", 0, 3, 7, 8), job("two", 5, 8, 17, 18)),
				"one×4 two×4"},
			{"and played twice", slices.Concat(job("one", 0, 3, 7), job("two", 5, 9, 8), job("three", 100, 103, 7)),
				"one×4 two×4 three×4"},
			{"a host of the second one is missing", withoutSight(again(100), "two", "b"), "one×4 two×2"},
			{"a host of the first one is missing", withoutSight(again(100), "one", "b"), "one×2 two×4"},
			{"other hosts", slices.Concat(job("one", 0, 3, 7),
				[]sight{{"two", "c", 0, 4, 50, 53, []uint64{7}}, {"two", "c", 1, 4, 50, 53, []uint64{7}}}),
				"one×4 two×2"},
		} {
			t.Run(fmt.Sprintf("%s, %v s", tc.name, lead), func(t *testing.T) {
				runs := testkit.Value(Separate(seenBy(tc.all, map[string]float64{"b": lead, "c": -lead})))(t)
				var got []string
				for _, r := range runs {
					count := make(map[string]int)
					for _, p := range r.Processes {
						count[p.Shard.Executable]++
					}
					for name, n := range count {
						got = append(got, fmt.Sprintf("%s×%d", name, n))
					}
					testkit.Check(t, len(count) <= 1, "of several jobs: %v", count)
				}
				want := strings.Fields(tc.want)
				slices.Sort(got)
				slices.Sort(want)
				testkit.Check(t, slices.Equal(got, want), "%v, want %v", got, want)
			})
		}
	}
}

// A recording that is played twice by its own clock has the same times twice: the processes of a player begin at about
// one time.
func TestJobsOfEqualTimes(t *testing.T) {
	all := slices.Concat(job("one", 0, 3, 7), job("two", 0, 3, 7))
	for i := range all {
		all[i].host = "a"
	}
	parts := seenBy(all, nil)
	for i, p := range parts {
		p.Shard.Clock.Source = HostClock
		p.Shard.PIDStart = uint64(1000*(i/4) + i%4)
	}
	runs, err := Separate(parts)
	testkit.Require(t, err == nil && len(runs) == 2, "%d jobs, %v", len(runs), err)
	for i, r := range runs {
		for _, p := range r.Processes {
			testkit.Check(t, p.Shard.Executable == []string{"one", "two"}[i] && len(r.Processes) == 4,
				"job %d has a process of job %s, and %d in all", i, p.Shard.Executable, len(r.Processes))
		}
	}
}

// A process that ended before it had a communicator, on a host whose clock nothing ties to others, is of the only job
// that there is.
func TestStraysOfUntiedClocks(t *testing.T) {
	all := append(job("one", 0, 3, 7), sight{job: "one", host: "c", begin: 0.1, end: 0.2})
	for _, lead := range []float64{0, 3600} {
		runs, err := Separate(seenBy(all, map[string]float64{"c": lead}))
		testkit.Check(t, err == nil && len(runs) == 1 && len(runs[0].Processes) == 5,
			"lead %v: %d jobs, %v", lead, len(runs), err)
	}
}
