// SPDX-License-Identifier: Apache-2.0

// Package compare finds what changed between two runs: it pairs operations by kind, and determines confidence
// intervals that hold for all of them together.
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Options configure the comparison of two runs.
type Options struct {
	// MinChange is the smallest change reported, as a fraction of the operation's time in the first run.
	MinChange float64
	// WarmUp is the number of operations of each kind on each communicator (for messages: each pair) that are ignored
	// at first.
	WarmUp int
}

// confidence is the probability that all intervals of a Comparison hold together.
const confidence = 0.99

// Comparison says what took longer in run B than in run A.
//
// Operations are of one kind if they have the same function, the same size, communicators of one shape (ranks, and
// ranks per host), the same kind of launch (alone or in a group), and times of the same source. Communicators of a
// shape are matched in the order of their creation. The operations of each kind in A and B are paired: those with the
// same ordinal on the same communicator, or, if most have no such partner, the n-th of A with the n-th of B.
//
// A figure of a kind has changed if its interval excludes "no change" and the change is at least MinChange. All
// intervals hold together with a probability of Confidence: each is so wide that even among many kinds none is
// reported by chance. How they are calculated is described in paired.go.
type Comparison struct {
	A          Run        `json:"a"`
	B          Run        `json:"b"`
	Confidence float64    `json:"confidence"`
	MinChange  float64    `json:"min_change"`
	WarmUp     int        `json:"warm_up"`
	Tests      int        `json:"tests"`       // number of intervals
	LeastPairs int        `json:"least_pairs"` // number of pairs required to find a change
	Compared   int        `json:"compared"`    // kinds with at least that many pairs
	Slower     int        `json:"slower"`      // kinds that are slower
	Faster     int        `json:"faster"`
	Operations []Row      `json:"operations"` // changed kinds first, the most costly of them first
	OnlyA      []KindOnly `json:"only_a"`
	OnlyB      []KindOnly `json:"only_b"`
}

// Run is one of the two runs.
type Run struct {
	Archive string `json:"archive"`
	// Library is the version of NCCL or RCCL; "" if the archive does not say, or processes differ.
	Library       string   `json:"library_version"`
	Processes     int      `json:"processes"`
	Ranks         int      `json:"ranks"`
	Hosts         int      `json:"hosts"`
	Communicators int      `json:"communicators"` // of more than one rank
	Operations    uint64   `json:"operations"`    // operations that all members ended; a message counts once
	Coupled       uint64   `json:"coupled"`       // those launched with another one, which has the time
	Unfinished    uint64   `json:"unfinished"`    // not ended by all members, or messages with one end
	LeftOut       uint64   `json:"left_out"`      // parts that the members recorded differently
	Lost          uint64   `json:"lost"`          // events of NCCL
	Complete      bool     `json:"complete"`
	Problems      []string `json:"problems"`
}

// Kind identifies operations of one kind.
type Kind struct {
	Ranks     int    `json:"ranks"`
	Hosts     int    `json:"hosts"`
	Layout    string `json:"ranks_per_host"`
	Operation string `json:"operation"`
	Grouped   bool   `json:"grouped"`
	// Equal is the number of operations in a launch if all are equal, so that each has its part of the time; 0: not in
	// such a launch.
	Equal int `json:"launched_together"`
	// Size is in bytes, as nccl-tests counts them; of a class the least.
	Size         uint64              `json:"size"`
	Class        *analysis.SizeClass `json:"size_class,omitempty"`
	TimingSource string              `json:"timing_source"`
}

// KindOnly is a kind that only one run has.
type KindOnly struct {
	Kind
	Operations uint64  `json:"operations"`
	Median     float64 `json:"median_ns"`
}

