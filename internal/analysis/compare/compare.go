// SPDX-License-Identifier: Apache-2.0

// Package compare finds what changed between two runs: operations by kind, paired, with intervals that hold for all of
// them together.
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Options say what two runs are compared by.
type Options struct {
	// MinChange is the least change that is reported, as part of the time that the operation took in the first run.
	MinChange float64
	// WarmUp is how many operations of each kind on each communicator (of messages: each pair) do not count.
	WarmUp int
}

// confidence is the probability with which all intervals of a Comparison hold together.
const confidence = 0.99

// Comparison tells what took longer in run B than in run A.
//
// Operations are of one kind if they are the same function, with the same size, on communicators of one shape (ranks,
// and ranks per host), launched alone or in a group, with times of the same sort. Communicators of a shape are taken
// one after the other in the order in which they were created. Of each kind the operations of A and B make pairs: those
// with the same ordinal on the same communicator, or if most have no such partner, the n-th of A and the n-th of B.
//
// A figure of a kind has changed if its interval leaves out "no change", and the change is at least MinChange. The
// intervals hold all together with a probability of Confidence: each is so wide that of many kinds none is reported by
// chance. How they come about is said in paired.go.
type Comparison struct {
	A          Run        `json:"a"`
	B          Run        `json:"b"`
	Confidence float64    `json:"confidence"`
	MinChange  float64    `json:"min_change"`
	WarmUp     int        `json:"warm_up"`
	Tests      int        `json:"tests"`       // intervals
	LeastPairs int        `json:"least_pairs"` // from which on a change can be found
	Compared   int        `json:"compared"`    // kinds of which there are as many
	Slower     int        `json:"slower"`      // kinds
	Faster     int        `json:"faster"`
	Operations []Row      `json:"operations"` // those that changed first, of them those that cost the most first
	OnlyA      []KindOnly `json:"only_a"`
	OnlyB      []KindOnly `json:"only_b"`
}

// Run is one of the two runs.
type Run struct {
	Archive string `json:"archive"`
	// of NCCL or RCCL; "" if the archive does not say, or processes differ
	Library       string   `json:"library_version"`
	Processes     int      `json:"processes"`
	Ranks         int      `json:"ranks"`
	Hosts         int      `json:"hosts"`
	Communicators int      `json:"communicators"` // of more than one rank
	Operations    uint64   `json:"operations"`    // that all members ended; a message is one
	Coupled       uint64   `json:"coupled"`       // of them, launched with another one, which has the time
	Unfinished    uint64   `json:"unfinished"`    // that not all members ended, or messages with one end
	LeftOut       uint64   `json:"left_out"`      // parts that the members did not record alike
	Lost          uint64   `json:"lost"`          // events of NCCL
	Complete      bool     `json:"complete"`
	Problems      []string `json:"problems"`
}

// Kind names operations of one kind.
type Kind struct {
	Ranks     int    `json:"ranks"`
	Hosts     int    `json:"hosts"`
	Layout    string `json:"ranks_per_host"`
	Operation string `json:"operation"`
	Grouped   bool   `json:"grouped"`
	// of a launch, all equal: each has its part of the time; 0: not of such a launch
	Equal int `json:"launched_together"`
	// bytes, as nccl-tests counts them; of a class the least
	Size         uint64              `json:"size"`
	Class        *analysis.SizeClass `json:"size_class,omitempty"`
	TimingSource string              `json:"timing_source"`
}

// KindOnly is a kind that one run has only.
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
	OperationsA    uint64 `json:"operations_a"` // warm-up included
	OperationsB    uint64 `json:"operations_b"`
	Pairs          int    `json:"pairs"`
	PairedBy       string `json:"paired_by"` // "ordinal" or "order"
	// Verdict: "slower", "faster", "unchanged", "too few".
	Verdict string `json:"verdict"`
	// Time is from begin to end, mean of the members. Ratio is that of B to A.
	Time      Change     `json:"time"`
	Ratio     float64    `json:"ratio"`
	RatioLow  OrInfinite `json:"ratio_low"`
	RatioHigh OrInfinite `json:"ratio_high"`
	// Parts: the call on the application's thread, which is not in Time; waiting for the last member; the rest. Those
	// that are not known of enough pairs are null.
	Enqueue  *Change `json:"enqueue"`
	Skew     *Change `json:"skew"`
	Transfer *Change `json:"transfer"`
	// Ways are algorithm, protocol and channels that NCCL chose: "RING/SIMPLE/4".
	WaysA []string `json:"ways_a"`
	WaysB []string `json:"ways_b"`
	// Last is the rank that began last most often in that run, "" if that is not known, and its share.
	LastA LastRank `json:"last_a"`
	LastB LastRank `json:"last_b"`
	// Cost is the difference of the times, all operations of B together.
	Cost float64 `json:"cost_ns"`
}

// LastRank is the rank that began last most often.
type LastRank struct {
	Rank  string  `json:"rank"`
	Share float64 `json:"share"`
}

