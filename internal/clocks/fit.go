// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Method is what archives say of how their hosts' clocks were brought together.
const Method = "collectives and messages"

// Options say how Fit works; nil means the zero value.
type Options struct {
	Workers  int                   // goroutines; 0: as many as processors
	Progress func(done, total int) // of the events that are read
	Readings []Reading             // of hosts' time services
}

// Hosts numbers the hosts of an archive's processes, from 0 without gaps: by process, which is the lower half of a
// location's id (see package scorep). What runs on one host has one clock.
type Hosts []int

// of is the host of a location, that of process 0 for locations of processes that are not listed.
func (h Hosts) of(l otf2.LocationRef) int {
	if process := uint32(l); int(process) < len(h) {
		return h[process]
	}
	return 0
}

// number is how many there are.
func (h Hosts) number() int {
	if len(h) == 0 {
		return 0
	}
	return slices.Max(h) + 1
}

// Fitted is how the clocks of hosts went against each other.
type Fitted struct {
	Hosts     []Host // by number
	Exchanges int    // operations and messages between hosts that say something about their clocks
	Readings  int    // of time services that say something of them
	// of those used (all, or the tighter ones of very many), what the result does not keep: outliers among them
	Broken   int
	Problems []string // files that could not be read to their end
}

// Host is what was found about one host.
type Host struct {
	// Reference is the host that this one was fitted to, through others if need be; its own number if it is the
	// reference itself, or nothing ties it to another.
	Reference int
	// Tied tells whether exchanges tie the host to others at all.
	Tied bool
	// OneSided: all exchanges between it and others go one way, so that its clock is bounded on one side
	// only. It is as it was, moved by what it takes to have no message arrive before it was sent.
	OneSided bool
	// Knots is the correction, at increasing times of the host's clock, as readers apply clock offsets: linear between
	// the knots, and on beyond them. It is empty where there is none. StdDev is the uncertainty, ns either way, which
	// may be infinite.
	Knots       []otf2.ClockOffset
	Constraints int // exchanges that it took part in
	Outliers    int // times of the host, or exchanges with it, that contradicted the others
	// DriftUncertainty is by how much its drift may be off beyond the first and the last knot.
	DriftUncertainty float64
}

// At gives the correction at a time of the host's clock and its uncertainty, which is infinite for one-sided
// hosts.
func (h *Host) At(t otf2.Timestamp) (offset int64, uncertainty float64) {
	if len(h.Knots) < 2 {
		if h.Tied && !h.OneSided {
			return 0, 0
		}
		return 0, math.Inf(1)
	}
	offset = int64(otf2.Corrected(h.Knots, uint64(t)) - uint64(t))
	i := 0
	for i < len(h.Knots)-2 && t > h.Knots[i+1].Time {
		i++
	}
	a, b := &h.Knots[i], &h.Knots[i+1]
	if math.IsInf(a.StdDev+b.StdDev, 1) {
		return offset, math.Inf(1)
	}
	part := float64(int64(t-a.Time)) / float64(b.Time-a.Time)
	inside := min(max(part, 0), 1)
	uncertainty = a.StdDev + inside*(b.StdDev-a.StdDev)
	return offset, uncertainty + math.Abs(part-inside)*float64(b.Time-a.Time)*h.DriftUncertainty
}

