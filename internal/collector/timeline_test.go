// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

const (
	raw0  = 5_000_000_000_000
	real0 = 1_700_000_000_000_000_000
)

func tscHeader() *shm.Header {
	return &shm.Header{ClockSource: shm.ClockTSC,
		Created: shm.ClockTuple{Ticks: 1e12, Raw: raw0, Mono: raw0 + 7, Real: real0}}
}

// A counter of 2.5 GHz, whose rate drifts slowly, read with an error of up to 100 ns.
func TestTimelineFollowsTheCounter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := newTimeline(tscHeader())
		trueRaw := func(ticks uint64) float64 {
			d := float64(ticks - 1e12)
			return raw0 + d/2.5 + 1e-7*d*math.Sin(d/1e10)
		}
		ticks := uint64(1e12)
		last := uint64(0)
		for range rapid.IntRange(2, 60).Draw(t, "rounds") {
			step := uint64(rapid.IntRange(1_000_000, 50_000_000).Draw(t, "step")) // 0.4 to 20 ms
			before := ticks
			ticks += step
			noise := rapid.IntRange(-100, 100).Draw(t, "noise")
			line.add(shm.ClockTuple{Ticks: ticks, Raw: uint64(int64(trueRaw(ticks)) + int64(noise))})
			for _, f := range []float64{0, 0.3, 0.9999, 1} {
				at := before + uint64(f*float64(step))
				got := line.time(at)
				testkit.Require(t, got >= last, "time went back from %d to %d", last, got)
				last = got
				want := trueRaw(at) - raw0 + 0
				testkit.Require(t, math.Abs(float64(got-real0)-want) <= 250, "%d ns, want %.0f", got-real0, want)
			}
		}
		testkit.Require(t, len(line.jumps) == 0, "jumps: %v", line.jumps)
	})
}

func TestTimelineNeverDecreases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := newTimeline(tscHeader())
		c := shm.ClockTuple{Ticks: 1e12, Raw: raw0}
		for range rapid.IntRange(0, 30).Draw(t, "rounds") {
			// Rates may be anything from a stopped clock to a hundredfold one.
			c.Ticks += rapid.Uint64Range(0, 1e8).Draw(t, "ticks")
			c.Raw += rapid.Uint64Range(0, 1e9).Draw(t, "raw")
			line.add(c)
		}
		last := uint64(0)
		for ticks := uint64(1e12); ticks < c.Ticks+1000; ticks += (c.Ticks-1e12)/997 + 1 {
			got := line.time(ticks)
			testkit.Require(t, got >= last, "%d ticks: time went back from %d to %d", ticks, last, got)
			last = got
		}
		if len(line.knots) > 1 {
			got, want := line.time(line.last.ticks), real0+line.last.raw-raw0
			testkit.Require(t, got == want, "at the last tuple: %d, want %d", got, want)
		}
	})
}

func TestTimelineGoesOnAfterTheLastTuple(t *testing.T) {
	line := newTimeline(tscHeader())
	for i := range uint64(10) {
		line.add(shm.ClockTuple{Ticks: 1e12 + (i+1)*25e6, Raw: raw0 + (i+1)*10e6})
	}
	got := line.time(1e12 + 500e6)
	testkit.Check(t, got == real0+200e6, "%d ns", got-real0)
	// And before the first.
	testkit.Equal(t, int64(line.time(1e12-25e3)-real0), -10e3, "time on the line")
}

func TestTimelineMarksJumps(t *testing.T) {
	for _, tc := range []struct {
		name  string
		tuple shm.ClockTuple // after 100 ms at 2.5 GHz
		want  string
	}{
		{"suspended, counter runs on", shm.ClockTuple{Ticks: 1e12 + 250e6 + 1e12, Raw: raw0 + 150e6},
			"1000000000000 ticks in 50000000 ns"},
		{"suspended, counter stopped", shm.ClockTuple{Ticks: 1e12 + 250e6 + 1000, Raw: raw0 + 5e9}, "1000 ticks in"},
		{"migrated, counter is less", shm.ClockTuple{Ticks: 7e9, Raw: raw0 + 150e6}, "went back"},
	} {
		line := newTimeline(tscHeader())
		for i := range uint64(10) {
			line.add(shm.ClockTuple{Ticks: 1e12 + (i+1)*25e6, Raw: raw0 + (i+1)*10e6})
		}
		line.add(tc.tuple)
		line.add(shm.ClockTuple{Ticks: tc.tuple.Ticks + 50e6, Raw: tc.tuple.Raw + 20e6})
		testkit.Check(t, len(line.jumps) == 1 && strings.Contains(line.jumps[0].Text, tc.want),
			"%s: %v", tc.name, line.jumps)
		// The new stretch is as exact as the old one.
		got, want := line.time(tc.tuple.Ticks+25e6), real0+tc.tuple.Raw-raw0+10e6
		testkit.Check(t, got == want, "%s: %d, want %d", tc.name, got, want)
	}
}

func TestTimelineOfTheHostIsIdentity(t *testing.T) {
	line := newTimeline(&shm.Header{ClockSource: shm.ClockHost,
		Created: shm.ClockTuple{Ticks: 1000, Raw: raw0, Real: real0}})
	line.add(shm.ClockTuple{Ticks: 5000, Raw: raw0 + 99})
	testkit.Check(t, line.time(1000) == real0 && line.time(1_000_001_000) == real0+1e9 && line.time(0) == real0-1000,
		"%v %v", line.time(1000)-real0, line.time(1_000_001_000)-real0)
	testkit.Check(t, line.ticksBefore(1000, 50e6) == 0 && line.ticksBefore(60e6, 50e6) == 10e6, "%v",
		line.ticksBefore(60e6, 50e6))
}