// Change is by how much one figure differs. Times are nanoseconds.
type Change struct {
	MedianA    float64    `json:"median_a_ns"`
	MedianB    float64    `json:"median_b_ns"`
	Difference float64    `json:"difference_ns"` // estimate of B − A in pairs
	Low        OrInfinite `json:"low_ns"`        // its interval
	High       OrInfinite `json:"high_ns"`
	Share      float64    `json:"share"` // Difference as part of the time of A; of Time: ratio − 1
	Changed    bool       `json:"changed"`
	Samples    int        `json:"samples"` // stretches of pairs that count once each
	// Uncertainty is what the archives say the difference may be off by; what is not more has not changed.
	Uncertainty float64 `json:"uncertainty_ns"`
}

// Runs reads two archives and compares their operations. The archives' definitions must be sound enough to be
// opened; damage to events is in the runs' Problems.
func Runs(a, b *otf2.Archive, opts Options) *Comparison {
	sa, problemsA := readSamples(a, opts.WarmUp)
	sb, problemsB := readSamples(b, opts.WarmUp)
	c := compareSamples(sa, sb, opts)
	c.A, c.B = sa.describeRun(a, problemsA), sb.describeRun(b, problemsB)
	return c
}

func (s *samples) describeRun(a *otf2.Archive, problems []string) Run {
	ps := analysis.PropertiesOf(a.Anchor)
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
	for _, n := range ps.Below(facts.PropLost) {
		r.Lost += n
	}
	for _, v := range analysis.SelfReport(a).Recording {
		if v.Name == string(facts.PropLibraryVersion) && v.Value != "unknown" && v.Processes == "all" {
			r.Library = v.Value
		}
	}
	return r
}

// pairing is the pairs of one kind, in the order of time in A.
type pairing struct {
	key  sampleKey
	a, b *sampleSet
	by   string
	all  [][2]*observation
	// values that both of a pair have, by figure
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

// foldLike puts sizes into classes wherever one run has, or both have too many together.
func (s *samples) foldLike(o *samples) {
	sizes := make(map[sampleFamily]map[uint64]bool)
	for _, x := range []*samples{s, o} {
		for k := range x.sets {
			if sizes[k.sampleFamily] == nil {
				sizes[k.sampleFamily] = make(map[uint64]bool)
			}
			sizes[k.sampleFamily][k.size] = true
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

func (s *sampleSet) lastRank(ranks []analysis.Rank) LastRank {
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

// pair brings the operations of one kind together.
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

// compareTimes orders operations by their begin; what begins at once, by what it is.
func compareTimes(x, y *observation) int {
	return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.comm, y.comm), cmp.Compare(x.ordinal, y.ordinal),
		cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to))
}

// plan decides which kinds can be compared, by how many pairs they have alone, and gives the probability that each
// interval may leave out on each side.
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
		// With one figure more, or all four: the number of tests and the least number of pairs depend on each other.
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
		row.Verdict = row.judge()
	}
	return row
}

// isChange reports whether a shift is one: its interval leaves out zero, and it is at least so much.
func (s *shift) isChange(least float64) bool {
	return (s.low > 0 || s.high < 0) && math.Abs(s.value) >= least && s.value != 0
}

// Figures lists the row's figures with their names.
func (r *Row) Figures() [NumFigures]*Change {
	return [NumFigures]*Change{&r.Time, r.Enqueue, r.Skew, r.Transfer}
}

// judge: the time decides, where it has not changed the greatest change of a part.
func (r *Row) judge() string {
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

// worst is the greatest slowdown of any figure that has changed, as part of the operation's time; 0 if none has.
func (r *Row) worst() float64 {
	worst := 0.0
	for _, c := range r.Figures() {
		if c != nil && c.Changed {
			worst = max(worst, c.Share)
		}
	}
	return worst
}

// Blind reports whether the row's times vary so much, or are so few, that a slowdown of a part of limit could have
// been missed.
func (r *Row) Blind(limit float64) bool {
	return r.Verdict == TooFew || math.Log(float64(r.RatioHigh)/r.Ratio) > math.Log1p(limit)
}

func waysOf(s *sampleSet) []string {
	ways := slices.DeleteFunc(slices.Sorted(maps.Keys(s.ways)), func(w string) bool { return w == "" })
	return append([]string{}, ways...)
}

// OrInfinite is a number that may be infinite, which JSON writes as null.
type OrInfinite float64

// MarshalJSON writes the number.
func (v OrInfinite) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(v), 0) {
		return []byte("null"), nil
	}
	return []byte(units.Plain(float64(v))), nil
}

// Over counts the kinds of which a figure has slowed down by more than a part of limit.
func (c *Comparison) Over(limit float64) (n int) {
	for i := range c.Operations {
		n += int(analysis.BoolCount(c.Operations[i].worst() > limit))
	}
	return n
}

// Name is the operation, with what tells apart those of one name: "AllReduce*" was launched with others, "AllReduce/4"
// is one of four equal ones.
func (k *Kind) Name() string {
	switch {
	case k.Equal > 0:
		return fmt.Sprintf("%s/%d", k.Operation, k.Equal)
	case k.Grouped:
		return k.Operation + "*"
	}
	return k.Operation
}
