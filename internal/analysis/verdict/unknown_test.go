// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A sentence says how much of the waiting has no known cause, and why, if that is much. If it is most, nobody can be
// said not to stand out.
func TestUnknownWaiting(t *testing.T) {
	const named = "For 30 % of the waiting, no cause is known"
	for _, c := range []struct {
		name                   string
		unknown, small, longer float64 // parts of the waiting
		who                    []int
		transfers              bool
		want                   string
	}{
		{"little", 0.1, 0.1, 0, []int{0, 1, 2, 3}, false, "caused 22 % of it."},
		{"much", 0.3, 0.1, 0, []int{0, 1, 2, 3}, false, "caused 17 % of it. " + named + "."},
		{"beside a culprit", 0.3, 0.2, 0, []int{1}, false, "Confidence: over 99.9 %. " + named + ", mostly because ranks came " +
			"less far apart than their times are uncertain."},
		{"longer operations", 0.05, 0, 0.25, []int{0, 1, 2, 3}, true, named + ", mostly because operations took longer on " +
			"some ranks for no reason that their transfers show."},
		{"most", 0.8, 0.7, 0, []int{0, 1, 2, 3}, false, "Not known who made the others wait: for 80 % of 2.80 s waited, " +
			"summed over 8 ranks, no cause is known, mostly because ranks came less far apart than their times are uncertain."},
		{"all", 1, 1, 0, []int{0, 1, 2, 3}, false, "Not known who made the others wait: for 100 % of 2.80 s waited"},
	} {
		ev := evidence(8, 40, c.who...)
		all := ev.Causes.Waited
		for i := range ev.Causes.Ranks {
			r := &ev.Causes.Ranks[i]
			r.Costs[causes.Host] *= 1 - c.unknown - c.longer
			r.Heaviest *= 1 - c.unknown - c.longer
		}
		ev.Causes.Unknown, ev.Causes.Small, ev.Transfers = c.unknown*all, c.small*all, c.transfers
		ev.Causes.Ranks[7].Costs[causes.Transfer] = c.longer * all
		testkit.Contains(t, Judge(ev).Text, c.want)
	}
}

// A rank whose calls are not known is late, by its host or its GPU; what its GPU may have done is said all the same.
func TestCallsAreNotKnown(t *testing.T) {
	ev := evidence(4, 20, 2)
	r := &ev.Causes.Ranks[2]
	r.Costs[causes.Own], r.Costs[causes.Host] = r.Costs[causes.Host], 0
	r.WorkedBy[causes.Own] = r.Worked
	for i := range r.Occurrences {
		r.Occurrences[i].Called, r.Occurrences[i].MayWait = math.NaN(), true
	}
	v := Judge(ev)
	testkit.Require(t, len(v.Culprits) == 1 && v.Culprits[0].Kind == Late, "%+v", v.Culprits)
	testkit.Contains(t, v.Text, "when it was called is not known")
	testkit.Contains(t, v.Text, "Or it was still in the operation before")
}

// Without the times of many operations nobody can be said not to stand out, however little those waited that have some.
func TestOperationsWithoutTimes(t *testing.T) {
	for only, want := range map[uint64]string{
		20: "Nobody stands out: ranks waited",
		21: "Not known who made the others wait: only the times of enqueueing are known of 21 of 100 calls. Rank 2 " +
			"called its part last, by 40 ms on average, 9 of 10 times: if hosts wait for their GPUs before they go on, " +
			"the others waited for it. Why.",
	} {
		ev := evidence(8, 40, 0, 1, 2, 3)
		ev.Launched, ev.OnlyLaunched, ev.Untimed = 100, only, "why"
		ev.LastCaller = &LastCaller{Rank: 2, Times: 9, Of: 10, Behind: 4e7}
		testkit.Contains(t, Judge(ev).Text, want)
	}
}

// Where a hole in what was recorded leaves open who was late nobody is named, not even who seems to be.
func TestHoles(t *testing.T) {
	late := evidence(8, 40, 4)
	testkit.Require(t, len(Judge(late).Culprits) == 1, "nobody is named without the hole")
	late.Hole = "half of it is missing"
	v := Judge(late)
	testkit.Check(t, len(v.Culprits) == 0 && v.Text == notKnown+"half of it is missing.", "%+v", v)

	nobody := evidence(8, 40, 0, 1, 2, 3)
	nobody.Unrecorded = "nothing was recorded of rank 8"
	testkit.Equal(t, Judge(nobody).Text, notKnown+"nothing was recorded of rank 8, for which they may have waited.",
		"without a rank's records")
}
