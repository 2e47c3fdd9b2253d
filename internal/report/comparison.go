// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/compare"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Comparison returns the tables of a comparison. limit is the largest permitted slowdown, as a part of 1 (see Over); 0:
// no limit.
func Comparison(c *compare.Comparison, limit float64) *Document {
	d := &Document{title: fmt.Sprintf("%s → %s", c.A.Archive, c.B.Archive)}
	describeRun(&c.A, d, "A")
	describeRun(&c.B, d, "B")
	kinds := func(n int) string { return units.Count(n, "kind of operations", "kinds of operations") }
	switch {
	case len(c.Operations) == 0:
		d.addIntro("The runs have no kind of operation in common: nothing can be compared.")
	case c.Compared == 0:
		d.addIntro("Nothing can be compared: no kind of operation has at least %d pairs.", c.LeastPairs)
	case c.Slower+c.Faster == 0:
		d.addIntro("No change found in %s.", kinds(c.Compared))
	default:
		d.addIntro("%d of %s changed: %d slower, %d faster.", c.Slower+c.Faster, kinds(c.Compared), c.Slower, c.Faster)
	}
	if c.Compared > 0 {
		d.addIntro("A change is at least %s, and its interval does not contain 0; %s with %s confidence.",
			share(c.MinChange), units.Count(c.Tests, "interval holds", "intervals hold together"), share(c.Confidence))
	}
	if limit > 0 {
		blind := 0
		for i := range c.Operations {
			blind += int(analysis.BoolCount(c.Operations[i].Blind(limit)))
		}
		d.addIntro("More than %s slower: %s.", share(limit), kinds(c.Over(limit)))
		if blind > 0 {
			d.addIntro("In %s, such a slowdown could have been missed: times vary too much, or there are too few "+
				"operations.", kinds(blind))
		}
	}
	of := func(verdicts ...string) []compare.Row {
		return slices.DeleteFunc(slices.Clone(c.Operations),
			func(r compare.Row) bool { return !slices.Contains(verdicts, r.Verdict) })
	}
	for i, s := range []struct {
		title    string
		verdicts []string
	}{
		{"Changed", []string{compare.Slower, compare.Faster}},
		{"Not changed", []string{compare.Unchanged}},
		{fmt.Sprintf("Too few to tell: finding a change takes at least %d pairs", c.LeastPairs),
			[]string{compare.TooFew}},
	} {
		table := sheetOf("operations", s.title, of(s.verdicts...), comparedColumns(s.verdicts[0]))
		table.fields = nil
		if i == 0 {
			all := sheetOf("operations", "", c.Operations, comparedColumns(""))
			table.fields, table.values = all.fields, all.values
		}
		d.sheets = append(d.sheets, table)
	}
	d.sheets = append(d.sheets, sheetOf("only_a", "Only in A", c.OnlyA, onlyColumns),
		sheetOf("only_b", "Only in B", c.OnlyB, onlyColumns))
	if slices.ContainsFunc(c.Operations, func(r compare.Row) bool { return r.Grouped && r.Equal == 0 }) {
		d.addNote("* behind the name: launched together with others; the time is that of all of them")
	}
	if slices.ContainsFunc(c.Operations, func(r compare.Row) bool { return r.Equal > 0 }) {
		d.addNote("/n behind the name: n equal ones launched together; the time is that of the launch, divided by n")
	}
	if slices.ContainsFunc(c.Operations, func(r compare.Row) bool {
		return !facts.SourceOf(r.TimingSource).HasLength()
	}) {
		d.addNote("enqueue: it is known when these were launched, but not how long they ran; the times are those of " +
			"enqueueing")
	}
	return d
}

