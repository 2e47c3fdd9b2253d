// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/takeover"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Plans that have been enqueued are described together as far as can be, whatever lies in a queue: like one by one,
// joined in twos.
func TestLeftPlansAreJoined(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := &commRank{index: int(seed % 3), queue: planQueue{allBytes: new(int)}}
		left := leftPlans{copying: make(map[*plan]int)}
		var want []takeover.Plan
		for range r.IntN(9) {
			p := madeUpPlan(r, c)
			if r.IntN(8) == 0 {
				left.copying[p] = 3
			}
			left.addPlan(p)
			if p.measurement == 0 && !(p.captureOnly && p.enqueue.stopped) {
				want = joinedInTwos(append(want, left.describePlan(p)))
			}
		}
		got := left.describeAll()
		testkit.Require(t, reflect.DeepEqual(got, want), "seed %d:\n%+v, want\n%+v", seed, got, want)
	}
}

// A plan is described in one way, in whichever order a map gives what is gone of it.
func TestCopiedPlansAreDescribedInOneWay(t *testing.T) {
	for range 100 {
		p := &plan{gone: &gone{operations: map[string][]byte{"AllReduce": nil, "AllGather": nil, "Broadcast": nil}}}
		got := p.copiedFunction()
		testkit.Require(t, got == "AllGather", "%q", got)
	}
}

func madeUpPlan(r *rand.Rand, c *commRank) *plan {
	p := &plan{comm: c, handle: r.Uint64N(100) + 1, enqueue: enqueueing{start: r.Uint64N(100), stopped: r.IntN(5) > 0},
		captureOnly: r.IntN(8) == 0}
	if r.IntN(10) == 0 {
		p.measurement = otf2.MeasurementOff
	}
	for range r.IntN(3) {
		p.addOperation(&operation{plan: p, arguments: arguments{name: []string{"AllReduce", "Broadcast"}[r.IntN(2)],
			count: r.Uint64N(9)},
			call: &call{before: r.Int64N(9) - 4}})
	}
	if r.IntN(4) == 0 || len(p.ops) == 0 {
		p.gone = &gone{operations: map[string][]byte{}, group: r.Int64N(5)}
		for range r.IntN(3) {
			p.gone.operations[fmt.Sprint("gone ", r.IntN(2))] = []byte{1, 2, 3, byte(r.IntN(9))}
		}
	}
	return p
}

// joinedInTwos makes one of the third to last and the one before the last, where all three have been enqueued and their
// order would be known.
func joinedInTwos(all []takeover.Plan) []takeover.Plan {
	n := len(all)
	if n < 3 || all[n-1].Open || all[n-2].Open || all[n-3].Open || len(all[n-3].Ops) > 0 && len(all[n-2].Gone) > 0 {
		return all
	}
	into := takeover.Plan{Comm: all[n-3].Comm, Group: max(all[n-3].Group, all[n-2].Group)}
	for _, of := range []takeover.Plan{all[n-3], all[n-2]} {
		for _, m := range []struct {
			to   *map[string][]byte
			from map[string][]byte
		}{{&into.Ops, of.Ops}, {&into.Gone, of.Gone}} {
			for key, marks := range maps.All(m.from) {
				appendMarks(m.to, key, marks...)
			}
		}
	}
	return append(all[:n-3], into, all[n-1])
}

// A description is not made of what waits again when nothing has come since the last: each flush wants two.
func TestSnapshotsOfTheSame(t *testing.T) {
	m := New(files{t.TempDir()}, &description.Process{}, nil)
	m.Comm(0, description.Comm{ID: 1, NRanks: 2}, description.GPU{})
	c := m.ranks.all[0]
	for range 1000 {
		p := &plan{comm: c, enqueue: enqueueing{stopped: true}, completion: completion{at: 1}}
		p.addOperation(&operation{plan: p, arguments: arguments{name: "AllReduce"}})
		c.queue.plans = append(c.queue.plans, p)
	}
	m.Snapshot()
	first := m.process.Resume
	if n := len(first.Plans); n != 2 || len(first.Plans[0].Ops["AllReduce"]) != 999*takeover.MarkSize {
		t.Fatalf("%d plans: %+v", n, first.Plans)
	}
	m.Snapshot()
	testkit.Check(t, &m.process.Resume.Plans[0] == &first.Plans[0],
		"what waits is described again, and nothing has come")
	for i, given := range []func() error{
		func() error { return m.Advance(1) },
		func() error { return m.Settle(1) },
		func() error { return m.Outage(0, 5, 6, 7, 8) },
		func() error { m.Comm(1, description.Comm{ID: 2, NRanks: 2}, description.GPU{}); return nil },
		func() error { m.Import(7, Imported{}); return nil },
		func() error { return m.Record(0, 9, &shm.Record{Kind: shm.RecordInit}) },
		m.Finish,
	} {
		m.changed = false
		if err := given(); err != nil || !m.changed {
			t.Errorf("call %d: %v, the next description is made anew: %v", i, err, m.changed)
		}
	}
}
