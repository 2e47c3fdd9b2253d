// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

func compareArchives(t testing.TB, a, b string) *Comparison {
	t.Helper()
	x := testkit.Value(otf2.Open(a, nil))(t)
	defer x.Close()
	y := testkit.Value(otf2.Open(b, nil))(t)
	defer y.Close()
	return Runs(x, y, Options{MinChange: 0.01, WarmUp: 3})
}

// found lists the changes in a comparison: "slower 4 AllReduce 1048576: transfer".
func found(c *Comparison) []string {
	all := []string{}
	for i := range c.Operations {
		r := &c.Operations[i]
		if r.Verdict != Slower && r.Verdict != Faster {
			continue
		}
		text := fmt.Sprintf("%s %d %s %d:", r.Verdict, r.Ranks, r.Operation, r.Size)
		for f, one := range r.Figures() {
			if Figure(f) != FigureTime && one != nil && one.Changed {
				text += " " + FigureNames[f]
			}
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// Compared with itself or with a run with other noise, a run shows no changes. Only the kinds that were made slower
// are found, and in the right part.
func TestInjectedChangesAreFoundAndNothingElse(t *testing.T) {
	const steps = 240
	is := func(k *jobtest.RunKind, function string, elements uint64, pair bool) bool {
		return k.Function == function && k.Elements == elements && k.Pair == pair
	}
	changes := []struct {
		name  string
		alter jobtest.RunChange
		want  []string
	}{
		{"nothing", jobtest.Unchanged, []string{}},
		{"one size of AllReduce 5 % slower", func(k *jobtest.RunKind, _ int, transfer, _, _ *float64) {
			if is(k, "AllReduce", 256<<10, false) {
				*transfer *= 1.05
			}
		}, []string{"slower 4 AllReduce 1048576: transfer"}},
		{"the pairs' AllReduce 5 % slower", func(k *jobtest.RunKind, _ int, transfer, _, _ *float64) {
			if is(k, "AllReduce", 256<<10, true) {
				*transfer *= 1.05
			}
		}, []string{"slower 2 AllReduce 1048576: transfer"}},
		{"AllGather 5 % faster", func(k *jobtest.RunKind, _ int, transfer, _, _ *float64) {
			if is(k, "AllGather", 256<<10, false) {
				*transfer *= 0.95
			}
		}, []string{"faster 4 AllGather 4194304: transfer"}},
		{"rank 2 late to ReduceScatter", func(k *jobtest.RunKind, rank int, _, _, late *float64) {
			if is(k, "ReduceScatter", 256<<10, false) && rank == 2 {
				*late += 60_000
			}
		}, []string{"slower 4 ReduceScatter 4194304: skew"}},
		{"calls of the pairs' AllGather three times as long", func(k *jobtest.RunKind, _ int, _, call, _ *float64) {
			if is(k, "AllGather", 64<<10, true) {
				*call *= 3
			}
		}, []string{"slower 2 AllGather 524288: enqueue"}},
	}
	for seed := range uint64(3) {
		before := jobtest.MakeRun(t, 2*seed+100, steps, jobtest.Unchanged)
		c := compareArchives(t, before, before)
		if got := found(c); len(got) > 0 || c.Compared != len(jobtest.MadeKinds) {
			t.Errorf("seed %d against itself: %d kinds, %v", seed, c.Compared, got)
		}
		for i := range c.Operations {
			r := &c.Operations[i]
			testkit.Check(t, r.Ratio == 1 && r.RatioLow == 1 && r.RatioHigh == 1 && r.Enqueue != nil && r.Skew != nil &&
				r.Skew.Difference == 0, "seed %d against itself: %+v", seed, r)
		}
		for i, tc := range changes {
			if seed > 0 && i > 1 {
				break // the other one changes once
			}
			c := compareArchives(t, before, jobtest.MakeRun(t, 2*seed+101, steps, tc.alter))
			diff := cmp.Diff(tc.want, found(c))
			testkit.Check(t, diff == "", "seed %d, %s:\n%s\n%+v", seed, tc.name, diff, c.Operations)
			if i == 1 {
				r := &c.Operations[0]
				testkit.Check(t, math.Abs(r.Transfer.Difference-10_000) <= 2000 &&
					float64(r.Transfer.Low) <= 10_000 && float64(r.Transfer.High) >= 10_000,
					"seed %d: transfer %+v instead of 10 µs", seed, r.Transfer)
				testkit.Equal(t, c.Over(0.03), 1, "seed %d: kinds slower by 3 %%", seed)
				testkit.Equal(t, c.Over(0.2), 0, "seed %d: kinds slower by 20 %%", seed)
			}
			testkit.Check(t, i != 4 || c.Operations[0].LastB.Rank == "Rank 2" && c.Operations[0].LastB.Share >= 0.9,
				"last: %+v", c.Operations[0].LastB)
		}
	}
}

// madeSamples makes a run of some kinds on one communicator, without an archive.
func madeSamples(seed uint64, kinds, count int, factor func(kind int) float64) *samples {
	s := &samples{sets: make(map[sampleKey]*sampleSet), folded: make(map[sampleFamily]bool),
		counted: make(map[shape]int)}
	n := jobtest.NewNoise(seed)
	for i := range count {
		for k := range kinds {
			key := sampleKey{sampleFamily: sampleFamily{shape: shape{8, 1, "8"}, function: "AllReduce",
				source: facts.SourceGPU}, size: 1 << k}
			if s.sets[key] == nil {
				s.sets[key] = newSampleSet()
			}
			x := observation{identity: identity{0, -1, -1, uint64(i*kinds + k)}, begin: otf2.Timestamp(i*kinds + k)}
			base := float64(uint64(10_000) << (k % 8))
			transfer, skew := n.Transfer(base)*factor(k), 0.1*base*n.ExpFloat64()
			x.values = [NumFigures]float64{transfer + skew, 8000 * math.Exp(0.2*n.NormFloat64()), skew, transfer}
			s.sets[key].operations++
			s.sets[key].add(x)
		}
	}
	return s
}

func same(int) float64 { return 1 }

// Runs that differ only by chance hardly ever show a change: Confidence allows 1 in 100 of any size.
func TestFalseFindingsAreRare(t *testing.T) {
	wrong := 0
	const runs = 60
	for seed := range uint64(runs) {
		c := compareSamples(madeSamples(1000+seed, 16, 120, same), madeSamples(5000+seed, 16, 120, same),
			Options{MinChange: 0})
		testkit.Require(t, c.Compared == 16 && c.Tests == 64, "%d kinds, %d intervals", c.Compared, c.Tests)
		if got := found(c); len(got) > 0 {
			wrong++
			t.Log(seed, got)
		}
	}
	testkit.Check(t, wrong <= 2, "%d of %d comparisons found a change", wrong, runs)
}

var comparisons = flag.Int("comparisons", 10, "comparisons of each kind in TestHowMuchComparisonsFind")

// How often a slowdown of 5 % in one of 8 kinds is found, and how often a wrong one: the table in docs/diff.md.
func TestHowMuchComparisonsFind(t *testing.T) {
	for _, count := range []int{30, 60, 120, 400} {
		wrong, transfer, time, width := 0, 0, 0, 0.0
		for seed := range uint64(*comparisons) {
			c := compareSamples(madeSamples(1000+seed, 8, count, same),
				madeSamples(5000+seed, 8, count, func(k int) float64 {
					if k == 3 {
						return 1.05
					}
					return 1
				}), Options{})
			others := false
			for i := range c.Operations {
				r := &c.Operations[i]
				if r.Size != 1<<3 {
					others = others || r.Verdict == Slower || r.Verdict == Faster
					continue
				}
				transfer += int(analysis.BoolCount(r.Transfer.Changed))
				time += int(analysis.BoolCount(r.Time.Changed))
				width += float64(r.RatioHigh)/r.Ratio - 1
			}
			wrong += int(analysis.BoolCount(others))
		}
		of := 100 / float64(*comparisons)
		t.Logf("%3d pairs: false findings in %.1f %%, transfer found slower in %.0f %%, time in %.0f %%, a slowdown "+
			"of %.1f %% more fits the interval",
			count, of*float64(wrong), of*float64(transfer), of*float64(time), 100*width/float64(*comparisons))
		if count == 400 && (wrong > max(1, *comparisons/50) || transfer < *comparisons*9/10 ||
			time < *comparisons*8/10) {
			t.Errorf("of %d comparisons %d found something false, %d the transfer, %d the time", *comparisons, wrong,
				transfer, time)
		}
	}
}

func TestComparisonProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		kinds, count := rapid.IntRange(1, 5).Draw(t, "kinds"), rapid.IntRange(0, 60).Draw(t, "count")
		opts := Options{MinChange: 0.01}
		factor := rapid.Float64Range(0.5, 2).Draw(t, "factor")
		slow := rapid.IntRange(0, kinds-1).Draw(t, "slow")
		a := func() *samples { return madeSamples(seed, kinds, count, same) }
		b := func() *samples {
			return madeSamples(seed+1, kinds, count, func(k int) float64 {
				if k == slow {
					return factor
				}
				return 1
			})
		}
		got := found(compareSamples(a(), a(), opts))
		testkit.Require(t, len(got) == 0, "against itself: %v", got)
		forth, back := compareSamples(a(), b(), opts), compareSamples(b(), a(), opts)
		mirror := map[string]string{Slower: Faster, Faster: Slower, Unchanged: Unchanged, TooFew: TooFew}
		byKind := func(c *Comparison) map[uint64]*Row {
			all := make(map[uint64]*Row)
			for i := range c.Operations {
				all[c.Operations[i].Size] = &c.Operations[i]
			}
			return all
		}
		others := byKind(back)
		for size, r := range byKind(forth) {
			o := others[size]
			testkit.Check(t, math.Abs(r.Ratio*o.Ratio-1) <= 1e-9, "%d: ratios %g and %g", size, r.Ratio, o.Ratio)
			low, high := float64(r.RatioLow), float64(r.RatioHigh)
			testkit.Check(t, low <= r.Ratio && high >= r.Ratio, "%d: %g is not in %g … %g", size, r.Ratio, low, high)
			testkit.Check(t, (r.Verdict == TooFew) == (count < forth.LeastPairs),
				"%d: %s with %d pairs, least %d", size, r.Verdict, count, forth.LeastPairs)
			// The verdict on the time is mirrored; parts are judged by the time of the first run.
			testkit.Check(t, !r.Time.Changed || !o.Time.Changed || mirror[r.Verdict] == o.Verdict,
				"%d: %s and %s", size, r.Verdict, o.Verdict)
		}
	})
}