func describeRun(r *compare.Run, d *Document, name string) {
	text := fmt.Sprintf("  %s  %s: %s on %s, %s, %s", name, r.Archive, units.Count(r.Ranks, "rank", "ranks"),
		units.Count(r.Hosts, "host", "hosts"), units.Count(r.Communicators, "communicator", "communicators"),
		units.Count(int(r.Operations), "operation", "operations"))
	if r.Library != "" {
		text += ", library " + r.Library
	}
	d.addIntro("%s", text)
	for _, n := range []struct {
		n    uint64
		text string
	}{
		{r.Coupled, "launched together with others, with the same time"},
		{r.Unfinished, "not ended by all members, or with one end only"},
		{r.LeftOut, "left out: recorded differently by the members"}, {r.Lost, "events of NCCL lost"},
	} {
		if n.n > 0 {
			d.addIntro("     %d %s", n.n, n.text)
		}
	}
	for _, p := range r.Problems {
		d.addIntro("     problem: %s", p)
	}
}

func share(part float64) string {
	text := units.Number(100*math.Abs(part), false)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " %"
}

// withSign formats a change with its sign.
func withSign(v float64, text func(float64) string) string {
	switch {
	case math.IsInf(v, 0):
		return map[bool]string{true: "∞", false: "−∞"}[v > 0]
	case v < 0:
		return "−" + text(-v)
	case v == 0:
		return text(v)
	}
	return "+" + text(v)
}

func percentOf(v float64) string { return units.Number(100*v, false) + " %" }

// shapeText describes the communicators of a kind.
func shapeText(k *compare.Kind) string {
	return fmt.Sprintf("%d ranks on %s", k.Ranks, units.Count(k.Hosts, "host", "hosts"))
}

func sizeText(k *compare.Kind) string {
	if k.Class != nil {
		return k.Class.String()
	}
	return units.Bytes(k.Size)
}

// changedParts names the parts that have changed.
func changedParts(r *compare.Row) string {
	var parts []string
	for f, c := range r.Figures() {
		if compare.Figure(f) != compare.FigureTime && c != nil && c.Changed {
			parts = append(parts, fmt.Sprintf("%s %s", compare.FigureNames[f], withSign(c.Difference, units.Time)))
		}
	}
	if r.Skew != nil && r.Skew.Changed && r.LastB.Rank != "" {
		parts = append(parts, fmt.Sprintf("last: %s in %.0f %% (A: %s in %.0f %%)", r.LastB.Rank, 100*r.LastB.Share,
			r.LastA.Rank, 100*r.LastA.Share))
	}
	if !slices.Equal(r.WaysA, r.WaysB) {
		parts = append(parts, fmt.Sprintf("%s → %s", units.OrDash(strings.Join(r.WaysA, " ")),
			units.OrDash(strings.Join(r.WaysB, " "))))
	}
	return units.OrDash(strings.Join(parts, ", "))
}

func kindColumns[T any](of func(*T) *compare.Kind) []column[T] {
	return []column[T]{
		{"ranks", "<communicators", func(r *T) string { return shapeText(of(r)) },
			func(r *T) any { return of(r).Ranks }},
		{"hosts", "", nil, func(r *T) any { return of(r).Hosts }},
		{"ranks_per_host", "", nil, func(r *T) any { return of(r).Layout }},
		{"operation", "<operation", func(r *T) string { return of(r).Name() },
			func(r *T) any { return of(r).Operation }},
		{"grouped", "", nil, func(r *T) any { return of(r).Grouped }},
		{"launched_together", "", nil, func(r *T) any { return of(r).Equal }},
		{"size", "size", func(r *T) string { return sizeText(of(r)) }, func(r *T) any { return of(r).Size }},
		{"size_class", "", nil, func(r *T) any {
			if c := of(r).Class; c != nil {
				return c.String()
			}
			return nil
		}},
		label("timing_source", "timing source", func(r *T) string { return units.OrDash(of(r).TimingSource) }),
	}
}

var onlyColumns = append(kindColumns(func(k *compare.KindOnly) *compare.Kind { return &k.Kind }),
	number("operations", "count", func(k *compare.KindOnly) uint64 { return k.Operations }),
	shown("median_ns", "median", medianText, func(k *compare.KindOnly) float64 { return k.Median }),
)

func medianText(ns float64) string {
	if ns == 0 {
		return "–"
	}
	return units.Time(ns)
}

