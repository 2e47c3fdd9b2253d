// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Method names, in archives, how the clocks of their hosts were aligned.
const Method = "collectives and messages"

// Options configure Fit; nil means the zero value.
type Options struct {
	Workers  int                   // goroutines; 0 means one per processor
	Progress func(done, total int) // in events read
	Readings []Reading             // of the hosts' time services
}

// Hosts maps a process (the lower half of a location's id, see package scorep) to the number of its host. Hosts are
// numbered from 0 without gaps. All processes of a host share one clock.
type Hosts []int

// hostOf returns the host of a location; for a process that is not listed, the host of process 0.
func (h Hosts) hostOf(l otf2.LocationRef) int {
	if process := uint32(l); int(process) < len(h) {
		return h[process]
	}
	return 0
}

// count returns the number of hosts.
func (h Hosts) count() int {
	if len(h) == 0 {
		return 0
	}
	return slices.Max(h) + 1
}

// Fitted is the result of Fit.
type Fitted struct {
	Hosts     []Host // by host number
	Exchanges int    // operations and messages that constrain clocks of different hosts
	Readings  int    // readings of time services that were used
	// Broken counts the exchanges used (all, or the tightest of very many) that the corrections do not keep, outliers
	// included.
	Broken   int
	Problems []string // one line for each file that could not be read to its end
}

// Host is the result for one host.
type Host struct {
	// Reference is the host that this one was fitted to, directly or through others. It is the host's own number if the
	// host is the reference or if no exchange ties it to another.
	Reference int
	// Tied reports whether exchanges tie the host to others.
	Tied bool
	// OneSided means that all exchanges with other hosts go one way, so that the clock is bounded on one side only. The
	// clock is then moved by no more than it takes for no message to arrive before it was sent.
	OneSided bool
	// Knots is the correction at increasing times of the host's clock. It is linear between the knots and continues
	// beyond them, as readers apply clock offsets; it is empty where there is no correction. StdDev is the uncertainty,
	// ± ns, and may be infinite.
	Knots       []otf2.ClockOffset
	Constraints int // exchanges with this host
	Outliers    int // times of the host, or exchanges with it, that contradicted the others
	// DriftUncertainty is the uncertainty of the drift (ns per ns) before the first and after the last knot.
	DriftUncertainty float64
}

// At returns the correction at a time of the host's clock and its uncertainty, both in ns. The uncertainty is infinite
// for hosts that are bounded on one side only.
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

// Fit reads the archive at path and returns how the clocks of its hosts ran against each other. The times in the
// archive must not have been corrected between hosts yet.
//
// Fit needs no measurement of its own: a collective cannot end anywhere before its last rank entered, and a message
// cannot arrive before it was sent. Each such exchange bounds the difference of two clocks from one side; exchanges in
// both directions bound it from both sides. Fit combines the bounds of a whole run in three steps:
//
//  1. Straight lines (fitLines, relaxLines). From the reference outwards (the first host of each connected group), each
//     host gets the offset and drift with the most room to its bounds or, where no line keeps them all, the one that
//     breaks them least. Where the bounds leave the drift open, steadyDrift chooses it. Then all lines move together by
//     as little as it takes to keep all exchanges. Times that contradict the rest by far are outliers; the lines are
//     fitted again without them.
//  2. Knots (improveCurves), every 10 s or, in long runs, more. Near each knot the exchanges are difference constraints
//     between the hosts' offsets. Shortest paths over all hosts give the greatest and the least offset of each host;
//     the result is the middle. Where several offsets keep all exchanges, those are preferred with which collectives
//     end at about the same time everywhere (commonEnds). The curve keeps every exchange at and between the knots,
//     because an exchange belongs to all knots of the stretches that its times lie in. Exchanges that contradict each
//     other a little all get the same slack; those that contradict each other more are outliers.
//  3. Uncertainties (uncertainties). The uncertainty at a knot is the distance to the greatest and the least offset
//     when each exchange counts only for its own time: with the distance to the knot, the possible error of the drift
//     widens it.
//
// Fit does not assume that messages take equally long in both directions, or that any operation is fast. An exchange in
// both directions determines an offset to half the sum of the two durations.
//
// Fit streams the rows of communicator ranks only. Memory is bounded by the pending operations and by the number of
// exchanges kept (maxInstants).
func Fit(path string, hosts Hosts, opts *Options) (*Fitted, error) {
	opts = cmp.Or(opts, new(Options))
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
	// Each member gets a window of the archive's reader, between 4 and 64 KiB.
	if a, err = otf2.Open(path, &otf2.ReadOptions{Memory: max(4<<10, (64<<20)/largest)}); err != nil {
		return nil, err
	}
	defer a.Close()
	progress := opts.Progress
	if progress == nil {
		progress = func(int, int) {}
	}
	found := newExchanges(maxInstants)
	stretches, _ := property.Stretches(a.Anchor)
	r := &exchangeReader{
		archive: a, hosts: hosts, stretches: stretches, out: found, workers: workers,
		window: min(1024, max(32, (1<<18)/largest)), pending: 1 << 16, progress: progress,
	}
	r.read()
	return fitWith(found, hosts.count(), opts.Readings, a.Defs.Clock.Offset, workers, r.problems), nil
}