// The interval of the signed rank test against its tables (Wilcoxon 1945; n = 10: P(W ≤ 8)
// = 0.0244, P(W ≤ 3) = 0.0049).
func TestCriticalRanks(t *testing.T) {
	for _, tc := range []struct {
		n    int
		tail float64
		want int
	}{{5, 0.05, 0}, {5, 0.025, -1}, {6, 0.025, 0}, {10, 0.025, 8}, {10, 0.005, 3}, {20, 0.025, 52}, {20, 0.005, 37},
		{30, 0.025, 137}} {
		testkit.Equal(t, criticalRank(tc.n, tc.tail), tc.want, "n = %d, tail %g", tc.n, tc.tail)
	}
	for _, tail := range []float64{0.5, 0.025, 0.005, 1e-4} {
		if n := leastStretches(tail); criticalRank(n, tail) < 0 || n > 1 && criticalRank(n-1, tail) >= 0 {
			t.Errorf("least number for %g is not %d", tail, n)
		}
	}
}

// Correlated neighbors do not count as independent: an interval that is narrow for independent differences is wide for
// them.
func TestDriftsWidenIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	independent, walk, x := make([]float64, 300), make([]float64, 300), 0.0
	for i := range walk {
		x = 0.99*x + 0.14*r.NormFloat64()
		walk[i], independent[i] = x, r.NormFloat64()
	}
	narrow, wide := shiftOf(independent, 0.0005), shiftOf(walk, 0.0005)
	testkit.Check(t, narrow.stretches >= 32 && wide.stretches <= 20 && wide.high-wide.low >= 3*(narrow.high-narrow.low),
		"%+v %+v", narrow, wide)
}

