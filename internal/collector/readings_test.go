// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// throughTuples is the time at ticks by the line through a shard's tuples.
func throughTuples(tuples []provenance.ClockTuple, anchorRaw, anchorReal, ticks uint64) float64 {
	i := sort.Search(len(tuples), func(i int) bool { return tuples[i].Ticks >= ticks })
	i = min(max(i, 1), len(tuples)-1)
	a, b := tuples[i-1], tuples[i]
	raw := float64(int64(a.Raw-anchorRaw)) + float64(int64(ticks-a.Ticks))*float64(b.Raw-a.Raw)/float64(b.Ticks-a.Ticks)
	return raw + float64(anchorReal-real0)
}

// What shards tell of the clocks gives the times of events again, to the nanosecond.
func TestTuplesGiveTheTimeLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := newTimeline(tscHeader())
		ticks := uint64(1e12)
		type converted struct{ ticks, time uint64 }
		var all []converted
		noise := rapid.IntRange(0, 200).Draw(t, "noise")
		for range rapid.IntRange(2, 80).Draw(t, "rounds") {
			before := ticks
			ticks += uint64(rapid.IntRange(2_500_000, 50_000_000).Draw(t, "step"))
			raw := raw0 + uint64(float64(ticks-1e12)/2.5) + uint64(rapid.IntRange(0, noise).Draw(t, "off"))
			line.add(shm.ClockTuple{Ticks: ticks, Raw: raw, Mono: raw + 7, Real: raw - raw0 + real0})
			for _, f := range []float64{0, 0.25, 0.5, 1} {
				at := before + uint64(f*float64(ticks-before))
				all = append(all, converted{at, line.time(at)})
			}
		}
		tuples := line.kept.tuples()
		for i := 1; i < len(tuples); i++ {
			if tuples[i].Ticks <= tuples[i-1].Ticks || tuples[i].Raw <= tuples[i-1].Raw {
				t.Fatalf("tuples %d and %d do not ascend: %+v", i-1, i, tuples[i-1:i+1])
			}
		}
		for _, c := range all {
			if want := throughTuples(tuples, raw0, real0, c.ticks); math.Abs(float64(c.time-real0)-want) > 2 {
				t.Fatalf("%d ticks: %d ns, by the tuples %.3f", c.ticks-1e12, c.time-real0, want)
			}
		}
	})
}

// A steady counter needs few tuples, however long the job is, and so does a real-time clock that is slewed now and
// then; the tuples tell the real-time clock to the microsecond.
func TestFewTuplesAreKept(t *testing.T) {
	line := newTimeline(tscHeader())
	real := func(raw uint64) uint64 { // 3 ppm fast, from a minute on 2 ppm slow
		d := float64(raw - raw0)
		if d > 60e9 {
			return real0 + uint64(60e9*1.000003+(d-60e9)*0.999998)
		}
		return real0 + uint64(d*1.000003)
	}
	const rounds = 12_000 // four minutes
	for i := range uint64(rounds) {
		raw := raw0 + (i+1)*20_000_000
		ticks := 1e12 + uint64(2.596_1*float64(raw-raw0))
		raw += i * 7919 % 23 // readings are off by as much
		line.add(shm.ClockTuple{Ticks: ticks, Raw: raw, Mono: raw, Real: real(raw)})
	}
	tuples := line.kept.tuples()
	testkit.Check(t, len(tuples) <= 60, "%d tuples for %d readings", len(tuples), rounds)
	k := 1
	for raw := uint64(raw0 + 50_000_000); raw < raw0+rounds*20_000_000; raw += 333_333_333 {
		for k < len(tuples)-1 && tuples[k].Raw < raw {
			k++
		}
		a, b := tuples[k-1], tuples[k]
		got := float64(a.Real-real0) + float64(int64(raw-a.Raw))*float64(b.Real-a.Real)/float64(b.Raw-a.Raw)
		want := float64(real(raw) - real0)
		testkit.Require(t, math.Abs(got-want) <= 1000, "real-time clock at %d: %.0f, want %.0f", raw-raw0, got, want)
	}
}

func TestTuplesAreBounded(t *testing.T) {
	var r readings
	for i := range uint64(3 * maxReadings) {
		r.add(shm.ClockTuple{Ticks: i * 10, Raw: i * 4, Real: i * 4})
	}
	tuples := r.tuples()
	n := len(tuples)
	testkit.Check(t, n <= maxReadings && n >= maxReadings/4, "%d tuples", n)
	testkit.Check(t, tuples[0].Ticks == 0 && tuples[len(tuples)-1].Ticks == (3*maxReadings-1)*10, "from %d to %d",
		tuples[0].Ticks, tuples[len(tuples)-1].Ticks)
}
