// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"math"
	"math/bits"
)

// clockCorrection turns a location's local ticks into the archive's clock. Between two offsets the correction is
// linear; times before the first offset use the first interval, times after the last one the last interval's
// slope. A time at the border of two intervals belongs to the earlier one.
type clockCorrection struct {
	intervals []clockInterval
}

type clockInterval struct {
	begin, end uint64
	offset     int64
	slope      float64
	resolution uint64 // corrected ticks per second, if times are wanted in nanoseconds; else 0
}

// newClockCorrection returns nil if there are fewer than two offsets, which have no effect, and times are wanted in
// ticks (resolution 0).
func newClockCorrection(offsets []ClockOffset, resolution uint64) *clockCorrection {
	c := &clockCorrection{}
	if len(offsets) < 2 {
		if resolution == 0 {
			return nil
		}
		c.intervals = []clockInterval{{end: math.MaxUint64, resolution: resolution}}
		return c
	}
	for i := range len(offsets) - 1 {
		c.intervals = append(c.intervals, intervalOf(&offsets[i], &offsets[i+1], resolution))
	}
	return c
}

func intervalOf(a, b *ClockOffset, resolution uint64) clockInterval {
	return clockInterval{
		begin: uint64(a.Time), end: uint64(b.Time), offset: a.Offset,
		// The differences are exact, their conversion is not: the order matters for the last digit.
		slope:      float64(b.Offset-a.Offset) / float64(uint64(b.Time)-uint64(a.Time)),
		resolution: resolution,
	}
}

// Corrected returns the time that readers compute for a time of a location, in ticks, with these clock offsets, at
// increasing times: fewer than two have no effect.
func Corrected(offsets []ClockOffset, t uint64) uint64 {
	if len(offsets) < 2 {
		return t
	}
	i := 0
	for i < len(offsets)-2 && t > uint64(offsets[i+1].Time) {
		i++
	}
	v := intervalOf(&offsets[i], &offsets[i+1], 0)
	return v.apply(t)
}

// locate returns the interval of time t, searching from interval i on.
func (c *clockCorrection) locate(t uint64, i int) int {
	for i < len(c.intervals)-1 && t > c.intervals[i].end {
		i++
	}
	return i
}

// apply corrects t by the interval's line.
func (v *clockInterval) apply(t uint64) uint64 {
	var d float64
	if t >= v.begin {
		d = float64(t - v.begin)
	} else {
		d = -float64(v.begin - t)
	}
	t += uint64(v.offset + int64(math.RoundToEven(v.slope*d)))
	if v.resolution != 0 {
		return nanoseconds(t, v.resolution)
	}
	return t
}

// nanoseconds converts ticks of a resolution (per second) to nanoseconds, rounded down.
func nanoseconds(ticks, resolution uint64) uint64 {
	hi, lo := bits.Mul64(ticks, 1e9)
	if hi >= resolution {
		return math.MaxUint64
	}
	ns, _ := bits.Div64(hi, lo, resolution)
	return ns
}
