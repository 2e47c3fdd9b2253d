// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"cmp"
	"math"
	"slices"
)

// Drifts between the clocks of two hosts: crystals are sold as within some 50 ppm, and nothing slews the raw clock.
const (
	likelyDrift  = 30e-6  // usual
	certainDrift = 100e-6 // greatest, for uncertainties
	maxDrift     = 200e-6 // greatest that the fit considers
)

// bounds collects upper and lower bounds on a host's offset. It divides the time into lineBins stretches and keeps the
// few tightest bounds of each, compared along a slope.
type bounds struct {
	from, to               float64 // time of the host
	slope                  float64
	upper, lower           [lineBins][]bound
	upperCount, lowerCount int // bounds added
}

// bound is a bound on a host's offset at a time of its clock.
type bound struct{ time, value float64 }

const (
	lineBins  = 64
	binBounds = 3 // more than one, so that a wrong bound does not hide the right ones
)

func (b *bounds) binIndex(t float64) int {
	if b.to <= b.from {
		return 0
	}
	return min(max(int((t-b.from)/(b.to-b.from)*lineBins), 0), lineBins-1)
}

func (b *bounds) addUpper(t, v float64) {
	b.upperCount++
	keepTightest(&b.upper[b.binIndex(t)], bound{t, v},
		func(x, y bound) bool { return x.value-b.slope*x.time < y.value-b.slope*y.time })
}

func (b *bounds) addLower(t, v float64) {
	b.lowerCount++
	keepTightest(&b.lower[b.binIndex(t)], bound{t, v},
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

// line is a host's offset as a straight line, with the range of its slope.
type line struct {
	time, value, slope float64
	least, most        float64 // slopes that the bounds allow
	room               float64 // distance to the nearest bounds of both sides; 0 if bounds are broken
}

func (l *line) offsetAt(t float64) float64 { return l.value + l.slope*(t-l.time) }

// fitLine returns the line with the most room to the bounds of both sides or, where no line keeps all bounds, the line
// with the least sum of violations, which few wrong bounds move little. Where the bounds allow any drift that clocks
// have, steadyDrift chooses the slope.
func (b *bounds) fitLine() line {
	upper, lower := slices.Concat(b.upper[:]...), slices.Concat(b.lower[:]...)
	s := slopes{upper: upper, lower: lower, middle: (b.from + b.to) / 2, u: make([]float64, len(upper)),
		l: make([]float64, len(lower))}
	best := goldenSection(s.cost, -maxDrift, maxDrift)
	_, least, room := s.bestLine(best)
	within := func(slack float64) func(slope float64) bool {
		return func(slope float64) bool {
			_, broken, _ := s.bestLine(slope)
			return broken <= least+slack
		}
	}
	out := line{time: s.middle, least: edge(within(brokenSlack), best, -maxDrift),
		most: edge(within(brokenSlack), best, maxDrift)}
	// Violations no larger than those that a usual drift causes leave the slope open.
	open := within(brokenSlack + likelyDrift*(b.to-b.from)/2)
	if edge(open, best, maxDrift)-edge(open, best, -maxDrift) > maxDrift && open(0) {
		best, out.least, out.most = b.steadyDrift(best, room), -maxDrift/2, maxDrift/2
	}
	out.slope = best
	out.value, least, out.room = s.bestLine(best)
	if least > 0 {
		out.room = 0
	}
	return out
}

// slopes evaluates lines of a given slope against bounds.
type slopes struct {
	upper, lower []bound
	middle       float64   // time at which lines have their value
	u, l         []float64 // the bounds at middle, for one slope
}

// bestLine returns the best line of a slope: its value at middle, the sum of its violations, and its room.
func (s *slopes) bestLine(slope float64) (value, broken, room float64) {
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
	// Breaking the k tightest bounds of either side leaves room for the rest; k is 0 if no bound is broken.
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

// cost is what the best slope minimizes: the violations or, where there are none, the negative room.
func (s *slopes) cost(slope float64) float64 {
	_, broken, room := s.bestLine(slope)
	if broken > 0 {
		return broken
	}
	return -room
}

// brokenSlack is how much more than the best line another line may break the bounds and still count as equally good,
// ns.
const brokenSlack = 1000

// steadyDrift chooses the drift where the bounds leave it open: the drift for which operations took equally long
// throughout the run, or 0 where the operations do not decide. slope and room are those of the line with the most room.
//
// Of each side it takes the bounds that can be the tightest for a drift that clocks have, and sums their distances from
// their median, so that few slow operations count little. The cost of the drift itself is added. Distances count in
// units of the room, which is about the duration of the shortest operations; drifts count in units of likelyDrift,
// squared. Operations close together in time therefore decide almost nothing. A side counts only if it has such bounds
// at leastTimes distant times, because two always agree with some drift.
//
// The result is a preference among possible drifts: operations that became slower and slower look like a drift.
func (b *bounds) steadyDrift(slope, room float64) float64 {
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

// steadyDrift needs bounds at leastTimes times, each at least the farTimes-th part of the run after the one before.
const (
	leastTimes = 3
	farTimes   = 6
)

// goldenSection returns the minimum of a function that falls and then rises.
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

// edge returns where ok, which is true at from, becomes false on the way to to.
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
