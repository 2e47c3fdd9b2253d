// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Whatever the readings and the corrections of a trace are, within what clocks do: what readers make of the records is
// less than one tick from the exact time, between them and up to a minute beyond, and never goes back.
func TestRecordsAreExactToTheTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SampledFrom([]Timer{tickTimer, rawTimer, steeredTimer, realTimer}).Draw(t, "timer")
		rate := rapid.SampledFrom([]float64{1, 2.5, 3.3333333, 0.025, 2.596705559}).Draw(t, "ticks per ns")
		p := &description.Process{Clock: provenance.Clock{Source: "tsc", AnchorRaw: 3_000_000_000_000,
			AnchorReal: 1_760_000_000_000_000_000}}
		raw := p.Clock.AnchorRaw - rapid.Uint64Range(0, 1e9).Draw(t, "before")
		for range rapid.IntRange(2, 40).Draw(t, "readings") {
			p.Clock.Tuples = append(p.Clock.Tuples, provenance.ClockTuple{
				Raw: raw, Ticks: uint64(rate*float64(raw)) + rapid.Uint64Range(0, 60).Draw(t, "off"),
				Mono: raw - 777 + rapid.Uint64Range(0, 100).Draw(t, "steered"),
				Real: p.Clock.AnchorReal + raw - p.Clock.AnchorRaw + rapid.Uint64Range(0, 100).Draw(t, "real off"),
			})
			raw += rapid.Uint64Range(20e6, 1e9).Draw(t, "step") * uint64(
				rapid.SampledFrom([]int{1, 1, 1, 3000}).Draw(t, "scale"))
		}
		perNs := map[Timer]float64{tickTimer: rate, rawTimer: 1, steeredTimer: 1, realTimer: 0.001}[by]
		local := func(raw uint64) uint64 { return uint64(perNs * float64(raw)) }
		if by == realTimer {
			local = func(raw uint64) uint64 { return (p.Clock.AnchorReal + raw - p.Clock.AnchorRaw) / 1000 }
		}
		var clock []otf2.ClockOffset
		at := local(p.Clock.AnchorRaw)
		for range rapid.IntRange(0, 4).Draw(t, "corrections") {
			clock = append(clock, otf2.ClockOffset{Time: otf2.Timestamp(at),
				Offset: rapid.Int64Range(-5000, 5000).Draw(t, "offset")})
			at += uint64(perNs * float64(rapid.Uint64Range(1e9, 1e11).Draw(t, "distance")))
		}
		tr := testkit.Value(newTransfer(p, by, clock))(t)
		tr.Shift = rapid.Int64Range(-1e9, 1e9).Draw(t, "shift")
		first := p.Clock.AnchorReal + rapid.Uint64Range(0, 1e9).Draw(t, "first")
		last := first + rapid.Uint64Range(0, 4e12).Draw(t, "last")
		knots := tr.Records(first, last)
		testkit.Require(t, len(knots) >= 2, "%d records", len(knots))
		for i := 1; i < len(knots); i++ {
			testkit.Require(t, knots[i].Time > knots[i-1].Time,
				"record %d at %d after %d", i, knots[i].Time, knots[i-1].Time)
		}
		times := []uint64{first, last}
		for _, k := range knots {
			times = append(times, uint64(k.Time)-1, uint64(k.Time), uint64(k.Time)+1)
		}
		for range 30 {
			times = append(times, rapid.Uint64Range(first, last+60e9).Draw(t, "time"))
		}
		for _, at := range times {
			got := otf2.Corrected(knots, at)
			off := new(big.Rat).Sub(integer(got), tr.exact(at))
			if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
				t.Fatalf("%d becomes %d, %s ticks off", at, got, off.FloatString(4))
			}
			next := otf2.Corrected(knots, at+1)
			testkit.Require(t, next >= got, "%d becomes %d, the next nanosecond %d", at, got, next)
		}
	})
}

func TestReleaseOfCreators(t *testing.T) {
	for creator, want := range map[string]int{
		"Score-P 8.4": 8, "Score-P 9.0": 9, "Score-P 9.0-rc1": 9, "Score-P 10": 10, "Score-P 10.1": 10, "Score-P": 0,
		"Score-P trunk": 0, "other 9.0": 0, "": 0,
	} {
		testkit.Equal(t, release(creator), want, "%q", creator)
	}
}
