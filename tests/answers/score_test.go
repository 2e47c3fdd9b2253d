// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// What is aimed at: of those named so many are right, of those to be named so many are; of jobs in which nobody held
// the others up, somebody is named in no more than so many.
const (
	leastRight = 0.97
	mostFalse  = 0.01
)

// What is reached and must not get worse: make test holds answers against it, make answers against what is aimed at.
const (
	reachedRecall    = 0.95
	reachedPrecision = 0.95
	reachedFalse     = 0.01
	reachedShare     = 0.2 // by which one share in twenty is off, at most
)

// floor says, a line each, what is worse than it has been.
func (s *score) floor() (worse []string) {
	var sum tally
	for _, k := range s.kinds {
		sum.found, sum.missed, sum.wrongly = sum.found+k.found, sum.missed+k.missed, sum.wrongly+k.wrongly
	}
	if r := sum.recall(); r < reachedRecall {
		worse = append(worse, fmt.Sprintf("recall %.3f, and it has been %g", r, reachedRecall))
	}
	if p := sum.precision(); p < reachedPrecision {
		worse = append(worse, fmt.Sprintf("precision %.3f, and it has been %g", p, reachedPrecision))
	}
	if n := s.nobody; float64(n.wrong) > reachedFalse*float64(n.jobs) {
		worse = append(worse, fmt.Sprintf("in %d of %d jobs somebody is named who did nothing, and it has been less",
			n.wrong, n.jobs))
	}
	if off := quantile(s.shares, 0.95); off > reachedShare {
		worse = append(worse, fmt.Sprintf("one share in twenty is off by %.3f or more, and that has been %g", off,
			reachedShare))
	}
	return worse
}

// score counts how good answers are.
type score struct {
	jobs   int
	kinds  map[verdict.Kind]*tally
	plans  map[string]*tally
	nobody tally // jobs in which nobody held the others up
	shares []float64
}

// tally counts culprits and jobs.
type tally struct {
	jobs, wrong            int // wrong: with anything wrong
	found, missed, wrongly int // wrongly: named, and not so
	shares                 []float64
}

func (t *tally) precision() float64 { return fraction(t.found, t.wrongly) }
func (t *tally) recall() float64    { return fraction(t.found, t.missed) }

// fraction is a's part of both; 1 of nothing.
func fraction(a, b int) float64 {
	if a+b == 0 {
		return 1
	}
	return float64(a) / float64(a+b)
}

func (t *tally) add(c *compared) {
	t.jobs++
	if len(c.faults()) > 0 {
		t.wrong++
	}
	t.found, t.missed, t.wrongly = t.found+len(c.found), t.missed+len(c.missed), t.wrongly+len(c.falsely)
	for _, s := range c.shares {
		t.shares = append(t.shares, math.Abs(s))
	}
}

func (s *score) add(r *result) {
	s.jobs++
	if s.kinds == nil {
		s.kinds, s.plans = make(map[verdict.Kind]*tally), make(map[string]*tally)
		for _, k := range kinds {
			s.kinds[k] = new(tally)
		}
		for _, p := range slices.Concat(plans, odd) {
			s.plans[p.name] = new(tally)
		}
	}
	c := &r.compared
	s.plans[r.plan.name].add(c)
	if len(r.truth.culprits)+len(r.truth.may) == 0 {
		s.nobody.add(c)
	}
	for i, f := range c.found {
		k := s.kinds[f.kind]
		k.found++
		if delays(f.kind) {
			k.shares = append(k.shares, math.Abs(c.shares[i]))
			s.shares = append(s.shares, math.Abs(c.shares[i]))
		}
	}
	for _, m := range c.missed {
		s.kinds[m.kind].missed++
	}
	for _, f := range c.falsely {
		s.kinds[f.kind].wrongly++
	}
}

var kinds = []verdict.Kind{verdict.HostLate, verdict.GPULate, verdict.SlowTransfer, verdict.Missing, verdict.Order,
	verdict.Mismatch}

// of are the median, the 95th percentile and the maximum; "–" of nothing.
func of(errors []float64) string {
	if len(errors) == 0 {
		return "– | – | –"
	}
	return fmt.Sprintf("%.3f | %.3f | %.3f", quantile(errors, 0.5), quantile(errors, 0.95), quantile(errors, 1))
}

// quantile is that of some values, 0 of none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	e := slices.Sorted(slices.Values(values))
	return e[int(q*float64(len(e)-1)+0.5)]
}

// tables of the page.
func (s *score) tables() string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "| kind | to be named | named | not named | wrongly named | precision | recall | share off by: median | "+
			"95th percentile | at most |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	var sum tally
	for _, kind := range kinds {
		k := s.kinds[kind]
		if k == nil {
			continue
		}
		sum.found, sum.missed, sum.wrongly = sum.found+k.found, sum.missed+k.missed, sum.wrongly+k.wrongly
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %d | %.3f | %.3f | %s |\n", kind, k.found+k.missed, k.found, k.missed,
			k.wrongly, k.precision(), k.recall(), of(k.shares))
	}
	fmt.Fprintf(&b, "| all | %d | %d | %d | %d | %.3f | %.3f | %s |\n", sum.found+sum.missed, sum.found, sum.missed,
		sum.wrongly, sum.precision(), sum.recall(), of(s.shares))
	fmt.Fprintf(
		&b, "\n| jobs | number | with anything wrong | named | not named | wrongly named "+
			"|\n|---|--:|--:|--:|--:|--:|\n")
	for _, of := range slices.Concat(plans, odd) {
		p := s.plans[of.name]
		if p == nil || p.jobs == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", of.name, p.jobs, p.wrong, p.found, p.missed, p.wrongly)
	}
	fmt.Fprintf(&b, "\nIn %d of %d jobs in which nobody held the others up somebody was named.\n", s.nobody.wrong,
		s.nobody.jobs)
	return b.String()
}

// aims says, a line each, what is aimed at and not reached.
func (s *score) aims() (missed []string) {
	for _, kind := range kinds {
		k := s.kinds[kind]
		if k == nil {
			continue
		}
		if p := k.precision(); p < leastRight {
			missed = append(missed, fmt.Sprintf("%s: precision %.3f, below %g", kind, p, leastRight))
		}
		if r := k.recall(); r < leastRight {
			missed = append(missed, fmt.Sprintf("%s: recall %.3f, below %g", kind, r, leastRight))
		}
	}
	if n := s.nobody; float64(n.wrong) > mostFalse*float64(n.jobs) {
		missed = append(missed, fmt.Sprintf("in %d of %d jobs somebody is named who did nothing", n.wrong, n.jobs))
	}
	return missed
}
