// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Timer is the time source of a Score-P measurement (SCOREP_TIMER).
type Timer uint8

const (
	unknownTimer Timer = iota
	tickTimer          // "tsc": the processor's counter, unscaled
	rawTimer           // "clock_gettime" before release 9: CLOCK_MONOTONIC_RAW, ns
	steeredTimer       // "clock_gettime" from release 9 on: CLOCK_MONOTONIC, ns
	realTimer          // "gettimeofday": CLOCK_REALTIME, µs
)

// String returns the timer's name in SCOREP_TIMER.
func (t Timer) String() string {
	return [...]string{"unknown", "tsc", "clock_gettime", "clock_gettime", "gettimeofday"}[t]
}

// Ticks per second of timers with a fixed resolution.
const (
	nanosecondTicks  = 1_000_000_000
	microsecondTicks = 1_000_000
)

// timers returns the possible timers of the measurement, the likeliest first. If the settings are missing, the
// resolution decides. The processor's counter remains possible, as Score-P's estimate of its resolution may be a round
// number.
func (m *Trace) timers() []Timer {
	nanoseconds := rawTimer
	if release(m.Archive.Anchor.Creator) >= steeredSince {
		nanoseconds = steeredTimer
	}
	switch {
	case m.timer == rawTimer:
		return []Timer{nanoseconds}
	case m.timer != unknownTimer:
		return []Timer{m.timer}
	case m.Archive.Defs.Clock.Resolution == nanosecondTicks:
		return []Timer{nanoseconds, tickTimer}
	case m.Archive.Defs.Clock.Resolution == microsecondTicks:
		return []Timer{realTimer, tickTimer}
	}
	return []Timer{tickTimer}
}

// steeredSince is the first release of Score-P that prefers CLOCK_MONOTONIC to CLOCK_MONOTONIC_RAW.
const steeredSince = 9

// release returns the major release of Score-P that wrote a trace; 0 if another tool did.
func release(creator string) int {
	version, ok := strings.CutPrefix(creator, "Score-P ")
	if !ok {
		return 0
	}
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return n
}

// counters lists the values of provenance.Clock.Source whose ticks equal those of Score-P's "tsc".
var counters = []string{"tsc", "cntvct"}

// Transfer converts a process's times to a measurement's: by a piecewise linear function to the measurement's local
// ticks, then by the measurement's clock corrections. It computes exactly, with rational numbers.
type Transfer struct {
	x     []uint64 // the process's times in ns, ascending
	y     []uint64 // the measurement's local ticks there, times scale
	scale int64
	clock []otf2.ClockOffset // corrections; nil: none
	Shift int64              // ns added to times first, if the process uses another one's clock

	straight bool // local ticks are ns, and differ from the process's times by a constant
}

// newTransfer relates a process's clock to a timer. The error states what is missing.
func newTransfer(p *description.Process, by Timer, clock []otf2.ClockOffset) (*Transfer, error) {
	c := &p.Clock
	t := &Transfer{scale: 1, clock: clock}
	if len(clock) < 2 {
		t.clock = nil
	}
	if c.Source == jobs.HostClock || c.AnchorRaw == 0 {
		return nil, fmt.Errorf("times that are not of the machine's clocks (source %q)", c.Source)
	}
	if by == rawTimer { // the difference is constant and known
		t.x = []uint64{c.AnchorReal, c.AnchorReal + nanosecondTicks}
		t.y = []uint64{c.AnchorRaw, c.AnchorRaw + nanosecondTicks}
		t.straight = true
		return t, nil
	}
	if by == tickTimer && !slices.Contains(counters, c.Source) {
		return nil, fmt.Errorf("Score-P's times are the processor's counter, NCCL's are of %s: measure with "+
			"SCOREP_TIMER=clock_gettime", c.Source)
	}
	for _, k := range c.Tuples {
		x, y := c.AnchorReal+(k.Raw-c.AnchorRaw), k.Ticks
		switch by {
		case steeredTimer:
			y = k.Mono
		case realTimer:
			y = k.Real
		}
		if n := len(t.x); n > 0 && (x <= t.x[n-1] || y <= t.y[n-1]) {
			continue // the clock was set back: ignore readings until it has caught up
		}
		t.x, t.y = append(t.x, x), append(t.y, y)
	}
	if by == realTimer {
		t.scale = nanosecondTicks / microsecondTicks
	}
	if len(t.x) < 2 {
		return nil, fmt.Errorf("%d readings of the clocks, two are needed to relate them to Score-P's timer %v",
			len(c.Tuples), by)
	}
	return t, nil
}

func integer(v uint64) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(v), big.NewInt(1))
}

// onLine returns the value at x of the line through two points.
func onLine(x, x0, y0, x1, y1 *big.Rat) *big.Rat {
	v := new(big.Rat).Sub(x, x0)
	v.Mul(v, new(big.Rat).Sub(y1, y0))
	v.Quo(v, new(big.Rat).Sub(x1, x0))
	return v.Add(v, y0)
}