// Pairs: launches count once, a message is one operation, and runs whose ordinals do not match are paired in order.
func TestPairs(t *testing.T) {
	const rounds = 20
	run := func(extra int) string {
		return jobtest.Make(t, 2, 2, func(r int, p *shardtest.Process) {
			c, now := p.World(), uint64(t0)
			step := func() (begin, end uint64) {
				now += 100 * us
				return now - 90*us + uint64(r)*10*us, now
			}
			for range extra {
				begin, end := step()
				p.AllReduce(c, begin, end, 77)
			}
			for range rounds {
				begin, end := step()
				p.AllReduce(c, begin, end, 1000)
				begin, end = step()
				p.AllReduce(c, begin, end, 2000)
				begin, end = step()
				p.GatherAndScatter(c, begin, end, 100)
				begin, end = step()
				if r == 0 {
					p.Send(c, 1, begin, end, 4096)
				} else {
					p.Recv(c, 0, begin, end, 4096)
				}
			}
		})
	}
	a, b := run(0), run(1)
	for _, tc := range []struct {
		b    string
		by   map[string]string
		only int
	}{
		{a, map[string]string{"AllReduce 4000": "ordinal", "AllReduce 8000": "ordinal", "AllGather* 800": "ordinal",
			"SendRecv 4096": "ordinal"}, 0},
		{b, map[string]string{"AllReduce 4000": "order", "AllReduce 8000": "order", "AllGather* 800": "ordinal",
			"SendRecv 4096": "ordinal"}, 1},
	} {
		c := compareArchives(t, a, tc.b)
		by := make(map[string]string)
		for i := range c.Operations {
			r := &c.Operations[i]
			by[fmt.Sprint(r.Name(), " ", r.Size)] = r.PairedBy
			// Ranks begin 90 and 80 µs before the end, so there are 5 µs of waiting on average and 80 µs of
			// transfer.
			testkit.Check(t, r.Pairs == rounds-3 && r.OperationsA == rounds && r.Time.MedianA == 85_000 &&
				r.Skew.MedianA == 5000 && r.Transfer.MedianA == 80_000 && r.Enqueue == nil && r.Verdict == Unchanged,
				"%+v, skew %+v, transfer %+v", r, r.Skew, r.Transfer)
		}
		testkit.Same(t, tc.by, by)
		testkit.Check(t, c.A.Operations == 5*rounds && c.A.Coupled == rounds && c.A.Unfinished == 0 &&
			len(c.OnlyA) == 0 && len(c.OnlyB) == tc.only, "%+v, only in one: %v, %v", c.A, c.OnlyA, c.OnlyB)
	}
}

