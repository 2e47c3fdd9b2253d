// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Timer is the time source of a Score-P measurement (SCOREP_TIMER).
type Timer uint8

const (
	unknownTimer Timer = iota
	tickTimer          // "tsc": the processor's counter, as it stands
	rawTimer           // "clock_gettime" before release 9: CLOCK_MONOTONIC_RAW, ns
	steeredTimer       // "clock_gettime" from release 9 on: CLOCK_MONOTONIC, ns
	realTimer          // "gettimeofday": CLOCK_REALTIME, µs
)

// String is the timer as SCOREP_TIMER names it.
func (t Timer) String() string {
	return [...]string{"unknown", "tsc", "clock_gettime", "clock_gettime", "gettimeofday"}[t]
}

// ticks per second of timers that have a fixed number.
const (
	nanosecondTicks  = 1_000_000_000
	microsecondTicks = 1_000_000
)

// timers lists the possible timers of the measurement, the likeliest first. Without its settings the resolution is the
// evidence: Score-P estimates that of the processor's counter, which may happen to be a round number.
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

// release is the major release of Score-P that made a trace; 0 if another tool did.
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

// counters are the values of experiment.Clock.Source whose ticks are those of Score-P's "tsc".
var counters = []string{"tsc", "cntvct"}

// Transfer converts a process's times to those of a measurement: along a line through points to the measurement's local
// ticks, and then by the measurement's corrections. It is exact: numbers are rational.
type Transfer struct {
	x     []uint64 // ns of the process's time line, ascending
	y     []uint64 // scale times the measurement's local ticks
	scale int64
	clock []otf2.ClockOffset // fewer than two: none
	Shift int64              // added to times before all that: of a process that goes by another one's clock

	straight bool // local ticks are nanoseconds of a clock from which the process's time is a constant away
}

// newTransfer relates a process's clock to a timer. Its error names what is missing.
func newTransfer(p *experiment.Process, by Timer, clock []otf2.ClockOffset) (*Transfer, error) {
	c := &p.Clock
	t := &Transfer{scale: 1, clock: clock}
	if len(clock) < 2 {
		t.clock = nil
	}
	if c.Source == jobs.HostClock || c.AnchorRaw == 0 {
		return nil, fmt.Errorf("times that are not of the machine's clocks (source %q)", c.Source)
	}
	if by == rawTimer { // their difference is known, and the same for ever
		t.x = []uint64{c.AnchorReal, c.AnchorReal + nanosecondTicks}
		t.y = []uint64{c.AnchorRaw, c.AnchorRaw + nanosecondTicks}
		t.straight = true
		return t, nil
	}
	if by == tickTimer && !slices.Contains(counters, c.Source) {
		return nil,
			fmt.Errorf(
				"Score-P's times are the processor's counter, NCCL's are of %s: measure with "+
					"SCOREP_TIMER=clock_gettime",
				c.Source)
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
			continue // the clock was set back, or jumped: what was said before holds until it has caught up
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

// onLine is the value at x of the line through two points.
func onLine(x, x0, y0, x1, y1 *big.Rat) *big.Rat {
	v := new(big.Rat).Sub(x, x0)
	v.Mul(v, new(big.Rat).Sub(y1, y0))
	v.Quo(v, new(big.Rat).Sub(x1, x0))
	return v.Add(v, y0)
}

// exact is the measurement's global time of a process's time.
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

// bends lists the process's times at which the line of exact changes its direction, ascending.
func (t *Transfer) bends() []uint64 {
	var all []uint64
	for i := 1; i < len(t.x)-1; i++ {
		all = append(all, t.x[i]-uint64(t.Shift))
	}
	for k := 1; k < len(t.clock)-1; k++ {
		// The time at which the local ticks are those of the correction, rounded up.
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
// nanoseconds and at 10 ticks in each that is good for 0.01 ticks.
const longestStretch = 1 << 40

const (
	// How far, in ns, a record may be behind where it would be. Within that a time is looked for whose ticks are nearly
	// a whole number, to so many ticks, as offsets are whole: then the line between two records is the exact one.
	nearby      = 1 << 16
	wholeEnough = 0.001
	// By how many ticks the line may be off because it bends at another place for that.
	bendTicks = 0.01
	// The last record is so much later than the last event that the process's description knows of: where it died there
	// may be others, and a line through two records close to each other does not go far.
	beyond = 60 * nanosecondTicks
)

// Records are clock offsets that make readers give every time of the process from first to last the measurement's
// nearest tick, or the one beside it where the exact time lies between two.
func (t *Transfer) Records(first, last uint64) []otf2.ClockOffset {
	if t.straight && t.clock != nil { // readers do with these times what they do with the measurement's own
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

// slope is that of the straight line between two times.
func (t *Transfer) slope(a, b uint64) float64 {
	d := new(big.Rat).Sub(t.exact(b), t.exact(a))
	v, _ := d.Quo(d, integer(b-a)).Float64()
	return v
}

// pointNear returns a time at p, or less than room after it, whose exact value is nearly whole.
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

// floor is the greatest whole number that is not above v.
func floor(v *big.Rat) *big.Int {
	q, _ := new(big.Int).DivMod(v.Num(), v.Denom(), new(big.Int))
	return q
}
