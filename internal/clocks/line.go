// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"cmp"
	"math"
	"slices"
)

// How fast two machines' clocks part: crystals are sold to within some 50 ppm, and nothing slews the raw clock.
const (
	likelyDrift  = 30e-6  // as a rule
	certainDrift = 100e-6 // at most, as far as uncertainties are concerned
	maxDrift     = 200e-6 // the most that is looked for
)

// bounds collects what a host's offset has to lie between: lower and upper bounds at points of time. Of
// each of lineBins stretches it keeps the few tightest, seen along a slope.
type bounds struct {
	from, to     float64 // the host's time
	slope        float64
	upper, lower [lineBins][]bound
	uppers, lows int // given
}

// bound is a bound on a host's offset at a time of its clock.
type bound struct{ time, value float64 }

const (
	lineBins  = 64
	binBounds = 3 // more than one, so that a wrong one does not hide the right ones
)

func (b *bounds) bin(t float64) int {
	if b.to <= b.from {
		return 0
	}
	return min(max(int((t-b.from)/(b.to-b.from)*lineBins), 0), lineBins-1)
}

func (b *bounds) below(t, v float64) {
	b.uppers++
	keepTightest(&b.upper[b.bin(t)], bound{t, v},
		func(x, y bound) bool { return x.value-b.slope*x.time < y.value-b.slope*y.time })
}

func (b *bounds) above(t, v float64) {
	b.lows++
	keepTightest(&b.lower[b.bin(t)], bound{t, v},
		func(x, y bound) bool { return x.value-b.slope*x.time > y.value-b.slope*y.time })
}

func keepTightest(kept *[]bound, x bound, tighter func(x, y bound) bool) {
	i := len(*kept)
	for i > 0 && tighter(x, (*kept)[i-1]) {
		i--
	}
	if i == binBounds {
		return
	}
	*kept = slices.Insert(*kept, i, x)
	if len(*kept) > binBounds {
		*kept = (*kept)[:binBounds]
	}
}

// line is a host's offset as a straight line through value at time, and the range of its slope.
type line struct {
	time, value, slope float64
	least, most        float64 // slopes that the bounds allow
	room               float64 // to the nearest bounds of both sides; 0 if bounds are broken
}

func (l *line) at(t float64) float64 { return l.value + l.slope*(t-l.time) }

// fit finds the line with the most room to bounds of both sides or, where no line keeps them all, the one that
// breaks them least (the sum of what it breaks them by: few wrong bounds do not move it far). Where the bounds
// allow any drift that clocks have, it is the steady one.
func (b *bounds) fit() line {
	upper, lower := slices.Concat(b.upper[:]...), slices.Concat(b.lower[:]...)
	s := slopes{upper: upper, lower: lower, middle: (b.from + b.to) / 2, u: make([]float64, len(upper)),
		l: make([]float64, len(lower))}
	best := goldenSection(s.cost, -maxDrift, maxDrift)
	_, least, room := s.at(best)
	within := func(slack float64) func(slope float64) bool {
		return func(slope float64) bool {
			_, broken, _ := s.at(slope)
			return broken <= least+slack
		}
	}
	out := line{time: s.middle, least: edge(within(brokenSlack), best, -maxDrift),
		most: edge(within(brokenSlack), best, maxDrift)}
	// Bounds that are broken by no more than what usual drifts make of the time leave the slope open.
	open := within(brokenSlack + likelyDrift*(b.to-b.from)/2)
	if edge(open, best, maxDrift)-edge(open, best, -maxDrift) > maxDrift && open(0) {
		best, out.least, out.most = b.steady(best, room), -maxDrift/2, maxDrift/2
	}
	out.slope = best
	out.value, least, out.room = s.at(best)
	if least > 0 {
		out.room = 0
	}
	return out
}

// slopes tells how lines of a slope stand to bounds.
type slopes struct {
	upper, lower []bound
	middle       float64   // time at which lines have their value
	u, l         []float64 // the bounds there, for one slope
}

