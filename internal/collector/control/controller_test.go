// SPDX-License-Identifier: Apache-2.0

package control

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

var moment = time.Unix(1000, 0)

// rank is a process with one rank of communicator 7.
func rank(n int, at time.Time, called uint64, w shm.Window) Status {
	return Status{Shard: string(rune('a' + n)), Rank: n, Time: at, Comms: []CommStatus{{
		ID: 7, Name: "c", NRanks: 2, Rank: n, Collectives: called, First: w.First, Last: w.Last,
	}}}
}

func TestWindowsAreChosenAhead(t *testing.T) {
	const end = math.MaxUint64
	for _, tc := range []struct {
		name    string
		on      bool
		before  [2]uint64 // ordinals half a second ago
		now     [2]uint64
		window  [2]shm.Window
		want    shm.Window
		waiting bool
		none    bool // nothing is to be changed
	}{
		{name: "stop an idle one", now: [2]uint64{5, 5}, before: [2]uint64{5, 5},
			window: [2]shm.Window{Everything, Everything}, want: shm.Window{First: 0, Last: 25}},
		// 200 in half a second: 800 in two; twice as far for an end.
		{name: "stop a fast one", now: [2]uint64{1000, 1200}, before: [2]uint64{1000, 1000},
			window: [2]shm.Window{Everything, Everything}, want: shm.Window{First: 0, Last: 1200 + 1600}},
		{name: "start a paused one", on: true, now: [2]uint64{0, 3}, window: [2]shm.Window{Nothing, Nothing},
			before: [2]uint64{0, 3}, want: shm.Window{First: 13, Last: end}},
		{name: "start one that is on", on: true, now: [2]uint64{8, 8}, before: [2]uint64{8, 8},
			window: [2]shm.Window{Everything, Everything}, none: true},
		{name: "stop one that is off", now: [2]uint64{8, 8}, before: [2]uint64{8, 8},
			window: [2]shm.Window{Nothing, Nothing}, none: true},
		{name: "start again after the end", on: true, now: [2]uint64{30, 31}, before: [2]uint64{30, 31},
			window: [2]shm.Window{{First: 0, Last: 25}, {First: 0, Last: 25}}, want: shm.Window{First: 41, Last: end}},
		{name: "take an end back", on: true, now: [2]uint64{5, 5}, before: [2]uint64{5, 5},
			window: [2]shm.Window{{First: 0, Last: 25}, {First: 0, Last: 25}}, want: Everything},
		{name: "an end too near", on: true, now: [2]uint64{20, 18}, before: [2]uint64{20, 18},
			window: [2]shm.Window{{First: 0, Last: 25}, {First: 0, Last: 25}}, waiting: true},
		{name: "one has passed the end", on: true, now: [2]uint64{26, 18}, before: [2]uint64{26, 18},
			window: [2]shm.Window{{First: 0, Last: 25}, {First: 0, Last: 25}}, waiting: true},
		{name: "take a beginning back", now: [2]uint64{5, 5}, before: [2]uint64{5, 5},
			window: [2]shm.Window{{First: 15, Last: end}, {First: 15, Last: end}}, want: Nothing},
		{name: "end before it begins", now: [2]uint64{5, 12}, before: [2]uint64{5, 12},
			window: [2]shm.Window{{First: 15, Last: end}, {First: 15, Last: end}},
			want:   shm.Window{First: 15, Last: 32}},
		{name: "begin earlier", on: true, now: [2]uint64{5, 5}, before: [2]uint64{5, 5},
			window: [2]shm.Window{{First: 1000, Last: 2000}, {First: 1000, Last: 2000}},
			want:   shm.Window{First: 15, Last: end}},
		{name: "end earlier", now: [2]uint64{5, 5}, before: [2]uint64{5, 5},
			window: [2]shm.Window{{First: 0, Last: 2000}, {First: 0, Last: 2000}},
			want:   shm.Window{First: 0, Last: 25}},
		{name: "members that differ", on: true, now: [2]uint64{5, 5}, before: [2]uint64{5, 5},
			window: [2]shm.Window{Everything, Nothing}, want: shm.Window{First: 15, Last: end}},
		{name: "members that differ, off", now: [2]uint64{5, 5}, before: [2]uint64{5, 5},
			window: [2]shm.Window{Everything, Nothing}, want: Nothing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			half := moment.Add(500 * time.Millisecond)
			before := []Status{rank(0, moment, tc.before[0], tc.window[0]), rank(1, moment, tc.before[1], tc.window[1])}
			now := []Status{rank(0, half, tc.now[0], tc.window[0]), rank(1, half, tc.now[1], tc.window[1])}
			changes, waiting := chooseWindows(before, now, tc.on, 2*time.Second, true)
			switch {
			case tc.waiting != (len(waiting) == 1):
				t.Errorf("waiting for %v", waiting)
			case tc.waiting, tc.none:
				testkit.Check(t, len(changes) == 0, "changes %+v", changes)
			case len(changes) != 1:
				t.Errorf("changes %+v", changes)
			default:
				want := Window{ID: 7, NRanks: 2, First: tc.want.First, Last: tc.want.Last}
				testkit.Same(t, want, changes[0].Window)
			}
		})
	}
}

// Whatever orders come while the ranks go on: all of them choose the same operations.
func TestAllRanksChooseTheSameOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ranks = 3
		var called [ranks]uint64
		var window [ranks]shm.Window
		var chosen [ranks][]bool
		start := rapid.SampledFrom([]shm.Window{Everything, Nothing, {First: 5, Last: 40}}).Draw(t, "start")
		for r := range window {
			window[r] = start
		}
		at := moment
		sample := func() (all []Status) {
			for r := range ranks {
				all = append(all, rank(r, at, called[r], window[r]))
			}
			return all
		}
		step := func(r int, n uint64) {
			for range n {
				chosen[r] = append(chosen[r], inside(window[r], called[r]))
				called[r]++
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "orders") {
			before := sample()
			for r := range ranks {
				step(r, rapid.Uint64Range(0, 30).Draw(t, "calls"))
			}
			at = at.Add(500 * time.Millisecond)
			on := rapid.Bool().Draw(t, "on")
			changes, _ := chooseWindows(before, sample(), on, 2*time.Second, true)
			// The order reaches the ranks one after the other; each makes some more calls before, fewer than the margin
			// allows for.
			for r := range ranks {
				step(r, rapid.Uint64Range(0, leastMargin-1).Draw(t, "late calls"))
				for _, c := range changes {
					window[r] = shm.Window{First: c.First, Last: c.Last}
				}
			}
		}
		for r := range ranks {
			step(r, 200)
		}
		for r := 1; r < ranks; r++ {
			n := min(len(chosen[0]), len(chosen[r]))
			d := cmp.Diff(chosen[0][:n], chosen[r][:n])
			testkit.Require(t, d == "", "rank %d chooses other operations than rank 0:\n%s", r, d)
		}
	})
}

// Communicators whose identity NCCL did not tell cannot be matched between processes: each goes by itself.
func TestNamelessCommunicators(t *testing.T) {
	now := []Status{rank(0, moment, 5, Everything), rank(1, moment, 50, Everything)}
	for i := range now {
		now[i].Comms[0].ID = 0
	}
	changes, waiting := chooseWindows(now, now, false, 2*time.Second, true)
	testkit.Check(t, len(waiting) == 0 && len(changes) == 2 && changes[0].Shard == "a" && changes[0].Last == 25 &&
		changes[1].Shard == "b" && changes[1].Last == 70, "%+v, %v", changes, waiting)
}
