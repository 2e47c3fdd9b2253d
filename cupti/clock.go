// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// Clock maps CUPTI's times to another clock, by readings of both at the same moments.
//
// CUPTI's clock is CLOCK_REALTIME in nanoseconds unless a client of CUPTI's has replaced it: it is slewed and stepped
// by NTP, and can go over to another base at any moment. The mapping is linear between two readings. Where the two
// clocks ran too differently between them, CUPTI's jumped at a moment not known: a new segment begins. Times close to a
// jump are mapped from the side that they can only belong to; a time that could belong to two segments, or belongs
// to none, is refused.
type Clock struct {
	segments [][]knot
}

// knot is one reading of both clocks.
type knot struct {
	cupti, line uint64
	off         uint64 // what either may be off by, ns
}

const (
	// NTP slews by up to 500 ppm. More than twice that is no slewing.
	mostSlew = 1e-3
	// What the clock's rate beside the readings may differ from that of the other one.
	unknownRate = 1e-3
	// A stretch is evidence of the clock's rate in its neighbor if it is at least this part of its length: the errors
	// of its readings are scaled by the ratio.
	leastBeside = 1.0 / 64
	// How far (ns) before the first reading and beyond the last one times are mapped: they are read by a thread that
	// may have to wait for the CPU.
	edge = 1e9
	// Readings that are kept; at one a second, more than two hours.
	mostKnots = 8192
)

// Errors of Clock.Map.
var (
	errUncovered = errors.New("no clock readings for that time")
	ErrUnsure    = errors.New("the clock jumped: the time could be one of two")
)

// Add takes a reading: CUPTI's clock and the other one, both later than before, and the ns within which both were read.
func (c *Clock) Add(cupti, line, width uint64) {
	k := knot{cupti, line, width/2 + 1}
	if n := len(c.segments); n > 0 {
		last := c.segments[n-1]
		p := last[len(last)-1]
		if line <= p.line {
			return
		}
		if math.Abs(residual(p, k, 1)) <= mostSlew*float64(line-p.line)+float64(p.off+k.off) {
			if cupti > p.cupti { // else it is the same moment, as far as the readings tell
				c.segments[n-1] = append(last, k)
				c.prune()
			}
			return
		}
	}
	c.segments = append(c.segments, []knot{k})
	c.prune()
}

// residual returns by how much CUPTI's clock ran faster than the other one from a to b, if a second of the latter is
// rate of its own.
func residual(a, b knot, rate float64) float64 {
	return float64(int64(b.cupti-a.cupti)) - rate*float64(int64(b.line-a.line))
}

func rate(a, b knot) float64 {
	return float64(int64(b.cupti-a.cupti)) / float64(int64(b.line-a.line))
}

func (c *Clock) prune() {
	n := 0
	for _, s := range c.segments {
		n += len(s)
	}
	if n <= mostKnots {
		return
	}
	if len(c.segments[0]) > mostKnots/2 {
		c.segments[0] = slices.Clone(c.segments[0][mostKnots/4:])
		return
	}
	c.segments = slices.Clone(c.segments[1:])
}

// Segments is how many stretches without jumps there are.
func (c *Clock) Segments() int { return len(c.segments) }

// Covered returns the time of CUPTI's clock up to which Map works; false without a reading.
func (c *Clock) Covered() (cupti uint64, ok bool) {
	if len(c.segments) == 0 {
		return 0, false
	}
	last := c.segments[len(c.segments)-1]
	return last[len(last)-1].cupti, true
}

// Map converts a time of CUPTI's, and says by how much (ns) the result may be off.
func (c *Clock) Map(cupti uint64) (line, off uint64, err error) {
	found, known := 0, false
	for i, s := range c.segments {
		if l, o, ok := c.mapWithin(i, s, cupti); ok {
			found++
			if o != noRate {
				line, off, known = l, o, true
			}
		}
	}
	switch {
	case found > 1:
		return 0, 0, ErrUnsure
	case !known:
		return 0, 0, errUncovered
	}
	return line, off, nil
}

// noRate is the uncertainty within a segment of one reading. That says nothing about the rate, which may be that of a
// clock that does not count nanoseconds.
const noRate = math.MaxUint64

// mapWithin maps a time by one segment, which covers its readings, and the time up to the neighboring segments'
// readings: the jump lies somewhere there.
func (c *Clock) mapWithin(i int, s []knot, cupti uint64) (line, off uint64, ok bool) {
	first, last := s[0], s[len(s)-1]
	before, after := first.off+edge, last.off+edge
	if i > 0 {
		p := c.segments[i-1]
		before = first.off + reach(first.line-p[len(p)-1].line)
	}
	if i+1 < len(c.segments) {
		after = last.off + reach(c.segments[i+1][0].line-last.line)
	}
	if cupti < first.cupti-min(before, first.cupti) || cupti > last.cupti+after {
		return 0, 0, false
	}
	if len(s) == 1 {
		if cupti == first.cupti {
			return first.line, first.off, true
		}
		return 0, noRate, true
	}
	at, _ := slices.BinarySearchFunc(s, cupti, func(k knot, v uint64) int { return cmp.Compare(k.cupti, v) })
	outside := at == 0 && cupti != first.cupti || at == len(s)
	at = min(max(at, 1), len(s)-1)
	a, b := s[at-1], s[at]
	r := rate(a, b)
	off = max(a.off, b.off) + c.bendOf(s, at)
	base := a
	if cupti > b.cupti {
		base = b
	}
	distance := float64(int64(cupti - base.cupti))
	if outside {
		r = 1 // the last two readings may lie so close to each other that their rate is anything
		off += uint64(math.Ceil(math.Abs(distance) * unknownRate))
	}
	moved := int64(math.Round(distance / r))
	if before := uint64(max(0, -moved)); before > base.line {
		return 0, off + before - base.line, true
	}
	return base.line + uint64(moved), off, true
}

// reach is how far CUPTI's clock can go in a time of the other one.
func reach(ns uint64) uint64 { return ns + uint64(float64(ns)*mostSlew) + 1 }

// bendOf returns by how much CUPTI's clock can have deviated from the straight line between readings at-1 and at: the
// part that the rates of the neighboring stretches do not explain. It shows a small jump or a change of rate, unless
// the next stretch has another that compensates it. Without a neighbor of sufficient length it is the deviation from a
// rate of 1.
func (c *Clock) bendOf(s []knot, at int) uint64 {
	a, b := s[at-1], s[at]
	least := max(1, uint64(float64(b.line-a.line)*leastBeside))
	most, known := 0.0, false
	beside := func(x, y knot) {
		// The readings beside are off, too, and with them the rate.
		noise := float64(x.off+y.off) * float64(b.line-a.line) / float64(y.line-x.line)
		most, known = max(most, math.Abs(residual(a, b, rate(x, y)))+noise), true
	}
	for i := at - 2; i >= 0; i-- {
		if a.line-s[i].line >= least {
			beside(s[i], a)
			break
		}
	}
	for i := at + 1; i < len(s); i++ {
		if s[i].line-b.line >= least {
			beside(b, s[i])
			break
		}
	}
	if !known {
		most = math.Abs(residual(a, b, 1))
	}
	return uint64(math.Ceil(most))
}
