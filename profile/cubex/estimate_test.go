// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"math"
	"math/rand/v2"
	"testing"

	"ncclotf2/otf2"
	"ncclotf2/profile"
)

// Waits that are estimated from samples are near those of all collectives; of few collectives they are those.
func TestEstimatedWaits(t *testing.T) {
	const ranks, strata = 4, 6 // sizes are of six classes
	for _, rounds := range []int{7 * 20, 20000} {
		random := rand.New(rand.NewPCG(1, uint64(rounds)))
		begins := make([][ranks]uint64, rounds)
		ends := make([]uint64, rounds)
		truth, startUp := 0.0, 0.0
		for i := range begins {
			last := uint64(0)
			for r := range begins[i] {
				begins[i][r] = uint64(1e9+1e6*float64(i)) + uint64(random.IntN(100000))
				last = max(last, begins[i][r])
			}
			ends[i] = last + 10000
			for _, b := range begins[i] {
				if i == 0 {
					startUp += float64(last - b)
				} else {
					truth += float64(last - b)
				}
			}
		}
		d, _ := synthetic(t, ranks)
		e := &estimator{rows: make(map[otf2.LocationRef]*sampledRow)}
		b := newBuilder(d)
		for r := range ranks {
			location := func(n uint64) (otf2.LocationRef, bool) { return otf2.LocationRef(n<<32 | uint64(r)), true }
			a := sums(t, ranks, r, rounds, func(i uint64) (uint64, uint64) { return begins[i][r] - uint64(r), ends[i] - uint64(r) })
			e.addRows(a, location, func(t uint64) uint64 { return t + uint64(r) }) // clocks are apart
			b.add(a, location)
		}
		e.estimate(d)
		got, first := 0.0, 0.0
		for _, n := range b.build().nodes {
			for _, c := range n.cells {
				first += float64(c.Waits[profile.WaitStartUp])
				got += float64(c.Waits.Total() - c.Waits[profile.WaitStartUp])
			}
		}
		allowed := 0.0
		if rounds > strata*64 {
			allowed = 0.1 // strata of 64 samples, whose means vary by a third or so
		}
		t.Logf("%d rounds: %.0f ns, in truth %.0f; %s", rounds, got, truth, &e.out)
		if math.Abs(got-truth) > allowed*truth || math.Abs(first-startUp) > 0 {
			t.Errorf("%d rounds: waits of %.0f ns, in truth %.0f; at the start %.0f and %.0f", rounds, got, truth, first, startUp)
		}
		if sampled := uint64(min(rounds, strata*64)); e.out.Sampled < sampled || e.out.Sampled > sampled+1 || e.out.Collectives != uint64(rounds) {
			t.Errorf("%d rounds: %s", rounds, &e.out)
		}
	}
}

// What each kind of collective makes wait: as analysis.WaitStates has it.
func TestWaitsOf(t *testing.T) {
	at := func(begins ...uint64) (all []member) {
		for i, b := range begins {
			all = append(all, member{rank: int64(i), begin: b, end: 100, source: "gpu", root: 1})
		}
		return all
	}
	for _, c := range []struct {
		name, function string
		members        []member
		kind           profile.WaitKind
		want           []uint64 // nil: cannot be told
	}{
		{"all wait for the last", "AllReduce", at(10, 30, 20), profile.WaitNxN, []uint64{20, 0, 10}},
		{"a late root", "Broadcast", at(10, 30, 50), profile.WaitLateBroadcast, []uint64{20, 0, 0}},
		{"an early root", "Reduce", at(10, 5, 50), profile.WaitEarlyReduce, []uint64{0, 45, 0}},
		{"no wait is longer than the operation", "AllReduce", []member{{begin: 0, end: 5, source: "gpu"}, {rank: 1, begin: 50, end: 60, source: "gpu"}}, profile.WaitNxN, []uint64{5, 0}},
		{"times of two kinds", "AllReduce", []member{{begin: 1, end: 9, source: "network"}, {rank: 1, begin: 2, end: 9, source: "gpu"}}, 0, nil},
		{"enqueueing says nothing", "AllReduce", []member{{begin: 1, end: 9, source: "enqueue"}, {rank: 1, begin: 2, end: 9, source: "enqueue"}}, 0, nil},
		{"a root without times", "Broadcast", append(at(10)[:1], member{rank: 2, begin: 20, end: 100, source: "gpu", root: 1}), 0, nil},
	} {
		waits, kind, ok := waitsOf(c.function, c.members)
		if ok != (c.want != nil) {
			t.Errorf("%s: %v, %v", c.name, waits, ok)
			continue
		}
		for i := range c.want {
			if waits[i] != c.want[i] || kind != c.kind {
				t.Errorf("%s: %v of kind %d, want %v of kind %d", c.name, waits, kind, c.want, c.kind)
			}
		}
	}
}