// A function with many sizes has size classes in both runs, however the sizes are distributed over the runs.
func TestManySizesAreClasses(t *testing.T) {
	family := sampleFamily{shape: shape{2, 1, "2"}, function: "AlltoAll", source: facts.SourceGPU}
	run := func(sizes int) *samples {
		s := &samples{sets: make(map[sampleKey]*sampleSet), sizes: make(map[sampleFamily]int),
			folded: make(map[sampleFamily]bool), counted: make(map[shape]int)}
		for i := range 2000 {
			key := sampleKey{sampleFamily: family, size: uint64(1024 + i%sizes)}
			set := s.set(&key)
			set.operations++
			set.add(observation{identity: identity{0, -1, -1, uint64(i)}, begin: otf2.Timestamp(i),
				values: [NumFigures]float64{100, math.NaN(), math.NaN(), math.NaN()}})
		}
		return s
	}
	for _, tc := range []struct{ a, b, rows int }{{32, 32, 32}, {33, 33, 1}, {2000, 4, 2}, {4, 2000, 2}} {
		c := compareSamples(run(tc.a), run(tc.b), Options{})
		operations := uint64(0)
		for _, r := range c.Operations {
			operations += r.OperationsA
			testkit.Check(t, (r.Class != nil) == (tc.rows < 32), "%d and %d sizes: %+v", tc.a, tc.b, r.Kind)
		}
		for _, r := range append(c.OnlyA, c.OnlyB...) {
			operations += r.Operations
		}
		if n := len(c.Operations) + len(c.OnlyA) + len(c.OnlyB); n != tc.rows || operations < 2000 {
			t.Errorf("%d and %d sizes: %d rows, %d operations", tc.a, tc.b, n, operations)
		}
	}
}