// Row compares the operations of one kind.
type Row struct {
	Kind
	CommunicatorsA int    `json:"communicators_a"` // of the shape
	CommunicatorsB int    `json:"communicators_b"`
	OperationsA    uint64 `json:"operations_a"` // including warm-up
	OperationsB    uint64 `json:"operations_b"`
	Pairs          int    `json:"pairs"`
	PairedBy       string `json:"paired_by"` // "ordinal" or "order"
	// Verdict is "slower", "faster", "unchanged", or "too few".
	Verdict string `json:"verdict"`
	// Time is from begin to end, the mean of the members. Ratio is B / A.
	Time      Change     `json:"time"`
	Ratio     float64    `json:"ratio"`
	RatioLow  OrInfinite `json:"ratio_low"`
	RatioHigh OrInfinite `json:"ratio_high"`
	// Enqueue is the call on the application's thread, which is not in Time; Skew is waiting for the last member;
	// Transfer is the rest. A part that is known for too few pairs is null.
	Enqueue  *Change `json:"enqueue"`
	Skew     *Change `json:"skew"`
	Transfer *Change `json:"transfer"`
	// WaysA and WaysB have the algorithm, protocol and channels that NCCL chose: "RING/SIMPLE/4".
	WaysA []string `json:"ways_a"`
	WaysB []string `json:"ways_b"`
	// LastA and LastB are the ranks that began last most often in that run, "" if unknown, and their share.
	LastA LastRank `json:"last_a"`
	LastB LastRank `json:"last_b"`
	// Cost is the difference of the times over all operations of B.
	Cost float64 `json:"cost_ns"`
}

// LastRank is the rank that began last most often.
type LastRank struct {
	Rank  string  `json:"rank"`
	Share float64 `json:"share"`
}

// Change is the change of one figure. Times are in nanoseconds.
type Change struct {
	MedianA    float64    `json:"median_a_ns"`
	MedianB    float64    `json:"median_b_ns"`
	Difference float64    `json:"difference_ns"` // estimate of B − A in pairs
	Low        OrInfinite `json:"low_ns"`        // interval of Difference
	High       OrInfinite `json:"high_ns"`
	Share      float64    `json:"share"` // Difference as a fraction of the time of A; for Time: ratio − 1
	Changed    bool       `json:"changed"`
	Samples    int        `json:"samples"` // stretches of pairs, each of which counts once
	// Uncertainty is the possible error of the difference, according to the archives. A smaller difference is no
	// change.
	Uncertainty float64 `json:"uncertainty_ns"`
}

// Runs reads two archives and compares their operations. The archives' definitions must be sound enough to be opened;
// damage to events is reported in the runs' Problems.
func Runs(a, b *otf2.Archive, opts Options) *Comparison {
	sa, problemsA := readSamples(a, opts.WarmUp)
	sb, problemsB := readSamples(b, opts.WarmUp)
	c := compareSamples(sa, sb, opts)
	c.A, c.B = sa.describeRun(a, problemsA), sb.describeRun(b, problemsB)
	return c
}

func (s *samples) describeRun(a *otf2.Archive, problems []string) Run {
	ps := selfreport.PropertiesOf(a.Anchor)
	r := Run{
		Archive: a.Path(), Ranks: len(s.ranks), Communicators: len(s.shapes), Operations: s.operations,
		Coupled:    s.coupled,
		Unfinished: s.unfinished, LeftOut: s.leftOut, Complete: !ps.Incomplete(),
		Problems: append([]string{}, problems...),
	}
	hosts, processes := make(map[string]bool), make(map[otf2.LocationGroupRef]bool)
	for _, rank := range s.ranks {
		hosts[rank.Host], processes[rank.Process] = true, true
	}
	r.Hosts, r.Processes = len(hosts), len(processes)
	for _, n := range ps.Below(property.Lost) {
		r.Lost += n
	}
	for _, v := range selfreport.Read(a).Recording {
		if v.Name == string(property.LibraryVersion) && v.Value != "unknown" && v.Processes == "all" {
			r.Library = v.Value
		}
	}
	return r
}

// pairing has the pairs of one kind, in the order of time in A.
type pairing struct {
	key  sampleKey
	a, b *sampleSet
	by   string
	all  [][2]*observation
	// differences has the values that both operations of a pair have, by figure.
	differences [NumFigures][]float64
	uncertainty float64
}