// Fit reads the archive and finds how the clocks of its hosts went against each other. Times must not have been
// corrected yet between hosts.
//
// It needs no measurement of its own: a collective cannot end anywhere before its last rank entered, a message cannot
// arrive before it was sent. Each such exchange (see exchange) bounds the difference of two clocks from one side; what
// goes both ways bounds it from both. The bounds of a whole run are put together in three steps:
//
//  1. Straight lines, from the reference (the first host of each group that hangs together) outwards: for each host the
//     offset and drift with the most room to its bounds, or where none keeps them all the one that breaks them least
//     (place). Where the bounds leave the drift open, the one with which operations took equally long all the time is
//     preferred (steady). Then all lines together are moved by as little as it takes to keep all exchanges (relaxLines).
//     Times that contradict the rest by far are outliers; the lines are then fitted again.
//  2. Knots, every 10 s, or more in long runs: near each, the exchanges are difference constraints between
//     the hosts' offsets against the curves so far. Shortest paths over all hosts, chains of hosts included, give the
//     greatest and the least offset of each; the result is the middle. It keeps every exchange, at the knots and
//     between them: an exchange belongs to all knots of the stretches that its times lie in. Where exchanges
//     contradict each other a little, all are given the same slack; where more, those are outliers.
//  3. The uncertainty of a host at a knot is how far its greatest and its least offset are when each exchange counts
//     only for its time: with the distance to the knot it is widened by what the drifts may be off (uncertainties).
//
// What is not assumed: that messages take as long in both directions, or that anything is fast. An offset is known as
// well as the operations are short: for an exchange both ways to half the sum of the two times.
//
// It reads the rows of communicator ranks only, as a stream; memory is bounded by what is pending and by the
// number of exchanges that are kept (maxInstants).
func Fit(path string, hosts Hosts, opts *Options) (*Fitted, error) {
	if opts == nil {
		opts = new(Options)
	}
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	a, err := otf2.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	largest := 1
	for _, g := range a.Defs.Groups {
		largest = max(largest, len(g.Members))
	}
	// A window of the archive's reader per member, between 4 and 64 KiB.
	if a, err = otf2.Open(path, &otf2.ReadOptions{Memory: max(4<<10, (64<<20)/largest)}); err != nil {
		return nil, err
	}
	defer a.Close()
	progress := opts.Progress
	if progress == nil {
		progress = func(int, int) {}
	}
	found := newExchanges(maxInstants)
	stretches, _ := facts.Stretches(a.Anchor)
	r := &exchangeReader{
		archive: a, hosts: hosts, stretches: stretches, out: found, workers: workers,
		window: min(1024, max(32, (1<<18)/largest)), pending: 1 << 16, progress: progress,
	}
	r.read()
	return fitWith(found, hosts.number(), opts.Readings, a.Defs.Clock.Offset, workers, r.problems), nil
}

// fitWith fits clocks to what operations and time services say.
func fitWith(found *exchanges, hosts int, readings []Reading, origin uint64, workers int, problems []string) *Fitted {
	operations, all := found.total, hosts
	if found.addReadings(readings, int32(hosts), origin) {
		all++
	} else {
		readings = nil
	}
	fit := fitExchanges(all, found.list(), otf2.Timestamp(origin), workers)
	fit.Hosts = fit.Hosts[:hosts]
	fit.Exchanges, fit.Readings, fit.Problems = operations, len(readings), problems
	return fit
}

// Tuning of the fit.
const (
	// contradiction is by how much exchanges may contradict each other without being wrong, ns: GPU times are
	// mapped to the host's clock to within some microseconds.
	contradiction = 10_000
	// wander is by how much a crystal's drift changes during wanderTime (ns) and longer, mostly with temperature.
	wander     = 1e-6
	wanderTime = 100e9
	// knotDistance is the least distance of knots, ns; maxKnots their number.
	knotDistance = 10e9
	maxKnots     = 1024
	// knotExchanges is how many exchanges a stretch between knots should have.
	knotExchanges = 8
	// curveRounds is how often curves of several stretches are improved.
	curveRounds = 3
)

// fitExchanges fits clocks to exchanges whose times count from origin.
func fitExchanges(hosts int, xs []exchange, origin otf2.Timestamp, workers int) *Fitted {
	p := newProblem(hosts, xs)
	fit := &Fitted{Hosts: make([]Host, hosts)}
	constraints := p.countConstraints()
	for h := range fit.Hosts {
		fit.Hosts[h] = Host{Reference: p.reference[h], Tied: constraints[h] > 0, Constraints: constraints[h]}
	}
	if len(xs) == 0 {
		return fit
	}
	p.place()
	byLine := func(h int32, t float64) float64 { return p.lines[h].at(t) }
	from, to := p.span(byLine)
	for range 3 {
		p.relaxLines(from, to)
		if p.dropOutliers(contradiction+wander*(to-from)/8, byLine) == 0 {
			break
		}
		p.place()
	}
	from, to = p.span(byLine)
	knots := p.makeCurves(from, to)
	rounds := 1
	if len(knots) > 2 {
		rounds = curveRounds
	}
	for round := range rounds {
		tolerance := float64(contradiction)
		if round < rounds-1 {
			tolerance += 2 * wander * (to - from)
		}
		p.improve(knots, tolerance, workers)
		if round < rounds-1 {
			p.dropOutliers(2*tolerance, p.byCurve)
		}
	}
	uncertainty, drift := p.uncertainties(knots, workers)
	for h := range fit.Hosts {
		c := &fit.Hosts[h]
		c.Outliers, c.OneSided = p.outliers[h], c.Tied && c.Reference != h && math.IsInf(uncertainty[0][h], 1)
		if !c.Tied || c.Reference == h {
			continue
		}
		c.DriftUncertainty = drift[h]
		for k := range knots {
			t := origin + otf2.Timestamp(int64(math.Round(p.curves[h].time[k])))
			c.Knots = append(c.Knots, otf2.ClockOffset{
				Time: t, Offset: int64(math.RoundToEven(p.curves[h].at(float64(int64(t - origin))))),
				StdDev: uncertainty[k][h],
			})
		}
	}
	fit.Broken = fit.countBroken(xs, origin)
	return fit
}