// fitWith fits clocks to exchanges and to readings of time services.
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
	// contradiction is how much exchanges may contradict each other without being outliers, ns: GPU times are mapped to
	// the host's clock with an error of some microseconds.
	contradiction = 10_000
	// wander is how much a crystal's drift changes in wanderTime (ns) or longer, mostly with temperature.
	wander     = 1e-6
	wanderTime = 100e9
	// knotDistance is the least distance between knots, ns; maxKnots is the greatest number of them.
	knotDistance = 10e9
	maxKnots     = 1024
	// knotExchanges is how many exchanges a stretch between knots should have.
	knotExchanges = 8
	// curveRounds is how often curves of several stretches are improved.
	curveRounds = 3
)

// fitExchanges fits clocks to exchanges; their times count from origin.
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
	p.fitLines()
	byLine := func(h int32, t float64) float64 { return p.lines[h].offsetAt(t) }
	from, to := p.span(byLine)
	for range 3 {
		p.relaxLines(from, to)
		if p.dropOutliers(contradiction+wander*(to-from)/8, byLine) == 0 {
			break
		}
		p.fitLines()
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
			p.improveCurves(knots, tolerance, workers)
			p.dropOutliers(2*tolerance, p.byCurve)
			continue
		}
		p.xs = append(p.xs, p.commonEnds(len(knots))...)
		p.improveCurves(knots, tolerance, workers)
		p.xs = p.xs[:len(xs)]
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
				Time: t, Offset: int64(math.RoundToEven(p.curves[h].offsetAt(float64(int64(t - origin))))),
				StdDev: uncertainty[k][h],
			})
		}
	}
	fit.Broken = fit.countBroken(xs, origin)
	return fit
}

func (p *problem) byCurve(h int32, t float64) float64 { return p.curves[h].offsetAt(t) }

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

// countBroken counts the exchanges that the written corrections do not keep.
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

// span returns the time of the first and the last exchange on corrected clocks; at is the correction.
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

// makeCurves turns the lines into curves with knots and returns the knots' times on the references' clocks.
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
			c.value = append(c.value, l.offsetAt(own))
		}
	}
	return knots
}

// stretchOf returns the number of the stretch between knots that a time lies in.
func (p *problem) stretchOf(s instant, knots int) int {
	k, _ := slices.BinarySearch(p.curves[s.host].time, s.time)
	return min(max(k-1, 0), knots-2)
}

// exchangesByKnot lists the exchanges that belong to each knot.
func (p *problem) exchangesByKnot(knots int) [][]int32 {
	all := make([][]int32, knots)
	for i := range p.xs {
		x := &p.xs[i]
		if x.outlier {
			continue
		}
		first, last := knots-2, 0
		for _, list := range [2][]instant{x.begins, x.ends} {
			for _, s := range list {
				k := p.stretchOf(s, knots)
				first, last = min(first, k), max(last, k)
			}
		}
		for k := first; k <= last+1; k++ {
			all[k] = append(all[k], int32(i))
		}
	}
	return all
}

// knotResult is the greatest and the least change of each host's offset at a knot.
type knotResult struct {
	system      *knotSystem
	most, least []float64
}

func (r *knotResult) bounded(h int) bool {
	return !math.IsInf(r.most[h], 0) && !math.IsInf(r.least[h], 0)
}

func (r *knotResult) middle(h int) float64 { return (r.most[h] + r.least[h]) / 2 }

// improveCurves moves the curves so that they keep the exchanges.
func (p *problem) improveCurves(knots []float64, tolerance float64, workers int) {
	near := p.exchangesByKnot(len(knots))
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
	// A host without bounds at a knot follows the knots where it has bounds, or else its line.
	wanted := make([][]float64, len(knots))
	for k := range wanted {
		wanted[k] = make([]float64, p.hosts)
	}
	for h := range p.hosts {
		fillGaps(knots, results, wanted, h)
	}
	eachOf(len(knots), workers, func(k int) {
		r := &results[k]
		change := r.system.chooseOffsets(r.most, r.least, wanted[k])
		for h := range p.hosts {
			p.curves[h].value[k] += change[h]
		}
	})
	for i := range p.xs {
		if dropped[int32(i)] && !p.xs[i].hint {
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

// uncertainties returns the uncertainty of the curves (by knot and host) and of their slopes (by host).
//
// At first a slope is only known to be a drift that clocks can have. Widened by the uncertainty of the slopes times
// their distance, the exchanges bound the offsets at the knots; the offsets at two knots in turn bound the slope
// between them. The two steps alternate until neither improves the other.
func (p *problem) uncertainties(knots []float64, workers int) (all [][]float64, drift []float64) {
	near := p.exchangesByKnot(len(knots))
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
		spreadUncertainty(knots, all, drift[h], h)
	}
	return all, drift
}

// spreadUncertainty bounds the uncertainty at each knot by that at other knots plus what the drift adds in between.
func spreadUncertainty(knots []float64, all [][]float64, drift float64, h int) {
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