func compareSamples(a, b *samples, opts Options) *Comparison {
	a.foldLike(b)
	c := &Comparison{Confidence: confidence, MinChange: opts.MinChange, WarmUp: opts.WarmUp, Operations: []Row{},
		OnlyA: onlyIn(a, b), OnlyB: onlyIn(b, a)}
	var pairs []*pairing
	for _, key := range slices.SortedFunc(maps.Keys(a.sets), compareKeys) {
		if other := b.sets[key]; other != nil {
			pairs = append(pairs, pair(key, a.sets[key], other))
		}
	}
	tail := c.plan(pairs)
	for _, p := range pairs {
		row := c.row(p, tail)
		row.CommunicatorsA, row.CommunicatorsB = a.counted[p.key.shape], b.counted[p.key.shape]
		row.LastA, row.LastB = p.a.lastRank(a.ranks), p.b.lastRank(b.ranks)
		switch row.Verdict {
		case Slower:
			c.Slower++
		case Faster:
			c.Faster++
		}
		if row.Verdict != TooFew {
			c.Compared++
		}
		c.Operations = append(c.Operations, row)
	}
	slices.SortStableFunc(c.Operations, func(x, y Row) int {
		return cmp.Or(cmp.Compare(verdictOrder[x.Verdict], verdictOrder[y.Verdict]),
			cmp.Compare(math.Abs(y.changedCost()), math.Abs(x.changedCost())))
	})
	return c
}

// Verdicts on a kind of operations.
const (
	Slower    = "slower"
	Faster    = "faster"
	Unchanged = "unchanged"
	TooFew    = "too few"
)

var verdictOrder = map[string]int{Slower: 0, Faster: 1, Unchanged: 2, TooFew: 3}

func (r *Row) changedCost() float64 {
	if r.Verdict == Slower || r.Verdict == Faster {
		return r.Cost
	}
	return 0
}

func compareKeys(a, b sampleKey) int {
	return cmp.Or(cmp.Compare(b.ranks, a.ranks), cmp.Compare(a.layout, b.layout), cmp.Compare(a.function, b.function),
		cmp.Compare(a.size, b.size), cmp.Compare(analysis.BoolCount(a.class), analysis.BoolCount(b.class)),
		cmp.Compare(analysis.BoolCount(a.grouped), analysis.BoolCount(b.grouped)), cmp.Compare(a.equal, b.equal),
		cmp.Compare(a.source, b.source))
}

// foldLike puts sizes into classes wherever one run has classes, or both runs together have too many sizes.
func (s *samples) foldLike(o *samples) {
	sizes := make(map[sampleFamily]map[uint64]bool)
	for _, x := range []*samples{s, o} {
		for k := range x.sets {
			keyed.Map(sizes, k.sampleFamily)[k.size] = true
		}
	}
	for f, all := range sizes {
		if s.folded[f] || o.folded[f] || len(all) > mostSizes {
			s.fold(f)
			o.fold(f)
		}
	}
}

func kindOf(k *sampleKey) Kind {
	kind := Kind{
		Ranks: k.ranks, Hosts: k.hosts, Layout: k.layout, Operation: k.function, Grouped: k.grouped, Equal: k.equal,
		Size: k.size, TimingSource: k.source.String(),
	}
	if k.class {
		kind.Class = &analysis.SizeClass{From: k.size, To: max(1, 2*k.size)}
	}
	return kind
}

func onlyIn(a, b *samples) []KindOnly {
	only := []KindOnly{}
	for _, key := range slices.SortedFunc(maps.Keys(a.sets), compareKeys) {
		if b.sets[key] == nil {
			set := a.sets[key]
			only = append(only, KindOnly{kindOf(&key), set.operations, medianOf(set.all, FigureTime)})
		}
	}
	return only
}