// comparedColumns returns the columns of a table of rows with one verdict; "": of all rows, for CSV.
func comparedColumns(verdict string) []column[compare.Row] {
	type row = compare.Row
	where := ""
	if verdict == compare.Slower {
		where = "<where"
	}
	countHead := func(run string) string {
		if verdict == compare.TooFew {
			return "count " + run
		}
		return ""
	}
	columns := append(kindColumns(func(r *row) *compare.Kind { return &r.Kind }),
		column[row]{"verdict", "", nil, func(r *row) any { return r.Verdict }},
		column[row]{"operations_a", countHead("A"), nil, func(r *row) any { return r.OperationsA }},
		column[row]{"operations_b", countHead("B"), nil, func(r *row) any { return r.OperationsB }},
		column[row]{"pairs", "pairs", nil, func(r *row) any { return r.Pairs }},
		column[row]{"paired_by", "", nil, func(r *row) any { return r.PairedBy }},
		column[row]{"cost_ns", "", nil, func(r *row) any { return r.Cost }},
		shown("median_a_ns", "median A", medianText, func(r *row) float64 { return r.Time.MedianA }),
		shown("median_b_ns", "median B", medianText, func(r *row) float64 { return r.Time.MedianB }),
		column[row]{"ratio", "change", func(r *row) string {
			if r.Pairs == 0 {
				return "–"
			}
			return withSign(r.Time.Share, percentOf)
		}, func(r *row) any { return r.Ratio }},
	)
	interval := func(r *row) string {
		low, high := float64(r.RatioLow)-1, float64(r.RatioHigh)-1
		return fmt.Sprintf("%s … %s", withSign(low, percentOf), withSign(high, percentOf))
	}
	if verdict != compare.TooFew {
		columns = append(columns, column[row]{"", "<interval", interval, nil})
	}
	columns = append(columns, column[row]{"ratio_low", "", nil, func(r *row) any { return finiteOrNil(r.RatioLow) }},
		column[row]{"ratio_high", "", nil, func(r *row) any { return finiteOrNil(r.RatioHigh) }},
		column[row]{"time_changed", "", nil, func(r *row) any { return r.Time.Changed }},
	)
	for f := compare.FigureEnqueue; f < compare.NumFigures; f++ {
		part := func(value func(*compare.Change) any) func(*row) any {
			return func(r *row) any {
				if c := r.Figures()[f]; c != nil {
					return value(c)
				}
				return nil
			}
		}
		name := compare.FigureNames[f]
		columns = append(columns,
			column[row]{name + "_median_a_ns", "", nil, part(func(c *compare.Change) any { return c.MedianA })},
			column[row]{name + "_median_b_ns", "", nil, part(func(c *compare.Change) any { return c.MedianB })},
			column[row]{name + "_difference_ns", "", nil, part(func(c *compare.Change) any { return c.Difference })},
			column[row]{name + "_low_ns", "", nil, part(func(c *compare.Change) any { return finiteOrNil(c.Low) })},
			column[row]{name + "_high_ns", "", nil, part(func(c *compare.Change) any { return finiteOrNil(c.High) })},
			column[row]{name + "_changed", "", nil, part(func(c *compare.Change) any { return c.Changed })},
		)
	}
	return append(columns, column[row]{"", where, changedParts, nil},
		column[row]{"ways_a", "", nil, func(r *row) any { return strings.Join(r.WaysA, " ") }},
		column[row]{"ways_b", "", nil, func(r *row) any { return strings.Join(r.WaysB, " ") }},
		column[row]{"last_a", "", nil, func(r *row) any { return r.LastA.Rank }},
		column[row]{"last_a_share", "", nil, func(r *row) any { return r.LastA.Share }},
		column[row]{"last_b", "", nil, func(r *row) any { return r.LastB.Rank }},
		column[row]{"last_b_share", "", nil, func(r *row) any { return r.LastB.Share }},
	)
}

func finiteOrNil(v compare.OrInfinite) any {
	if math.IsInf(float64(v), 0) {
		return nil
	}
	return float64(v)
}
