// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"cmp"
	"math"
	"slices"
)

// clockLine is the offset of a GPU's clock in a block.
//
// The line lies below all upper bounds c − g of the block and its neighbors, by the estimated delay of the quickest
// reports. Its slope is judged by the agreement of the quickest reports, and of the last launches, with one line;
// the previous slope (at first 0) is kept unless others are clearly likelier: nearly all scatter is delay.
//
// The delay e of the quickest report is not observed. But delays near the smallest are nearly uniformly distributed
// (polling), so e has the distribution of the distances between the quickest few: exponential, with an unknown rate.
// With a gamma distribution as prior of the rate (priorShape, priorNs: of the order of one report per µs; measured on
// recordings of real NCCL runs), e is Lomax distributed. Its median is the correction, its 95th percentile the
// uncertainty. The common delay of all reports (systematicNs: the stamp's way to the host and one round of NCCL's
// polling; more, sharedDelay, if reports usually are very late) and the stamps' rounding are added, and the lower
// bounds limit it.
//
// This holds for independent delays. On a starved host the reporting thread does not run for milliseconds, and then
// reports everything at once: all late together, some by nearly the same time. A sleeping core takes tens of
// microseconds to wake up, each time about the same. Such reports count as one (fitScratch.fit), and few reports need
// confirmation by launches (fitScratch.confirm).
type clockLine struct {
	g     uint64  // middle of the block
	d     int64   // offset there
	slope float64 // of the offset, ns per ns

	stat     float64 // uncertainty (ns) at pivot
	pivot    float64 // mean place of the quickest reports, less g
	slopeOff Margin  // uncertainty of the slope
	limit    float64 // upper limit by a lower bound
	limitAt  float64 // stamp of limit, less g
	bend     float64 // by how much (ns) the points deviate from one line, beyond chance
	points   int     // number of points in the fit
}

const (
	maxSlope     = 600e-6 // largest error of a clock's rate, and its slewing while it is adjusted (Linux: 500 ppm)
	usualSlope   = 5e-6   // of two oscillators: half of them drift by more
	wander       = 1e-7   // change of a slope within a block: temperature
	quickest     = 5      // number of reports from which the delay of the quickest is estimated
	few          = 3      // the same, if the others are far off
	maxLateNs    = 2000
	priorShape   = 2.0
	priorNs      = 2000.0
	systematicNs = 2000.0

	polledNs = 10_000.0 // a thread that always runs is less late
	idleNs   = 1e6      // some kernel usually begins sooner after its launch
	// number of reports, each from its own run of the thread, that are not all late by milliseconds, the same each time
	many         = 16
	several      = 12       // number that are not all late by less
	unstatedNs   = 1e9      // uncertainty without any evidence
	doubtfulPart = 1.0 / 16 // of what launches leave open, up to idleNs: what fewer that agree may be off by at least
	sharedDelay  = 0.005    // share of the usual delay that all reports may have in common (recordings of starved jobs)

	stretches     = 8
	minBendPoints = 4 * stretches * few // with fewer, some stretch is late by chance
	// times the mean lateness of the quickest: one line in fifty has such a gap by chance
	bendChance = 6.0
	// how much agreement of reports counts: those of a stretch are often late together
	reportsCount = 0.5
	clearly      = 0.15 // chance that the known slope must be too great, or too small, to be given up
	sureOver     = 12.0 // of the slope before, the part of its uncertainty within which it is as often as not
	goesOn       = 0.9  // chance that a clock goes on as before
	slopeMisses  = 0.05 // chance that a slope is off by more than is said
	fitFloorNs   = 300  // differences below this mean nothing
)

func (l *clockLine) offsetAt(g uint64) int64 {
	return l.d + int64(math.Round(l.slope*float64(int64(g-l.g))))
}

// moveTo returns the same line for a block with another middle.
func (l *clockLine) moveTo(g uint64) clockLine {
	m := *l
	moved := float64(int64(g - l.g))
	m.g, m.d, m.pivot, m.limitAt = g, l.offsetAt(g), l.pivot-moved, l.limitAt-moved
	return m
}