func (p *problem) byCurve(h int32, t float64) float64 { return p.curves[h].at(t) }

func (p *problem) countConstraints() []int {
	n, last := make([]int, p.hosts), make([]int, p.hosts)
	for i := range p.xs {
		for _, list := range [2][]instant{p.xs[i].begins, p.xs[i].ends} {
			for _, s := range list {
				if last[s.host] != i+1 {
					last[s.host] = i + 1
					n[s.host]++
				}
			}
		}
	}
	return n
}

// countBroken counts exchanges that the written corrections do not keep.
func (f *Fitted) countBroken(xs []exchange, origin otf2.Timestamp) int {
	broken := 0
	at := func(s instant) int64 {
		t := int64(math.Round(s.time))
		offset, _ := f.Hosts[s.host].At(origin + otf2.Timestamp(t))
		return t + offset
	}
	for i := range xs {
		after, before := int64(math.MinInt64), int64(math.MaxInt64)
		for _, b := range xs[i].begins {
			after = max(after, at(b))
		}
		for _, e := range xs[i].ends {
			before = min(before, at(e))
		}
		if before < after || xs[i].outlier {
			broken++
		}
	}
	return broken
}

// span is when the exchanges took place, on corrected clocks.
func (p *problem) span(at func(int32, float64) float64) (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	for i := range p.xs {
		if x := &p.xs[i]; !x.outlier {
			for _, s := range [2]instant{x.begins[0], x.ends[0]} {
				t := s.time + at(s.host, s.time)
				from, to = min(from, t), max(to, t)
			}
		}
	}
	if from > to {
		from, to = 0, 0
	}
	return from, to
}

// makeCurves turns the lines into curves with knots, and returns the knots' times on the references' clocks.
func (p *problem) makeCurves(from, to float64) []float64 {
	n := min(int((to-from)/knotDistance), maxKnots, len(p.xs)/knotExchanges)
	n = max(n, 1)
	step := max((to-from)/float64(n), 1e9)
	knots := make([]float64, n+1)
	for k := range knots {
		knots[k] = from + float64(k)*step
	}
	p.curves = make([]curve, p.hosts)
	for h := range p.curves {
		c := &p.curves[h]
		for _, t := range knots {
			// The host's time at the knot: t = time + line(time), and lines are almost level.
			l := &p.lines[h]
			own := l.time + (t-l.time-l.value)/(1+l.slope)
			c.time = append(c.time, own)
			c.value = append(c.value, l.at(own))
		}
	}
	return knots
}

// near lists the exchanges that belong to each knot.
func (p *problem) near(knots int) [][]int32 {
	all := make([][]int32, knots)
	for i := range p.xs {
		x := &p.xs[i]
		if x.outlier {
			continue
		}
		first, last := knots-2, 0
		for _, list := range [2][]instant{x.begins, x.ends} {
			for _, s := range list {
				c := &p.curves[s.host]
				k, _ := slices.BinarySearch(c.time, s.time)
				k = min(max(k-1, 0), knots-2)
				first, last = min(first, k), max(last, k)
			}
		}
		for k := first; k <= last+1; k++ {
			all[k] = append(all[k], int32(i))
		}
	}
	return all
}

// knotResult is what was found at a knot: the greatest and the least change of each host's offset.
type knotResult struct {
	system      *knotSystem
	most, least []float64
}

func (r *knotResult) bounded(h int) bool {
	return !math.IsInf(r.most[h], 0) && !math.IsInf(r.least[h], 0)
}

func (r *knotResult) middle(h int) float64 { return (r.most[h] + r.least[h]) / 2 }

