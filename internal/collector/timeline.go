// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"sort"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// timeline converts a process's ticks to nanoseconds of its time line: AnchorReal plus the time on CLOCK_MONOTONIC_RAW
// since AnchorRaw.
//
// The line consists of few straight pieces and never decreases. It continues straight as long as readings of the clocks
// are within the tolerance for their errors. Otherwise it bends to meet the reading. Ticks after the last reading are
// converted with the last rate; this happens only at the end of a file that was cut off.
type timeline struct {
	host   bool // ticks are nanoseconds since the anchor
	anchor shm.ClockTuple
	knots  []knot // points at which the line bends
	last   knot
	rate   float64        // nanoseconds per tick over the whole stretch; 0: unknown yet
	first  knot           // start of the present stretch: the first reading, or the last jump
	seen   shm.ClockTuple // the last reading
	kept   readings
	jumps  []description.Marker
}

// knot is a point of the line, and the rate from it to the next one.
type knot struct {
	ticks, raw uint64
	rate       float64
}

// maxKnots is the number of bends within which records are converted exactly. The line may bend in each of the first
// rounds, of 1 to 20 ms; with a window of 1 ms, few records are older than two.
const maxKnots = 4096

// comparable is the minimum length, in ns, of a stretch whose rate is compared with others: an interrupted reading of
// the clocks is off by some microseconds at most.
const comparable = 20e6

// recent is the minimum length, in ns, of a straight piece that determines the rate of the next one, because steered
// counters change their rate.
const recent = 1e9

// tolerance is the distance, in ns, that a reading may have from the line. Readings scatter by some 10 ns.
const tolerance = 50

func newTimeline(h *shm.Header) *timeline {
	t := &timeline{host: h.ClockSource == shm.ClockHost, anchor: h.Created}
	if h.ClockHz != 0 {
		t.rate = 1e9 / float64(h.ClockHz)
	}
	t.begin(h.Created)
	return t
}

func (t *timeline) begin(c shm.ClockTuple) {
	t.seen, t.first = c, knot{ticks: c.Ticks, raw: c.Raw}
	t.bend(c, t.rate)
}

// bend adds a point to the line, after which it has the given rate.
func (t *timeline) bend(c shm.ClockTuple, rate float64) {
	if len(t.knots) >= maxKnots {
		t.knots = append(t.knots[:0], t.knots[maxKnots/2:]...)
	}
	if n := len(t.knots); n > 0 && t.knots[n-1].ticks == c.Ticks {
		t.knots = t.knots[:n-1]
	}
	t.last = knot{ticks: c.Ticks, raw: c.Raw, rate: rate}
	t.knots = append(t.knots, t.last)
	t.kept.add(c)
}

// add adds a reading of the clocks, later than all before.
func (t *timeline) add(c shm.ClockTuple) {
	if t.host || c.Ticks == t.seen.Ticks || c.Raw == t.seen.Raw {
		return
	}
	before := t.seen
	if c.Ticks < before.Ticks || c.Raw < before.Raw {
		t.jump(c, fmt.Sprintf("the clock went back from %d to %d ticks", before.Ticks, c.Ticks))
		if c.Raw < before.Raw {
			return // ignore readings until the clock has caught up
		}
		before.Raw = t.rawAt(before.Ticks)
		t.bend(before, t.last.rate) // the end of the line so far
		c.Raw = max(c.Raw, before.Raw)
		t.begin(c)
		return
	}
	t.seen = c
	rate := float64(c.Raw-before.Raw) / float64(c.Ticks-before.Ticks)
	jumped := t.rate != 0 && c.Raw-before.Raw >= comparable && (rate > t.rate*1.01 || rate < t.rate*0.99)
	if jumped {
		t.jump(c, fmt.Sprintf("%d ticks in %d ns, against %.6g ns per tick before", c.Ticks-before.Ticks,
			c.Raw-before.Raw, t.rate))
		t.first = knot{ticks: c.Ticks, raw: c.Raw}
	}
	if c.Raw-t.first.raw >= comparable {
		t.rate = float64(c.Raw-t.first.raw) / float64(c.Ticks-t.first.ticks)
	}
	if t.rate != 0 {
		rate = t.rate
	}
	if at := t.rawAt(c.Ticks); !jumped && t.last.rate != 0 && max(at, c.Raw)-min(at, c.Raw) <= tolerance {
		onLine := c
		onLine.Raw = at
		t.kept.see(onLine)
		return
	}
	// Times before the last reading may have been converted already.
	before.Raw = t.rawAt(before.Ticks)
	c.Raw = max(c.Raw, before.Raw)
	if from := t.last; !jumped && c.Raw-from.raw >= recent {
		rate = float64(c.Raw-from.raw) / float64(c.Ticks-from.ticks)
	}
	t.bend(before, float64(c.Raw-before.Raw)/float64(c.Ticks-before.Ticks))
	t.bend(c, rate)
}

// rawAt returns the raw clock's value, by the line, at ticks not before the last bend.
func (t *timeline) rawAt(ticks uint64) uint64 {
	return t.last.raw + uint64(float64(ticks-t.last.ticks)*t.last.rate)
}

func (t *timeline) jump(c shm.ClockTuple, text string) {
	t.jumps = append(t.jumps, description.Marker{
		Time: t.anchor.Real + (c.Raw - t.anchor.Raw), Severity: regions.SeverityHigh, Category: "NCCL clock",
		Text: "the process's clock jumped (suspended or migrated?): " + text, Location: -1,
	})
}

// time converts ticks to nanoseconds of the time line.
func (t *timeline) time(ticks uint64) uint64 {
	if t.host {
		return t.anchor.Real + (ticks - t.anchor.Ticks)
	}
	i := len(t.knots) - 1
	for near := 8; i > 0 && t.knots[i].ticks > ticks; i-- {
		if near--; near == 0 { // records that were put off may be much older
			i = max(1, sort.Search(i, func(k int) bool { return t.knots[k].ticks > ticks }))
		}
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

// ticksBefore returns ticks minus a duration in nanoseconds, at least 0.
func (t *timeline) ticksBefore(ticks, ns uint64) uint64 {
	if !t.host && t.last.rate != 0 {
		ns = uint64(float64(ns) / t.last.rate)
	}
	return ticks - min(ticks, ns)
}
