// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Operations of milliseconds, and a time service that is good to a microsecond: clocks are as good as the service. Its
// reference is no host's clock.
func TestTimeServicesBindClocks(t *testing.T) {
	const bound = 1_000
	for seed := range uint64(20) {
		r := newTestRun(4, seed)
		for n := range 40 {
			r.collective([]int{0, 1, 2, 3}, 1e9+float64(n)*50e6, 1e6, 2e6)
		}
		run := func(readings []Reading) *Fitted {
			found := newExchanges(maxInstants)
			for _, x := range r.xs {
				found.add(x)
			}
			return fitWith(found, len(r.clocks), readings, uint64(testOrigin), 2, nil)
		}
		var readings []Reading
		utc := testClock{offset: 3e6, drift: -7e-6}
		for h := range 3 { // the last host has no such service
			for n := range 4 {
				at := 0.9e9 + float64(n)*0.8e9 + float64(h)*1e5
				readings = append(readings, Reading{h, uint64(testOrigin) + uint64(r.clocks[h].shows(at)),
					uint64(testOrigin) + uint64(utc.shows(at+(2*r.random.Float64()-1)*bound)), bound})
			}
		}
		without, with := run(nil), run(readings)
		testkit.Require(t, with.Readings == len(readings) && with.Exchanges == without.Exchanges &&
			len(with.Hosts) == len(r.clocks) && with.Broken == 0,
			"%d readings, %d exchanges and %d, %d hosts, %d are not kept", with.Readings, with.Exchanges,
			without.Exchanges, len(with.Hosts), with.Broken)
		for h := 1; h < len(r.clocks); h++ {
			for _, at := range []float64{1e9, 1.7e9, 2.9e9} {
				shown := r.clocks[h].shows(at)
				time := testOrigin + otf2.Timestamp(shown)
				offset, u := with.Hosts[h].At(time)
				off := math.Abs(shown + float64(offset) - r.clocks[0].shows(at))
				testkit.Check(t, off <= u+1, "seed %d: host %d is %.0f ns off, uncertainty %.0f", seed, h, off, u)
				if _, before := without.Hosts[h].At(time); h < 3 && (u > 5_000 || before < 100_000) {
					t.Errorf("seed %d: host %d: uncertainty %.0f ns, without readings %.0f", seed, h, u, before)
				}
			}
		}
	}
}

// What one host alone reads says nothing of another.
func TestReadingsOfOneHostSayNothing(t *testing.T) {
	fit := fitWith(newExchanges(maxInstants), 2, []Reading{{0, uint64(testOrigin), uint64(testOrigin), 5}},
		uint64(testOrigin), 1, nil)
	testkit.Check(t, fit.Readings == 0 && !fit.Hosts[0].Tied, "%+v", fit)
}
