// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"

	"ncclotf2/plugin/shm"
	"ncclotf2/shard"
)

// timeline converts a process's ticks to nanoseconds of its time line: AnchorReal plus what
// CLOCK_MONOTONIC_RAW has run since AnchorRaw.
//
// It is piecewise linear between clock tuples, so it never decreases. Ticks beyond the last tuple go on with the
// last rate, which happens only at the end of a file that was cut off.
type timeline struct {
	host   bool // ticks are nanoseconds, from the anchor on
	anchor shm.ClockTuple
	knots  []knot
	last   knot
	rate   float64 // nanoseconds per tick over all of a stretch; 0 until it is known
	first  knot    // of the present stretch: since the start or the last jump
	jumps  []shard.Marker
}

// knot is one tuple, and the rate from it to the next.
type knot struct {
	ticks, raw uint64
	rate       float64
}

// Records older than this many rounds are not converted exactly; with rounds of 1 to 20 ms and a
// window of 1 ms, few are older than two.
const maxKnots = 4096

// A stretch of at least this many nanoseconds gives a rate to compare others with, and is worth
// comparing: reading the clocks is off by at most some microseconds if the reader was interrupted.
const comparable = 20e6

func newTimeline(h *shm.Header) *timeline {
	t := &timeline{host: h.ClockSource == shm.ClockHost, anchor: h.Created}
	if h.ClockHz != 0 {
		t.rate = 1e9 / float64(h.ClockHz)
	}
	t.begin(knot{ticks: h.Created.Ticks, raw: h.Created.Raw})
	return t
}

func (t *timeline) begin(k knot) {
	k.rate = t.rate
	t.first, t.last = k, k
	t.knots = append(t.knots, k)
}

// add takes a tuple later than those before.
func (t *timeline) add(c shm.ClockTuple) {
	if t.host || c.Ticks == t.last.ticks || c.Raw == t.last.raw {
		return
	}
	if c.Ticks < t.last.ticks || c.Raw < t.last.raw {
		t.jump(c, fmt.Sprintf("the clock went back from %d to %d ticks", t.last.ticks, c.Ticks))
		if c.Raw < t.last.raw {
			return // nothing sensible can be said until it has caught up
		}
		t.begin(knot{ticks: c.Ticks, raw: c.Raw})
		return
	}
	rate := float64(c.Raw-t.last.raw) / float64(c.Ticks-t.last.ticks)
	if t.rate != 0 && c.Raw-t.last.raw >= comparable && (rate > t.rate*1.01 || rate < t.rate*0.99) {
		t.jump(c, fmt.Sprintf("%d ticks in %d ns, against %.6g ns per tick before", c.Ticks-t.last.ticks, c.Raw-t.last.raw, t.rate))
		t.first = knot{ticks: c.Ticks, raw: c.Raw}
	}
	t.knots[len(t.knots)-1].rate = rate
	t.last = knot{ticks: c.Ticks, raw: c.Raw, rate: rate}
	if c.Raw-t.first.raw >= comparable {
		t.rate = float64(c.Raw-t.first.raw) / float64(c.Ticks-t.first.ticks)
	} else if t.rate == 0 {
		t.last.rate = rate
	}
	if t.rate != 0 {
		t.last.rate = t.rate
	}
	if len(t.knots) >= maxKnots {
		t.knots = append(t.knots[:0], t.knots[maxKnots/2:]...)
	}
	t.knots = append(t.knots, t.last)
}

func (t *timeline) jump(c shm.ClockTuple, text string) {
	t.jumps = append(t.jumps, shard.Marker{
		Time: t.anchor.Real + (c.Raw - t.anchor.Raw), Severity: severityHigh, Category: "NCCL clock",
		Text: "the process's clock jumped (suspended or migrated?): " + text, Location: -1,
	})
}

// time converts ticks to nanoseconds of the time line.
func (t *timeline) time(ticks uint64) uint64 {
	if t.host {
		return t.anchor.Real + (ticks - t.anchor.Ticks)
	}
	i := len(t.knots) - 1
	for i > 0 && t.knots[i].ticks > ticks {
		i--
	}
	k := &t.knots[i]
	base := t.anchor.Real - t.anchor.Raw // modulo 2⁶⁴
	if ticks < k.ticks {
		return base + k.raw - uint64(float64(k.ticks-ticks)*k.rate)
	}
	raw := k.raw + uint64(float64(ticks-k.ticks)*k.rate)
	if i+1 < len(t.knots) && t.knots[i+1].raw >= k.raw {
		raw = min(raw, t.knots[i+1].raw)
	}
	return base + raw
}

// nanoseconds converts a short duration from ticks.
func (t *timeline) nanoseconds(ticks uint64) uint64 {
	if t.host || t.last.rate == 0 {
		return ticks
	}
	return uint64(float64(ticks) * t.last.rate)
}

// before is ticks less a duration in nanoseconds, not below 0.
func (t *timeline) before(ticks, ns uint64) uint64 {
	if !t.host && t.last.rate != 0 {
		ns = uint64(float64(ns) / t.last.rate)
	}
	return ticks - min(ticks, ns)
}