// improve moves the curves so that they keep the exchanges.
func (p *problem) improve(knots []float64, tolerance float64, workers int) {
	near := p.near(len(knots))
	results := make([]knotResult, len(knots))
	eachOf(len(knots), workers, func(k int) {
		r := &results[k]
		r.system = newKnotSystem(p, near[k], knots[k])
		r.most, r.least = r.system.solve(tolerance)
	})
	dropped := make(map[int32]bool)
	for k := range results {
		for i := range results[k].system.skip {
			dropped[i] = true
		}
	}
	// A host that has no bounds at a knot goes between those where it has, else along its line.
	wanted := make([][]float64, len(knots))
	for k := range wanted {
		wanted[k] = make([]float64, p.hosts)
	}
	for h := range p.hosts {
		fillGaps(knots, results, wanted, h)
	}
	eachOf(len(knots), workers, func(k int) {
		r := &results[k]
		change := r.system.settle(r.most, r.least, wanted[k])
		for h := range p.hosts {
			p.curves[h].value[k] += change[h]
		}
	})
	for i := range p.xs {
		if dropped[int32(i)] {
			p.dropExchange(&p.xs[i])
		}
	}
}

// fillGaps interpolates a host's change over knots without bounds.
func fillGaps(knots []float64, results []knotResult, wanted [][]float64, h int) {
	before := -1
	for k := range knots {
		if !results[k].bounded(h) {
			continue
		}
		wanted[k][h] = results[k].middle(h)
		for j := before + 1; j < k; j++ {
			wanted[j][h] = wanted[k][h]
			if before >= 0 {
				wanted[j][h] = wanted[before][h] + (wanted[k][h]-wanted[before][h])*
					(knots[j]-knots[before])/(knots[k]-knots[before])
			}
		}
		before = k
	}
	if before >= 0 {
		for j := before + 1; j < len(knots); j++ {
			wanted[j][h] = wanted[before][h]
		}
	}
}

// uncertainties finds how far off the curves may be at the knots (by knot and host), and their slopes.
//
// At first all that is known of a slope is what clocks can part by. With that the exchanges, each widened by what the
// slopes of its hosts may be off times its distance, bound the offsets at the knots; and what is known of
// the offsets at two knots bounds the slope between them. So one makes the other better until neither does.
func (p *problem) uncertainties(knots []float64, workers int) (all [][]float64, drift []float64) {
	near := p.near(len(knots))
	systems := make([]*knotSystem, len(knots))
	all = make([][]float64, len(knots))
	for k := range knots {
		systems[k] = newKnotSystem(p, near[k], knots[k])
		systems[k].widen, all[k] = make([]float64, p.hosts), make([]float64, p.hosts)
		a := min(k, len(knots)-2)
		for h := range p.hosts {
			if c := &p.curves[h]; p.reference[h] != h {
				systems[k].widen[h] = certainDrift + math.Abs((c.value[a+1]-c.value[a])/(c.time[a+1]-c.time[a]))
			}
		}
	}
	for better := true; better; {
		eachOf(len(knots), workers, func(k int) {
			s := systems[k]
			s.slack = 0
			most, least := s.solve(math.Inf(1))
			for h := range p.hosts {
				if all[k][h] = max(most[h], -least[h], 0); all[k][h] > 0 {
					all[k][h] += s.slack
				}
			}
		})
		better = false
		for k := range knots {
			a, b := max(k-1, 0), min(k+1, len(knots)-1)
			for h := range p.hosts {
				distance := knots[b] - knots[a]
				slope := (all[a][h]+all[b][h])/distance + wander*min(1, distance/wanderTime)
				if old := &systems[k].widen[h]; slope < *old {
					better = better || slope < *old*0.95
					*old = slope
				}
			}
		}
	}
	drift = make([]float64, p.hosts)
	for h := range p.hosts {
		for k := range knots {
			drift[h] = max(drift[h], systems[k].widen[h])
		}
		spread(knots, all, drift[h], h)
	}
	return all, drift
}

// spread bounds the uncertainty at knots by that at others and what the drift adds on the way.
func spread(knots []float64, all [][]float64, drift float64, h int) {
	for k := 1; k < len(knots); k++ {
		all[k][h] = min(all[k][h], all[k-1][h]+drift*(knots[k]-knots[k-1]))
	}
	for k := len(knots) - 2; k >= 0; k-- {
		all[k][h] = min(all[k][h], all[k+1][h]+drift*(knots[k+1]-knots[k]))
	}
}

// eachOf calls f for 0…n−1 from several goroutines.
func eachOf(n, workers int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