func medianOf(all []observation, f Figure) float64 {
	values := make([]float64, 0, len(all))
	for i := range all {
		if v := all[i].values[f]; !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return stats.NearestMedian(values)
}

func (s *sampleSet) lastRank(ranks []placement.Rank) LastRank {
	best := -1
	for rank, n := range s.last {
		if best < 0 || n > s.last[best] || n == s.last[best] && rank < best {
			best = rank
		}
	}
	if best < 0 {
		return LastRank{}
	}
	return LastRank{ranks[best].Name, float64(s.last[best]) / float64(s.arrivals)}
}

// pair pairs the operations of one kind.
func pair(key sampleKey, a, b *sampleSet) *pairing {
	a.thin(b.level)
	b.thin(a.level)
	p := &pairing{key: key, a: a, b: b, by: "ordinal"}
	of := make(map[identity]*observation, len(b.all))
	for i := range b.all {
		of[b.all[i].identity] = &b.all[i]
	}
	for i := range a.all {
		if other := of[a.all[i].identity]; other != nil {
			p.all = append(p.all, [2]*observation{&a.all[i], other})
		}
	}
	if least := min(len(a.all), len(b.all)); 2*len(p.all) < least {
		inOrder := func(s *sampleSet) []*observation {
			all := make([]*observation, len(s.all))
			for i := range s.all {
				all[i] = &s.all[i]
			}
			slices.SortStableFunc(all, compareTimes)
			return all
		}
		x, y := inOrder(a), inOrder(b)
		p.all, p.by = p.all[:0], "order"
		for i := range least {
			p.all = append(p.all, [2]*observation{x[i], y[i]})
		}
	}
	slices.SortStableFunc(p.all, func(x, y [2]*observation) int { return compareTimes(x[0], y[0]) })
	var sumA, sumB float64
	for _, one := range p.all {
		for f := range NumFigures {
			x, y := one[0].values[f], one[1].values[f]
			switch {
			case math.IsNaN(x) || math.IsNaN(y):
			case f == FigureTime:
				p.differences[f] = append(p.differences[f], math.Log(max(y, 1)/max(x, 1)))
			default:
				p.differences[f] = append(p.differences[f], y-x)
			}
		}
		sumA, sumB = sumA+one[0].uncertainty, sumB+one[1].uncertainty
	}
	if n := float64(len(p.all)); n > 0 {
		p.uncertainty = (sumA + sumB) / n
	}
	return p
}

// compareTimes orders operations by their begin, and those with the same begin by their identity.
func compareTimes(x, y *observation) int {
	return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.comm, y.comm), cmp.Compare(x.ordinal, y.ordinal),
		cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to))
}

// plan decides by the number of pairs which kinds can be compared, and returns the probability, on each side, with
// which a single interval may miss.
func (c *Comparison) plan(pairs []*pairing) (tail float64) {
	most := slices.Clone(pairs)
	slices.SortStableFunc(most, func(x, y *pairing) int { return cmp.Compare(len(y.all), len(x.all)) })
	tests := func(p []*pairing, least int) (n int) {
		for _, one := range p {
			for _, d := range one.differences {
				n += int(analysis.BoolCount(len(d) >= least))
			}
		}
		return n
	}
	c.LeastPairs = leastStretches((1 - confidence) / 2 / float64(NumFigures))
	for n := 1; n <= len(most); n++ {
		// Either with one figure or with all four: the number of tests and the least number of pairs depend on each
		// other.
		upTo := int(NumFigures) * n
		least := leastStretches((1 - confidence) / 2 / float64(upTo))
		if len(most[n-1].all) < least {
			break
		}
		c.LeastPairs, c.Tests = least, tests(most[:n], least)
		tail = (1 - confidence) / 2 / float64(max(c.Tests, 1))
	}
	return tail
}