// at gives the best line of a slope: its value in the middle, by how much it breaks the bounds, the
// room that it leaves.
func (s *slopes) at(slope float64) (value, broken, room float64) {
	u, l := s.u, s.l
	for i, p := range s.upper {
		u[i] = p.value - slope*(p.time-s.middle)
	}
	for i, p := range s.lower {
		l[i] = p.value - slope*(p.time-s.middle)
	}
	slices.Sort(u)
	slices.SortFunc(l, func(x, y float64) int {
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	// With the k tightest of either side broken there is room for the rest; 0 if nothing is broken.
	k := 0
	for k < min(len(u), len(l)) && u[k] < l[k] {
		k++
	}
	high, low := math.Inf(1), math.Inf(-1)
	if k < len(u) {
		high = u[k]
	}
	if k < len(l) {
		low = l[k]
	}
	if k > 0 {
		high, low = min(high, l[k-1]), max(low, u[k-1])
	}
	value, room = (high+low)/2, (high-low)/2
	for _, v := range u[:k] {
		broken += max(0, value-v)
	}
	for _, v := range l[:k] {
		broken += max(0, v-value)
	}
	return value, broken, room
}

// cost is what the best slope has least of: what is broken or, of those that break nothing, room, with the sign
// changed.
func (s *slopes) cost(slope float64) float64 {
	_, broken, room := s.at(slope)
	if broken > 0 {
		return broken
	}
	return -room
}

// brokenSlack is how much more a line may break bounds that contradict each other, ns, to be as good as the best.
const brokenSlack = 1000

// steady is the drift that is preferred where the bounds leave it open (slope and room are those of the line with the
// most room): that with which operations took equally long all the time, or none where they do not tell.
//
// Of each side it takes the bounds that can be the tightest for a drift that clocks have, and adds up their distances
// from their median: few slow operations do not count for much. Against that stands the drift itself. The
// distances count in units of the room, which is about what the shortest operations took, drifts in units of
// likelyDrift, squared. So operations that lie close together tell next to nothing. A side tells
// nothing at all unless such bounds are at three times far from each other: two always agree with some drift.
//
// It is a preference among what is possible, no more: operations that took longer and longer look like a drift.
func (b *bounds) steady(slope, room float64) float64 {
	reach := certainDrift * (b.to - b.from)
	var sides [][]bound
	for i, bins := range [2]*[lineBins][]bound{&b.upper, &b.lower} {
		sign := float64(1 - 2*i)
		looseness := func(p bound) float64 { return sign * (p.value - slope*(p.time-b.from)) }
		all := slices.Concat(bins[:]...)
		tightest := math.Inf(1)
		for _, p := range all {
			tightest = min(tightest, looseness(p))
		}
		all = slices.DeleteFunc(all, func(p bound) bool { return looseness(p) > tightest+reach })
		slices.SortFunc(all, func(p, q bound) int { return cmp.Compare(p.time, q.time) })
		times, last := 0, math.Inf(-1)
		for _, p := range all {
			if p.time-last >= (b.to-b.from)/farTimes {
				times, last = times+1, p.time
			}
		}
		if times >= leastTimes {
			sides = append(sides, all)
		}
	}
	if len(sides) == 0 {
		return 0
	}
	room = max(room, brokenSlack)
	return goldenSection(func(slope float64) float64 {
		unlikely := slope / likelyDrift
		cost := unlikely * unlikely / 2
		for _, side := range sides {
			values := make([]float64, len(side))
			for i, p := range side {
				values[i] = p.value - slope*(p.time-b.from)
			}
			slices.Sort(values)
			for _, v := range values {
				cost += math.Abs(v-values[len(values)/2]) / room
			}
		}
		return cost
	}, -certainDrift, certainDrift)
}

// Bounds have to agree at leastTimes times for steady, each a timesApart-th of the run from the one before.
const (
	leastTimes = 3
	farTimes   = 6
)

// goldenSection finds the least value of a function that falls and then rises.
func goldenSection(f func(float64) float64, a, b float64) float64 {
	ratio := (math.Sqrt(5) - 1) / 2
	x, y := b-ratio*(b-a), a+ratio*(b-a)
	fx, fy := f(x), f(y)
	for b-a > 1e-12 {
		if fx <= fy {
			b, y, fy = y, x, fx
			x = b - ratio*(b-a)
			fx = f(x)
		} else {
			a, x, fx = x, y, fy
			y = a + ratio*(b-a)
			fy = f(y)
		}
	}
	return (a + b) / 2
}

// edge finds where ok, true at from, ends on the way to to.
func edge(ok func(float64) bool, from, to float64) float64 {
	if ok(to) {
		return to
	}
	for range 40 {
		middle := (from + to) / 2
		if ok(middle) {
			from = middle
		} else {
			to = middle
		}
	}
	return from
}