// heightAbove returns by how much an upper or lower bound of the offset at g lies above the line.
func (l *clockLine) heightAbove(g uint64, d int64) float64 { return float64(d - l.offsetAt(g)) }

func (l *clockLine) uncertaintyAt(g uint64) Margin {
	x := float64(int64(g - l.g))
	of := func(slopeOff float64) float64 {
		return min(math.Hypot(l.stat, slopeOff*(x-l.pivot)), l.limit+slopeOff*math.Abs(x-l.limitAt))
	}
	return Margin{of(l.slopeOff.most), of(l.slopeOff.usual)}
}

// Margin is the error bound of a mapped time, in ns either way: most, which decides whether stamps can be believed; and
// usual, which holds in 95 of 100 cases, and takes into account by how much two clocks usually drift.
type Margin struct{ most, usual float64 }

// fitScratch is the working memory of a fit.
type fitScratch struct {
	x, y []float64 // relative to the middle of the block and the first point's offset; x rises
	hull []int
	low  []float64
	at   []float64

	distances []float64
	// launches, as reports mirrored: the least are the latest
	launchX, launchY []float64
	chances          []slopeChance
}

// findLowest finds the m least (at most quickest) of y − slope·x in [from, to), in order, and their x. It appends them.
func (f *fitScratch) findLowest(slope float64, from, to, m int) {
	var low, at [quickest]float64
	n, most := 0, math.Inf(1) // most: the greatest found, once there are m
	y := f.y[from:to]
	x := f.x[from:to][:len(y)]
	for i, d := range y {
		r := d - slope*x[i]
		if r >= most {
			continue
		}
		n = min(n+1, m)
		j := n - 1
		for ; j > 0 && low[j-1] > r; j-- {
			low[j], at[j] = low[j-1], at[j-1]
		}
		low[j], at[j] = r, x[i]
		if n == m {
			most = low[n-1]
		}
	}
	f.low, f.at = append(f.low, low[:n]...), append(f.at, at[:n]...)
}

// agreementSpread returns how close the quickest reports lie to a line of a slope: the range of the lower half of the
// two quickest of each stretch. A burst of reports at one time would fit any slope. least is where the quickest is.
//
// Most of a fit's time is spent here: nothing is stored for each report, and most reports only turn out later than two
// others.
func agreementSpread(x, y []float64, slope float64) (spread, least float64) {
	n := len(x)
	var low leastFew
	if n == 0 {
		return 0, 0
	}
	low.most = countAgreeing(n)
	from := 0
	for i := range stretches {
		to := (i + 1) * n / stretches
		y := y[from:to]
		x := x[from:to:to][:len(y)]
		from = to
		least, second := math.Inf(1), math.Inf(1)
		for j, d := range y {
			if r := d - slope*x[j]; r < second {
				if r < least {
					least, second = r, least
				} else {
					second = r
				}
			}
		}
		if len(y) > 0 {
			low.addResidual(least)
		}
		if len(y) > 1 {
			low.addResidual(second)
		}
	}
	return low.v[low.most-1] - low.v[0], low.v[0]
}

// leastFew are the least of some values, in order.
type leastFew struct {
	v       [stretches]float64 // at least as many as countAgreeing returns
	n, most int
}

func (l *leastFew) addResidual(r float64) {
	switch {
	case l.n < l.most:
		l.n++
	case r >= l.v[l.n-1]:
		return
	}
	i := l.n - 1
	for ; i > 0 && l.v[i-1] > r; i-- {
		l.v[i] = l.v[i-1]
	}
	l.v[i] = r
}

// countAgreeing returns the number of reports whose range agreementSpread returns.
func countAgreeing(n int) int {
	return max(min(quickest, n), min(2*stretches, n)/2)
}