// exact returns the measurement's global time for a time of the process.
func (t *Transfer) exact(at uint64) *big.Rat {
	at += uint64(t.Shift)
	i := 0
	for i < len(t.x)-2 && at > t.x[i+1] {
		i++
	}
	v := onLine(integer(at), integer(t.x[i]), integer(t.y[i]), integer(t.x[i+1]), integer(t.y[i+1]))
	v.Quo(v, new(big.Rat).SetInt64(t.scale))
	if t.clock == nil {
		return v
	}
	k := 0
	for k < len(t.clock)-2 && v.Cmp(integer(uint64(t.clock[k+1].Time))) > 0 {
		k++
	}
	a, b := &t.clock[k], &t.clock[k+1]
	offset := func(c *otf2.ClockOffset) *big.Rat { return new(big.Rat).SetInt64(c.Offset) }
	return v.Add(v, onLine(v, integer(uint64(a.Time)), offset(a), integer(uint64(b.Time)), offset(b)))
}

// bends returns the process's times at which the slope of exact changes, ascending.
func (t *Transfer) bends() []uint64 {
	var all []uint64
	for i := 1; i < len(t.x)-1; i++ {
		all = append(all, t.x[i]-uint64(t.Shift))
	}
	for k := 1; k < len(t.clock)-1; k++ {
		// The time, rounded up, at which the local ticks reach the correction's.
		y := integer(uint64(t.clock[k].Time))
		y.Mul(y, new(big.Rat).SetInt64(t.scale))
		i := 0
		for i < len(t.y)-2 && y.Cmp(integer(t.y[i+1])) > 0 {
			i++
		}
		v := onLine(y, integer(t.y[i]), integer(t.x[i]), integer(t.y[i+1]), integer(t.x[i+1]))
		if v.Sign() < 0 {
			continue
		}
		whole := new(big.Int).Quo(v.Num(), v.Denom())
		if whole.IsUint64() {
			all = append(all, whole.Uint64()+1-uint64(t.Shift))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Readers compute an offset as the last one plus slope times the time since, with a slope of 53 bits. Over this many
// ns, at 10 ticks per ns, that is accurate to 0.01 ticks.
const longestStretch = 1 << 40

const (
	// A record may be up to nearby ns later than ideal. Within that range, pointNear looks for a time whose exact ticks
	// differ from a whole number by at most wholeEnough, because offsets are whole: then the line between two records
	// is nearly exact.
	nearby      = 1 << 16
	wholeEnough = 0.001
	// Maximum error, in ticks, from a bend that is placed later for that reason.
	bendTicks = 0.01
	// ns by which the last record is later than the last event in the process's description. If the process died there
	// may be later events, and extrapolation from two records close to each other is inaccurate.
	beyond = 60 * nanosecondTicks
)

// Records returns clock offsets with which readers convert every time of the process from first to last to the
// measurement's nearest tick, or to an adjacent one if the exact time is between two ticks.
func (t *Transfer) Records(first, last uint64) []otf2.ClockOffset {
	if t.straight && t.clock != nil { // readers apply the measurement's own corrections
		knots := make([]otf2.ClockOffset, len(t.clock))
		for i, c := range t.clock {
			at := uint64(c.Time) - t.y[0] + t.x[0] - uint64(t.Shift)
			knots[i] = otf2.ClockOffset{Time: otf2.Timestamp(at), Offset: int64(uint64(c.Time) + uint64(c.Offset) - at)}
		}
		return knots
	}
	last = max(last, first) + beyond
	points := []uint64{first}
	for _, b := range append(t.bends(), last) {
		if b <= first || b > last {
			continue
		}
		before := points[len(points)-1]
		for b-before > longestStretch {
			before += longestStretch / 2
			points = append(points, before)
		}
		points = append(points, b)
	}
	var knots []otf2.ClockOffset
	slope := math.NaN()
	for i, p := range points {
		next := p + nearby
		if i+1 < len(points) {
			next = points[i+1]
		}
		before := slope
		slope = t.slope(p, next)
		room := min(uint64(nearby), next-p)
		if bend := math.Abs(slope - before); i+1 < len(points) && bend > 0 {
			room = min(room, uint64(bendTicks/bend)+1)
		}
		knots = append(knots, t.pointNear(p, slope, room))
	}
	return knots
}

// slope returns the slope of the line between two times.
func (t *Transfer) slope(a, b uint64) float64 {
	d := new(big.Rat).Sub(t.exact(b), t.exact(a))
	v, _ := d.Quo(d, integer(b-a)).Float64()
	return v
}

// pointNear returns an offset at time p, or less than room ns later, where the exact ticks are nearly whole.
func (t *Transfer) pointNear(p uint64, slope float64, room uint64) otf2.ClockOffset {
	begin := t.exact(p)
	part, _ := new(big.Rat).Sub(begin, new(big.Rat).SetInt(floor(begin))).Float64()
	best, least := uint64(0), math.Inf(1)
	for n := uint64(0); n < room && least > wholeEnough; n++ {
		v := part + slope*float64(n)
		if off := math.Abs(v - math.Round(v)); off < least-1e-9 {
			best, least = n, off
		}
	}
	at := p + best
	v := t.exact(at)
	whole := floor(v.Add(v, big.NewRat(1, 2)))
	return otf2.ClockOffset{Time: otf2.Timestamp(at), Offset: int64(whole.Uint64() - at)}
}

// floor returns the greatest whole number that is not above v.
func floor(v *big.Rat) *big.Int {
	q, _ := new(big.Int).DivMod(v.Num(), v.Denom(), new(big.Int))
	return q
}
