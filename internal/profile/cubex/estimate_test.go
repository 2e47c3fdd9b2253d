// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
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
			a := sums(t, ranks, r, rounds, func(i uint64) (
				uint64, uint64) {
				return begins[i][r] - uint64(r), ends[i] - uint64(r)
			})
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
		testkit.Check(t, math.Abs(got-truth) <= allowed*truth && math.Abs(first-startUp) <= 0,
			"%d rounds: waits of %.0f ns, in truth %.0f; at the start %.0f and %.0f", rounds, got, truth, first,
			startUp)
		sampled := uint64(min(rounds, strata*64))
		testkit.Check(t, e.out.Sampled >= sampled && e.out.Sampled <= sampled+1 && e.out.Collectives == uint64(rounds),
			"%d rounds: %s", rounds, &e.out)
	}
}