// fitPoints fits a line to points, to be used around the stamp middle.
//
// Reports of one run of the thread are not independent: two that are closer together than the uncertainty may be late
// for one reason. They count as one, and the line is fitted again, until its uncertainty is less than the distance of
// the reports. If too few remain, only launches show how late they were.
func (f *fitScratch) fitPoints(points []point, middle uint64, before *clockLine, grain float64) clockLine {
	f.selectQuickest(points, middle, polledNs)
	f.selectLaunches(points, middle)
	l := clockLine{g: middle}
	l.slope, l.slopeOff = f.chooseSlope(before, float64(points[len(points)-1].g-points[0].g+1), grain)
	f.selectQuickest(points, middle, 0)
	l = f.fitSelected(points, l, grain)
	doubtful := l.limit > polledNs && slices.ContainsFunc(points, func(p point) bool { return p.launched }) &&
		!f.confirmLine(&l, points, grain)
	if doubtful && l.limit > idleNs {
		l.moveBetween()
		return l
	}
	for distance := polledNs; l.stat > distance; {
		distance = max(l.stat, 2*distance)
		f.selectQuickest(points, middle, distance)
		l = f.fitSelected(points, l, grain)
		if len(f.x) <= few {
			l.stat = l.limit
			break
		}
	}
	if doubtful {
		l.stat = max(l.stat, doubtfulPart*l.limit)
	}
	return l
}

// confirmLine reports whether the reports of a line show by themselves that the quickest of them were not late: many,
// each from its own run of the thread, that agree as those of a thread do that always runs. Otherwise kernels may have
// come late, or all reports were late, even by nearly the same time when threads take turns or cores were asleep, and
// the truth is anywhere between reports and launches: probably at the reports if these are close.
func (f *fitScratch) confirmLine(l *clockLine, points []point, grain float64) bool {
	if l.possibleLateness() > polledNs {
		return false
	}
	f.selectQuickest(points, l.g, polledNs)
	if n := len(f.x); n <= several || n <= many && l.limit > idleNs {
		return false
	}
	w := f.fitSelected(points, *l, grain)
	return w.possibleLateness() <= polledNs
}

// possibleLateness returns the possible delay of the quickest reports.
func (l *clockLine) possibleLateness() float64 { return l.stat - l.bend }

// moveBetween moves the line halfway between the quickest reports and the limit of launches.
func (l *clockLine) moveBetween() {
	if l.limit >= unstatedNs {
		l.stat = unstatedNs
		return
	}
	half := l.limit / 2
	l.d -= int64(half)
	l.stat = half + maxLateNs + l.bend
}

// selectQuickest selects the reports to fit to: the quickest of those less than distance (ns) after one another.
func (f *fitScratch) selectQuickest(points []point, middle uint64, distance float64) {
	f.selectAll(points, middle)
	if distance <= 0 {
		return
	}
	x, y := f.x, f.y[:len(f.x)]
	last, before := 0, x[0]+y[0] // before: when the last one was reported
	for i := 1; i < len(x); i++ {
		switch at := x[i] + y[i]; {
		case math.Abs(at-before) >= distance:
			last++
			x[last], y[last], before = x[i], y[i], at
		case y[i] < y[last]:
			x[last], y[last], before = x[i], y[i], at
		}
	}
	f.x, f.y = x[:last+1], y[:last+1]
}

// selectAll selects the reports of points, by their stamps.
func (f *fitScratch) selectAll(points []point, middle uint64) {
	most := 2 * len(points)
	x, y := slices.Grow(f.x[:0], most)[:most], slices.Grow(f.y[:0], most)[:most]
	n, first := 0, points[0].d
	for i := range points {
		p := &points[i]
		g, d, g2, d2 := p.g, p.d, p.g2, p.d2
		if g2 != 0 && g2 < g {
			g, d, g2, d2 = g2, d2, g, d
		}
		x[n], y[n] = float64(int64(g-middle)), float64(d-first)
		n++
		if g2 != 0 {
			x[n], y[n] = float64(int64(g2-middle)), float64(d2-first)
			n++
		}
	}
	f.x, f.y = x[:n], y[:n]
}

// selectLaunches selects the lower bounds of points.
func (f *fitScratch) selectLaunches(points []point, middle uint64) {
	f.launchX, f.launchY = f.launchX[:0], f.launchY[:0]
	for i := range points {
		if p := &points[i]; p.begin != 0 {
			f.launchX = append(f.launchX, -float64(int64(p.begin-middle)))
			f.launchY = append(f.launchY, -float64(p.least-points[0].d))
		}
	}
}