// When there are many operations, both runs keep the same ones, even if one run has many more, and operations that
// alternate are thinned out evenly.
func TestManyOperationsAreThinnedInTheSameWay(t *testing.T) {
	key := sampleKey{sampleFamily: sampleFamily{shape: shape{2, 1, "2"}, function: "AllReduce",
		source: facts.SourceGPU}, size: 8}
	run := func(operations int) *sampleSet {
		set := newSampleSet()
		for i := range operations {
			set.operations++
			set.add(observation{identity: identity{0, -1, -1, uint64(2 * i)}, begin: otf2.Timestamp(i),
				values: [NumFigures]float64{100 + float64(i%2), 1, 1, 1}})
		}
		return set
	}
	a, b := run(200_000), run(30_000)
	testkit.Check(t, len(a.all) <= mostSamples && len(a.all) >= mostSamples/4 && len(b.all) >= mostSamples/4,
		"%d and %d of them are kept", len(a.all), len(b.all))
	p := pair(key, a, b)
	testkit.Check(t, p.by == "ordinal" && len(p.all) >= 1000 && len(p.all) == len(b.all),
		"%d pairs by %s of %d and %d", len(p.all), p.by, len(a.all), len(b.all))
	odd := 0
	for _, one := range p.all {
		odd += int(one[0].begin % 2)
	}
	share := float64(odd) / float64(len(p.all))
	testkit.Check(t, math.Abs(share-0.5) <= 0.1, "%v of them are odd", share)
}

// A difference in skew or transfer below the uncertainty of GPU times is no change.
func TestUncertainTimesHideSmallChanges(t *testing.T) {
	run := func(later, uncertainty float64) *samples {
		s := &samples{sets: make(map[sampleKey]*sampleSet), sizes: make(map[sampleFamily]int),
			folded: make(map[sampleFamily]bool), counted: make(map[shape]int)}
		key := sampleKey{sampleFamily: sampleFamily{shape: shape{2, 1, "2"}, function: "AllReduce",
			source: facts.SourceGPU}, size: 8}
		for i := range 100 {
			x := observation{identity: identity{0, -1, -1, uint64(i)}, begin: otf2.Timestamp(i),
				uncertainty: uncertainty}
			x.values = [NumFigures]float64{100_000, 5000, 10_000 + later, 90_000 - later}
			s.set(&key).add(x)
		}
		return s
	}
	for _, tc := range []struct {
		uncertainty float64
		want        bool
	}{{0, true}, {4000, true}, {6000, false}} {
		c := compareSamples(run(0, tc.uncertainty), run(10_000, tc.uncertainty), Options{MinChange: 0.01})
		r := &c.Operations[0]
		testkit.Check(t, !r.Time.Changed && r.Skew.Changed == tc.want && r.Transfer.Changed == tc.want &&
			r.Skew.Uncertainty == 2*tc.uncertainty, "± %v: %+v %+v", tc.uncertainty, r.Skew, r.Transfer)
	}
}

// Times in the test jobs.
const (
	t0 = jobtest.T0
	us = jobtest.Microsecond
)