func (c *Comparison) row(p *pairing, tail float64) Row {
	row := Row{
		Kind: kindOf(&p.key), OperationsA: p.a.operations, OperationsB: p.b.operations, Pairs: len(p.all),
		PairedBy: p.by, Verdict: TooFew,
		WaysA: waysOf(p.a), WaysB: waysOf(p.b),
	}
	base := max(medianOf(p.a.all, FigureTime), 1)
	change := func(f Figure) Change {
		return Change{MedianA: medianOf(p.a.all, f), MedianB: medianOf(p.b.all, f), Low: OrInfinite(math.Inf(-1)),
			High: OrInfinite(math.Inf(1))}
	}
	row.Time = change(FigureTime)
	d := p.differences[FigureTime]
	row.Ratio, row.RatioLow, row.RatioHigh = 1, 0, OrInfinite(math.Inf(1))
	switch {
	case c.Tests > 0 && len(d) >= c.LeastPairs:
		row.Verdict = Unchanged
		s := shiftOf(d, tail)
		row.Time.Samples = s.stretches
		row.Ratio, row.RatioLow, row.RatioHigh = math.Exp(s.value), OrInfinite(math.Exp(s.low)),
			OrInfinite(math.Exp(s.high))
		row.Time.Low, row.Time.High = OrInfinite(base*math.Expm1(s.low)), OrInfinite(base*math.Expm1(s.high))
		row.Time.Changed = s.isChange(math.Log1p(c.MinChange))
	case len(d) > 0:
		row.Ratio = math.Exp(stats.Median(slices.Clone(d)))
	}
	row.Time.Share = row.Ratio - 1
	row.Time.Difference = base * row.Time.Share
	row.Cost = row.Time.Difference * float64(row.OperationsB)
	for f, at := range map[Figure]**Change{FigureEnqueue: &row.Enqueue, figureSkew: &row.Skew,
		figureTransfer: &row.Transfer} {
		d := p.differences[f]
		if c.Tests == 0 || len(d) < c.LeastPairs {
			continue
		}
		s, one := shiftOf(d, tail), change(f)
		one.Difference, one.Low, one.High, one.Share, one.Samples = s.value, OrInfinite(s.low), OrInfinite(s.high),
			s.value/base, s.stretches
		least := c.MinChange * base
		if f != FigureEnqueue {
			one.Uncertainty = p.uncertainty
			least = max(least, p.uncertainty)
		}
		one.Changed = s.isChange(least)
		*at = &one
	}
	if row.Verdict != TooFew {
		row.Verdict = row.findVerdict()
	}
	return row
}

// isChange reports whether the interval excludes zero and the shift is at least least.
func (s *shift) isChange(least float64) bool {
	return (s.low > 0 || s.high < 0) && math.Abs(s.value) >= least && s.value != 0
}

// Figures lists the row's figures in the order of FigureNames.
func (r *Row) Figures() [NumFigures]*Change {
	return [NumFigures]*Change{&r.Time, r.Enqueue, r.Skew, r.Transfer}
}

// findVerdict returns the verdict: the time decides, and if it has not changed, the greatest change of a part.
func (r *Row) findVerdict() string {
	var most *Change
	for f, c := range r.Figures() {
		if c != nil && c.Changed && (most == nil || math.Abs(c.Share) > math.Abs(most.Share)) {
			most = c
			if Figure(f) == FigureTime {
				break
			}
		}
	}
	switch {
	case most == nil:
		return Unchanged
	case most.Share > 0:
		return Slower
	}
	return Faster
}

// worst returns the greatest slowdown of any changed figure, as a fraction of the operation's time; 0 if there is
// none.
func (r *Row) worst() float64 {
	worst := 0.0
	for _, c := range r.Figures() {
		if c != nil && c.Changed {
			worst = max(worst, c.Share)
		}
	}
	return worst
}

// Blind reports whether the row's times are so few or vary so much that a slowdown by a fraction of limit could have
// been missed.
func (r *Row) Blind(limit float64) bool {
	return r.Verdict == TooFew || math.Log(float64(r.RatioHigh)/r.Ratio) > math.Log1p(limit)
}

func waysOf(s *sampleSet) []string {
	ways := slices.DeleteFunc(slices.Sorted(maps.Keys(s.ways)), func(w string) bool { return w == "" })
	return append([]string{}, ways...)
}

// OrInfinite is a number that may be infinite, which JSON represents as null.
type OrInfinite float64

// MarshalJSON implements json.Marshaler.
func (v OrInfinite) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(v), 0) {
		return []byte("null"), nil
	}
	return []byte(units.Plain(float64(v))), nil
}

// Over counts the kinds with a figure that has slowed down by more than a fraction of limit.
func (c *Comparison) Over(limit float64) (n int) {
	for i := range c.Operations {
		n += int(analysis.BoolCount(c.Operations[i].worst() > limit))
	}
	return n
}

// Name returns the operation's name with what distinguishes operations of that name: "AllReduce*" was launched with
// others, "AllReduce/4" is one of four equal ones.
func (k *Kind) Name() string {
	switch {
	case k.Equal > 0:
		return fmt.Sprintf("%s/%d", k.Operation, k.Equal)
	case k.Grouped:
		return k.Operation + "*"
	}
	return k.Operation
}
