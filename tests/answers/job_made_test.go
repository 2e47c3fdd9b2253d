// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"math"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// small is a job of three ranks without noise: each computes 1 ms, then sums up with its neighbors, {0, 1} and then {1,
// 2}.
func small(causes ...cause) *job {
	const rounds = 10
	j := &job{ranks: 3, perHost: 8, rounds: rounds, causes: causes, programs: make([][]action, 3),
		groups: []group{{"left", []int{0, 1}}, {"right", []int{1, 2}}}}
	for round := range rounds {
		for r := range j.ranks {
			work := action{does: hostWorks, took: 1_000_000}
			for i := range causes {
				if causes[i].strikes(r, round, 0) {
					work.extra = append(work.extra, extra{i, causes[i].delay})
				}
			}
			j.programs[r] = append(j.programs[r], work)
		}
		for g, members := range [][]int{{0, 1}, {1, 2}} {
			j.operations = append(j.operations, operation{group: g, function: "AllReduce", members: members,
				took: 100_000})
			for _, m := range members {
				j.programs[m] = append(j.programs[m], action{does: calls, took: 10_000, op: len(j.operations) - 1},
					action{does: syncs})
			}
		}
	}
	return j
}

func nothing(int) bool { return false }

// Of a made-up job it is known who waited how long, and why: also where lateness is handed on.
func TestJobsAreAsTheirCausesSay(t *testing.T) {
	late := cause{kind: verdict.HostLate, rank: 0, peer: -1, delay: 5_000_000, every: 2, to: 10}
	none := small().play(nothing)
	j := small(late)
	with, without := j.play(nothing), j.play(func(int) bool { return true })
	testkit.Check(t, none.waited == without.waited && none.length == without.length && !none.hangs,
		"without the cause %d ns are waited of %d, in a job without one %d of %d", without.waited, without.length,
		none.waited, none.length)
	// 1 waits for 0, and then 2 for 1: five times, and half as long again as 1 alone would make the others wait.
	if got, want := with.waited-none.waited, int64(2*5*5_000_000); math.Abs(float64(got-want)) > 0.03*float64(want) {
		t.Errorf("rank 0 costs %d ns of waiting, want %d", got, want)
	}
	if got, want := with.length-none.length, int64(5*5_000_000); math.Abs(float64(got-want)) > 0.03*float64(want) {
		t.Errorf("rank 0 makes the job %d ns longer, want %d", got, want)
	}
}

// A delay for which nobody waits in the run as it was, as what it delays lies ready long before, need not be named.
func TestDelaysThatSlackHides(t *testing.T) {
	for lag, must := range map[int64]int{0: 1, 500_000_000: 0} {
		const rounds = 20
		j := &job{
			ranks: 2, perHost: 8, rounds: rounds, groups: []group{{"both", []int{0, 1}}}, programs: make([][]action, 2),
			causes: []cause{{kind: verdict.HostLate, peer: -1, delay: 1_000_000, every: 1, to: rounds}, {noise: true}},
		}
		j.programs[1] = []action{{does: hostWorks, extra: []extra{{1, lag}}}}
		for round := range rounds {
			j.operations = append(j.operations, operation{function: messageName, members: []int{0, 1}, took: 10_000,
				eager: true, first: round == 0})
			call := action{does: calls, took: 10_000, op: round, round: round}
			j.programs[0] = append(j.programs[0], action{does: hostWorks, took: 1_000_000,
				extra: []extra{{0, 1_000_000}}, round: round}, call)
			j.programs[1] = append(j.programs[1], call, action{does: syncs}, action{does: hostWorks, took: 1_000_000})
		}
		tr, _ := truthOf(j)
		if len(tr.culprits) != must || len(tr.culprits)+len(tr.may) != 1 {
			t.Errorf("the receiver begins %d ms later: must be named %s, may be %s", lag/1_000_000, list(tr.culprits),
				list(tr.may))
		}
	}
}

// What a cause adds before a communicator's first collective is start-up, also where messages came before that.
func TestTimesAreWithoutStartUp(t *testing.T) {
	for function, want := range map[string]int{"AllReduce": 4, messageName: 5} { // after a message in each round
		const rounds = 5
		j := &job{ranks: 2, groups: []group{{"both", []int{0, 1}}}, programs: make([][]action, 2),
			causes: []cause{{kind: verdict.HostLate, peer: -1}}}
		for round := range rounds {
			for i, f := range []string{messageName, function} {
				j.operations = append(j.operations, operation{function: f, members: []int{0, 1},
					first: round == 0 && i == 0})
				j.programs[0] = append(j.programs[0], action{does: calls, op: len(j.operations) - 1, round: round})
				if i == 0 {
					j.programs[0] = append(j.programs[0], action{does: hostWorks, extra: []extra{{0, 1}}, round: round})
				}
			}
		}
		got := j.times(0)
		testkit.Check(t, got == want, "before a %s it strikes %d times, want %d", function, got, want)
	}
}

// What waits for itself never comes.
func TestJobsThatHang(t *testing.T) {
	j := small()
	p := j.programs[1] // calls its two operations the other way round in the last round
	n := len(p)
	p[n-4], p[n-2] = p[n-2], p[n-4]
	if got := j.play(nothing); got.hangs { // 0 and 2 call one each: they only wait
		t.Error("two operations that nobody else has both of cannot hang")
	}
	j = small()
	j.programs[2] = j.programs[2][:len(j.programs[2])-2]
	got := j.play(nothing)
	testkit.Require(t, got.hangs, "a missing call does not hang")
	for r, ends := range got.ends {
		testkit.Equal(t, got.timing.at[ends] == never, (r == 1), "rank %d hangs", r)
	}
}

// Every plan can be made, with the causes that its name says, and the same number gives the same job.
func TestPlans(t *testing.T) {
	seen := make(map[string]int)
	for n := range 60 {
		p, big := planOf(n)
		if big {
			continue
		}
		seen[p.name]++
		a, b := makeJob(1, n, p, big), makeJob(1, n, p, big)
		x, first := truthOf(a)
		y, second := truthOf(b)
		testkit.Check(t, first.length == second.length && first.waited == second.waited &&
			len(x.culprits) == len(y.culprits), "job %d is another one the second time", n)
		hangs := p.name == "missing" || p.name == "order"
		testkit.Check(t, first.hangs == hangs, "job %d, %s, hangs: %v", n, p.name, first.hangs)
		for _, c := range append(x.culprits, x.may...) {
			if c.share < -0.01 || c.share > 1.01 { // NaN: a job that stops has no shares
				t.Errorf("job %d: %v", n, c)
			}
		}
	}
	for n := range odd {
		p, _ := planOf(firstOdd + n)
		a, b := makeJob(1, firstOdd+n, p, false), makeJob(1, firstOdd+n, p, false)
		tr, first := truthOf(a)
		if _, second := truthOf(b); first.length != second.length || first.waited != second.waited || first.hangs {
			t.Errorf("%s: another one the second time, or it hangs", p.name)
		}
		if nobody := strings.HasPrefix(p.name, "nobody"); nobody != (len(tr.culprits)+len(tr.may) == 0) {
			t.Errorf("%s: in truth %s, may be named: %s", p.name, list(tr.culprits), list(tr.may))
		}
	}
	for i := range plans {
		testkit.Check(t, seen[plans[i].name] != 0, "no job has %q", plans[i].name)
	}
}
