// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
)

// result is what a run found.
type result struct {
	Machine   string     `json:"machine"`
	Go        string     `json:"go"`
	Clock     string     `json:"clock,omitempty"` // of the records
	Timer     float64    `json:"timer_ns,omitempty"`
	TimerStep float64    `json:"timer_step_ns,omitempty"`
	Rounds    int        `json:"rounds"`
	Costs     []costRow  `json:"costs,omitempty"`
	Others    []otherRow `json:"others,omitempty"`
	Trials    []trial    `json:"trials,omitempty"`
	Notes     []string   `json:"notes,omitempty"`
}

// costRow is what callbacks cost in one case.
type costRow struct {
	Case    string      `json:"case"`
	Ours    costFigures `json:"ours"`
	Empty   costFigures `json:"empty"`
	Aim     string      `json:"aim,omitempty"`
	Verdict string      `json:"verdict,omitempty"`

	kinds bool // each kind of callback has a row of its own
}

// otherRow is any other figure.
type otherRow struct {
	Title   string   `json:"title"`
	Unit    string   `json:"unit"`
	Ours    float64  `json:"ours"`
	Empty   *float64 `json:"empty,omitempty"`
	Aim     float64  `json:"aim,omitempty"` // most of what is above the empty plugin, or
	AtLeast bool     `json:"at_least,omitempty"`
	Verdict string   `json:"verdict,omitempty"`
}

const met, missed = "met", "missed"

// verdict compares a value with the most that is aimed at.
func verdict(v, most float64) string {
	if v <= most {
		return met
	}
	return fmt.Sprintf("%s by %.0f %%", missed, 100*(v/most-1))
}

// judge compares a paced case with its aim.
func (r *costRow) judge(c *costCase) {
	a := c.piece.aim
	if !c.paced {
		return
	}
	of, figure := "mean", r.Ours.Mean-r.Empty.Mean
	if a.median {
		of, figure = "median", r.Ours.Median-r.Empty.Median
	}
	r.Aim = fmt.Sprintf("%s +%g, p99 %g", of, a.most, a.p99)
	r.Verdict = fmt.Sprintf("%s, %s", verdict(figure, a.most), verdict(r.Ours.P99, a.p99))
}

func (r *result) add(o otherRow) {
	v := o.Ours
	if o.Empty != nil {
		v -= *o.Empty
	}
	switch {
	case o.Aim == 0:
	case !o.AtLeast:
		o.Verdict = verdict(v, o.Aim)
	case v >= o.Aim:
		o.Verdict = met
	default:
		o.Verdict = fmt.Sprintf("%s by %.0f %%", missed, 100*(1-v/o.Aim))
	}
	r.Others = append(r.Others, o)
}

func (r *result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// beside writes a figure of ours, the empty plugin's and the difference.
func beside(ours, empty float64) string {
	return fmt.Sprintf("%s − %s = %s", measure.Digits(ours), measure.Digits(empty), measure.Digits(ours-empty))
}

// with writes a figure of ours and, in brackets, the empty plugin's.
func with(ours, empty float64) string {
	return fmt.Sprintf("%s (%s)", measure.Digits(ours), measure.Digits(empty))
}

func (r *result) tables() []measure.Table {
	var all []measure.Table
	if len(r.Costs) > 0 {
		costs := measure.Table{Title: "Cost of a callback, ns",
			Columns: []string{"case", "mean: ours − empty", "median: ours − empty",
				"p99 (empty)", "p99.9 (empty)", "max (empty), µs", "M callbacks/s", "starts refused", "aim", ""}}
		single := measure.Table{Title: "Each kind of callback by itself, paced, ns",
			Columns: []string{"callback", "threads", "mean: ours − empty", "p99 (empty)", "p99.9 (empty)"}}
		for i := range r.Costs {
			c := &r.Costs[i]
			o, e := &c.Ours, &c.Empty
			aim, lost := "–", "0"
			if c.Aim != "" {
				aim = c.Aim
			}
			if o.Lost > 0 {
				lost = fmt.Sprintf("%.2f %%", 100*o.Lost)
			}
			costs.Rows = append(costs.Rows, []string{c.Case, beside(o.Mean, e.Mean), beside(o.Median, e.Median),
				with(o.P99, e.P99), with(o.P999, e.P999),
				with(o.Max/1e3, e.Max/1e3), measure.Digits(o.Rate / 1e6), lost, aim, c.Verdict})
			if !c.kinds {
				continue
			}
			threads := c.Case[strings.LastIndex(c.Case, ", ")+2:]
			threads, _, _ = strings.Cut(threads, " ")
			for k := range o.Callbacks {
				oc, ec := &o.Callbacks[k], &e.Callbacks[k]
				single.Rows = append(single.Rows, []string{oc.Name, threads, beside(oc.Mean, ec.Mean),
					with(oc.P99, ec.P99), with(oc.P999, ec.P999)})
			}
		}
		all = append(all, costs)
		if len(single.Rows) > 0 {
			all = append(all, single)
		}
	}
	if len(r.Others) > 0 {
		others := measure.Table{Title: "Start, memory, rate",
			Columns: []string{"figure", "unit", "ours", "empty", "difference", "aim", ""}}
		for i := range r.Others {
			o := &r.Others[i]
			empty, difference, aim := "–", "–", "–"
			if o.Empty != nil {
				empty, difference = measure.Digits(*o.Empty), measure.Digits(o.Ours-*o.Empty)
			}
			if o.Aim > 0 {
				aim = fmt.Sprintf("≤ %g", o.Aim)
				if o.AtLeast {
					aim = fmt.Sprintf("≥ %g", o.Aim)
				}
			}
			others.Rows = append(others.Rows, []string{o.Title, o.Unit, measure.Digits(o.Ours), empty, difference, aim,
				o.Verdict})
		}
		all = append(all, others)
	}
	return all
}

func (r *result) heading() string {
	rounds := "one round"
	if r.Rounds > 1 {
		rounds = fmt.Sprintf("medians of %d rounds", r.Rounds)
	}
	s := fmt.Sprintf("%s; %s; %s", r.Machine, r.Go, rounds)
	if r.Clock != "" {
		s += fmt.Sprintf("; clock of the records: %s; timer: %s ns, subtracted, single times in steps of %s ns",
			r.Clock, measure.Digits(r.Timer), measure.Digits(r.TimerStep))
	}
	return s
}

// Page shows all tables.
func (r *result) Page() *measure.Page {
	return &measure.Page{Heading: r.heading(), Tables: r.tables(), Notes: r.Notes}
}
