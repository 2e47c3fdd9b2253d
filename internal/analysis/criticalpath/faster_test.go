// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/schedule"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// stages is a pipeline of replicas that are joined by an AllReduce of each stage after some messages. slow has the work
// of each rank, in addition to that of the others, by the number of the step.
func stages(stages, replicas, steps int, slow func(rank, step int) uint64) *job {
	j := &job{ranks: stages * replicas}
	rank := func(s, r int) int { return s*replicas + r }
	for step := range steps {
		for r := range replicas {
			for range 6 {
				for s := range stages {
					j.add(1, work(rank(s, r), 100+slow(rank(s, r), step)))
					if s+1 < stages {
						j.add(1, op(message, rank(s, r), rank(s+1, r)))
					}
				}
			}
		}
		for s := range stages {
			group := make([]int, replicas)
			for r := range group {
				group[r] = rank(s, r)
			}
			j.add(1, op(allReduce, group...))
		}
	}
	return j
}

// The gain of ranks that are late together is that of all of them, and each alone gains next to nothing.
// by changes the kind of all messages.
func (j *job) by(kind string) *job {
	for i := range j.steps {
		if j.steps[i].kind == message {
			j.steps[i].kind = kind
		}
	}
	return j
}

func TestGainsOfSets(t *testing.T) {
	nobody := func(int, int) uint64 { return 0 }
	for _, c := range []struct {
		name             string
		stages, replicas int
		late             []int
		slow             func(step int) uint64
	}{
		{"one rank of a middle stage", 4, 4, []int{5}, func(int) uint64 { return 100 }},
		{"one rank, in one step of three", 4, 4, []int{5}, func(step int) uint64 {
			return uint64(300 * (step % 3 / 2))
		}},
		{"all of a middle stage", 4, 2, []int{2, 3}, func(int) uint64 { return 100 }},
		{"all of the first stage", 4, 2, []int{0, 1}, func(int) uint64 { return 100 }},
		{"all of the last stage", 4, 2, []int{6, 7}, func(int) uint64 { return 150 }},
		{"the only rank of a stage", 4, 1, []int{2}, func(int) uint64 { return 100 }},
		{"ranks of two stages", 4, 4, []int{4, 14}, func(int) uint64 { return 100 }},
		{"one rank of each stage", 3, 2, []int{1, 3, 5}, func(int) uint64 { return 100 }},
		{"two of one stage", 1, 6, []int{1, 4}, func(int) uint64 { return 70 }},
	} {
		for _, kind := range []string{message, bounded} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				const steps = 12
				slow := stages(c.stages, c.replicas, steps, func(rank, step int) uint64 {
					for _, late := range c.late {
						if rank == late {
							return c.slow(step)
						}
					}
					return 0
				}).by(kind).play()
				quick := stages(c.stages, c.replicas, steps, nobody).by(kind).play()
				truth := slow.end - quick.end
				v := &verdict.Verdict{}
				for _, rank := range c.late {
					v.Culprits = append(v.Culprits,
						verdict.Culprit{Rank: rank, Kind: verdict.HostLate, Worst: &verdict.Worst{}})
				}
				r := slow.resultOf(v)
				gain := r.gain(c.late[0])
				for _, w := range r.WhatIf {
					if w.Change == FasterSet {
						gain = w.Gain
						testkit.Check(t, fmt.Sprint(w.Ranks) == fmt.Sprint(c.late), "ranks %v, want %v", w.Ranks, c.late)
					}
				}
				// Start-up does not change.
				if off := float64(gain) - float64(truth); off > 0 || off < -0.02*float64(slow.end)-float64(c.slow(0)*7) {
					t.Errorf("%d ns would go, in truth %d of %d", gain, truth, slow.end)
				}
			})
		}
	}
}

// Played again without a change, every run takes as long as it took.
func TestUnchangedRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyJob(t).play()
		gains, notKnown := p.schedule.Replay([]schedule.Scenario{{}})
		testkit.Check(t, notKnown == "" && gains[0].Earlier == 0, "%+v %s", gains, notKnown)
	})
}
