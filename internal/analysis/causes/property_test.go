// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// anyJob generates a job: operations of any ranks on any communicators, with any work between them. name renumbers the
// ranks, scale makes all work longer.
func anyJob(t *rapid.T) func(name func(int) int, scale int) *job {
	ranks := rapid.IntRange(2, 9).Draw(t, "ranks")
	var comms [][]int
	for range rapid.IntRange(1, 5).Draw(t, "communicators") {
		all := make([]int, ranks)
		for i := range all {
			all[i] = i
		}
		comms = append(comms, rapid.Permutation(all).Draw(t, "members")[:rapid.IntRange(2, ranks).Draw(t, "size")])
	}
	type step struct {
		rank, work int
		kind       string
		comm       int
		root       int  // −1: an AllReduce
		message    bool // between the first two
		slow       bool
	}
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		comm := rapid.IntRange(0, len(comms)-1).Draw(t, "communicator")
		return step{
			rapid.IntRange(0, ranks-1).Draw(t, "rank"), rapid.IntRange(0, 5000).Draw(t, "work"),
			rapid.SampledFrom([]string{":", "~", "?"}).Draw(t, "kind"),
			comm, rapid.IntRange(-1, len(comms[comm])-1).Draw(t, "root"),
			rapid.Bool().Draw(t, "message"), rapid.Bool().Draw(t, "slow"),
		}
	}), 1, 60).Draw(t, "steps")
	return func(name func(int) int, scale int) *job {
		j := newJob(ranks)
		for _, s := range steps {
			var members []string
			for _, m := range comms[s.comm] {
				members = append(members, fmt.Sprint(name(m)))
			}
			what := "ar"
			switch {
			case s.message:
				what, members = "m", members[:2]
			case s.root >= 0:
				what = "rd" + members[s.root]
			case s.slow:
				what = "sl" + members[0]
			}
			j.play(fmt.Sprintf("%d%s%d %s(%s)", name(s.rank), s.kind, s.work*scale, what, strings.Join(members, ",")))
		}
		return j
	}
}

func same(i int) int { return i }

// All waiting is charged exactly once.
func TestCostsAreTheWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := anyJob(t)(same, 1)
		r := j.engine.Result()
		waits, costs := j.sent, r.Unknown+r.StartUp
		for i := range j.ops {
			var all []lateness.Arrival
			for _, m := range j.members[i] {
				all = append(all, m.Arrival)
			}
			l, _ := lateness.Compare(j.ops[i].Kind, all, false)
			waits += float64(l.Caused)
		}
		for i := range r.Ranks {
			for _, c := range r.Ranks[i].Costs {
				testkit.Check(t, c >= 0, "rank %d has costs %v", i, r.Ranks[i].Costs)
				costs += c
			}
		}
		testkit.Check(t, math.Abs(costs-waits) <= 1e-6*waits+1 && math.Abs(r.Waited+r.StartUp-waits) <= 1e-6*waits+1,
			"waited %f, of it %f at the start, charged %f of %f", r.Waited, r.StartUp, costs, waits)
	})
}

// The result does not depend on the numbering of ranks.
func TestNumbersOfRanksDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		make := anyJob(t)
		r := make(same, 1).engine.Result()
		n := len(r.Ranks)
		other := make(func(i int) int { return n - 1 - i }, 1).engine.Result()
		for i := range r.Ranks {
			a, b := r.Ranks[i].Cost(), other.Ranks[n-1-i].Cost()
			testkit.Check(t, math.Abs(a-b) <= 1e-6*r.Waited+1, "rank %d costs %f, as rank %d %f", i, a, n-1-i, b)
		}
	})
}