// fitSelected fits a line with the slope of another to the selected reports.
func (f *fitScratch) fitSelected(points []point, to clockLine, grain float64) clockLine {
	n, slope, middle := len(f.x), to.slope, to.g
	m := min(n, quickest)
	f.low, f.at = f.low[:0], f.at[:0]
	f.findLowest(slope, 0, n, m)
	spread := f.low[m-1] - f.low[0]
	if m > few {
		spread = min(spread, (spread+(quickest-1)/(few-1)*(f.low[few-1]-f.low[0]))/2)
	}
	shape, scale := priorShape+float64(m-1), priorNs+spread
	quantile := func(q float64) float64 { return scale * (math.Pow(1-q, -1/shape) - 1) }
	late, most := min(quantile(0.5), maxLateNs), quantile(0.95)

	l := clockLine{g: middle, slope: slope, d: points[0].d + int64(math.Round(f.low[0]-late)), slopeOff: to.slopeOff,
		limit: math.Inf(1), points: n}
	for _, x := range f.at[:m] {
		l.pivot += x / float64(m)
	}
	l.bend = f.bendOf(slope)
	shared := max(sharedDelay*f.usualDelay(slope)-systematicNs, 0) // beyond systematicNs
	l.stat = math.Hypot(max(most-late, late), shared) + systematicNs + grain + l.bend
	least := 0.0
	for i := range points {
		p := &points[i]
		if p.begin == 0 {
			continue
		}
		gap := -l.heightAbove(p.begin, p.least)
		if least = min(least, gap); gap < 0 {
			continue
		}
		if limit := max(gap, late) + grain; limit < l.limit {
			l.limit, l.limitAt = limit, float64(int64(p.begin-middle))
		}
	}
	l.stat, l.limit = l.stat-least, l.limit-least // the line lies below the limit of a launch
	return l
}

// usualDelay returns the usual delay of reports against the quickest: the median.
func (f *fitScratch) usualDelay(slope float64) float64 {
	f.distances = f.distances[:0]
	for i, y := range f.y {
		f.distances = append(f.distances, y-slope*f.x[i])
	}
	slices.Sort(f.distances)
	return f.distances[len(f.distances)/2] - f.distances[0]
}

// bendOf returns by how much the quickest reports of some stretch lie farther above the line than chance explains: 0,
// or by how much the truth may be above it there. The distances of the quickest reports of a stretch show how late the
// quickest is.
func (f *fitScratch) bendOf(slope float64) float64 {
	n := len(f.x)
	if n < minBendPoints {
		return 0
	}
	f.low, f.at, f.distances = f.low[:0], f.at[:0], f.distances[:0]
	least, most := math.Inf(1), math.Inf(-1)
	for i := range stretches {
		first := len(f.low)
		f.findLowest(slope, i*n/stretches, (i+1)*n/stretches, few)
		least, most = min(least, f.low[first]), max(most, f.low[first])
		f.distances = append(f.distances, f.low[len(f.low)-1]-f.low[first])
	}
	slices.Sort(f.distances)
	gap := most - least
	if gap < bendChance*f.distances[stretches/2]/(few-1)+fitFloorNs {
		return 0
	}
	return gap
}

// slopeChance is a slope, the logarithms of how likely it is by the points, and by points and clocks, and its share of
// all chances by one of them.
type slopeChance struct{ slope, byPoints, byAll, share float64 }

// chooseSlope returns the most likely slope, and by how much it may be off.
//
// A slope is the likelier, the closer it brings the quickest reports of all parts of the block to one line, and the
// last launches too; and a line must lie below all reports and above all launches. Where that leaves it open, the clock
// goes on as before, and at first most clocks drift by little.
func (f *fitScratch) chooseSlope(before *clockLine, span, grain float64) (best float64, off Margin) {
	floor := grain + fitFloorNs
	try := func(slope float64) {
		if !(math.Abs(slope) <= maxSlope) { // or it is not a number: one report came twice
			return
		}
		spread, least := agreementSpread(f.x, f.y, slope)
		c := -reportsCount * float64(countAgreeing(len(f.x))-1) * math.Log(spread+floor)
		if n := len(f.launchX); n > 0 {
			spread, latest := agreementSpread(f.launchX, f.launchY, slope)
			c -= float64(countAgreeing(n)-1)*math.Log(spread+floor) + max(-least-latest-floor, 0)/floor
		}
		f.chances = append(f.chances, slopeChance{slope, c, c + logPrior(slope, before), 0})
	}
	known := 0.0
	if before != nil {
		known = before.slope
	}
	f.chances = f.chances[:0]
	for _, slope := range []float64{known, 0, -maxSlope, maxSlope} {
		try(slope)
	}
	f.lowerHull()
	for i := 1; i < len(f.hull); i++ {
		a, b := f.hull[i-1], f.hull[i]
		try((f.y[b] - f.y[a]) / (f.x[b] - f.x[a]))
	}
	byAll := func(c slopeChance) float64 { return c.byAll }
	likeliest := slices.MaxFunc(f.chances, func(a, b slopeChance) int { return cmp.Compare(a.byAll, b.byAll) }).slope
	for step := min(floor/16/span, maxSlope/16); step < 2*maxSlope; step *= 1.5 {
		try(likeliest - step)
		try(likeliest + step)
	}
	slices.SortFunc(f.chances, func(a, b slopeChance) int { return cmp.Compare(a.slope, b.slope) })
	f.shareChances(byAll)
	best = min(max(known, f.slopeAbove(clearly)), f.slopeAbove(1-clearly))
	off.usual = f.slopeRadius(best) + wander
	if len(f.x) < quickest { // they agree for some slope by chance
		return best, Margin{maxSlope, off.usual}
	}
	f.shareChances(func(c slopeChance) float64 { return c.byPoints })
	off.most = max(off.usual, f.slopeRadius(best)+wander)
	return best, off
}

// shareChances sets the shares of slopes, which rise, by the logarithms of how likely they are.
func (f *fitScratch) shareChances(of func(slopeChance) float64) {
	n, most, all := len(f.chances), math.Inf(-1), 0.0
	for _, c := range f.chances {
		most = max(most, of(c))
	}
	for i := range f.chances {
		c := &f.chances[i]
		c.share = math.Exp(of(*c)-most) * (f.chances[min(i+1, n-1)].slope - f.chances[max(i-1, 0)].slope)
		all += c.share
	}
	for i := range f.chances {
		f.chances[i].share /= all
	}
}

// slopeAbove returns the slope up to which there is a part of all chances.
func (f *fitScratch) slopeAbove(part float64) float64 {
	for _, c := range f.chances {
		if part -= c.share; part <= 0 {
			return c.slope
		}
	}
	return f.chances[len(f.chances)-1].slope
}

// slopeRadius returns by how much the true slope differs from another, at most, with 95 % of all chances.
func (f *fitScratch) slopeRadius(from float64) (radius float64) {
	left := slopeMisses
	for i, j := 0, len(f.chances)-1; left > 0 && i < j; {
		below, above := from-f.chances[i].slope, f.chances[j].slope-from
		if radius = max(below, above); below > above {
			left -= f.chances[i].share
			i++
		} else {
			left -= f.chances[j].share
			j--
		}
	}
	return radius
}

// logPrior returns the logarithm of how likely a slope is that points say nothing of: usually the one before, now and
// then, and at first, that of two oscillators.
func logPrior(slope float64, before *clockLine) float64 {
	near := func(slope, width float64) float64 { return 1 / (width + slope*slope/width) }
	if before == nil {
		return math.Log(near(slope, usualSlope))
	}
	return math.Log(goesOn*near(slope-before.slope, before.slopeOff.usual/sureOver) +
		(1-goesOn)*near(slope, usualSlope))
}

// lowerHull finds the corners of the points' lower hull; x rises.
func (f *fitScratch) lowerHull() {
	if cap(f.hull) < len(f.x) {
		f.hull = make([]int, len(f.x))
	}
	xs, hull, n := f.x, f.hull[:len(f.x)], 0
	ys := f.y[:len(xs)]
	for i, x := range xs {
		y := ys[i]
		for ; n >= 2; n-- {
			a, b := hull[n-2], hull[n-1]
			if (xs[b]-xs[a])*(y-ys[a])-(ys[b]-ys[a])*(x-xs[a]) > 0 {
				break
			}
		}
		hull[n] = i
		n++
	}
	f.hull = hull[:n]
}
