// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
)

// callAim is how much longer than with the empty plugin a call may take, as a ratio of medians.
const callAim = 1.05

// result is what a run found.
type result struct {
	Machine    string     `json:"machine"`
	Library    string     `json:"library"` // the bed's name: NCCL's release
	Rounds     int        `json:"rounds"`
	Ranks      int        `json:"ranks"`
	Operations int        `json:"operations"`
	Loops      []loopRow  `json:"loops"`
	Firsts     []firstRow `json:"firsts"`
}

// loopRow is what operations in a loop took; times in microseconds, ratios to the empty plugin with the same events.
type loopRow struct {
	// AllReduce, or SendRecv: a group of a message to the next rank and one from the rank before
	Call       string  `json:"call"`
	Plugin     string  `json:"plugin"`
	CallMedian float64 `json:"call_median_us"`
	CallMean   float64 `json:"call_mean_us"`
	Loop       float64 `json:"loop_us"`
	CallRatio  float64 `json:"call_ratio,omitempty"`
	MeanRatio  float64 `json:"call_mean_ratio,omitempty"`
	LoopRatio  float64 `json:"loop_ratio,omitempty"`
	Aim        float64 `json:"aim,omitempty"`
	Init       float64 `json:"init_us"`
	First      float64 `json:"first_us"`
	Own        float64 `json:"job_mib"`
	Collector  float64 `json:"collector_mib,omitempty"`
	Processor  float64 `json:"collector_us_per_operation,omitempty"`
}

// firstRow is what first operations of communicators took, microseconds.
type firstRow struct {
	How           string  `json:"how"`
	Case          string  `json:"case"`
	Communicators int     `json:"communicators"`
	Median        float64 `json:"median_us"`
	Least         float64 `json:"least_us"`
	Most          float64 `json:"most_us"`
	Sum           float64 `json:"sum_us"`  // of all communicators of a run
	Init          float64 `json:"init_us"` // … of their initialization
}

func ratio(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", v)
}

func figure(v float64) string {
	if v == 0 {
		return "–"
	}
	return measure.Digits(v)
}

func (l *loopRow) verdict() string {
	switch {
	case l.Aim == 0:
		return "–"
	case l.CallRatio <= l.Aim:
		return fmt.Sprintf("≤ %g, met", l.Aim)
	}
	return fmt.Sprintf("≤ %g, missed by %.0f %%", l.Aim, 100*(l.CallRatio/l.Aim-1))
}

// loopTables are two for each call: what the job notices, and what the collector does.
func (r *result) loopTables() (tables []measure.Table) {
	for i := range r.Loops {
		l := &r.Loops[i]
		if i == 0 || l.Call != r.Loops[i-1].Call {
			tables = append(tables,
				measure.Table{Title: l.Call + " in a loop",
					Columns: []string{"plugin", "call: median, µs", "mean, µs", "ratio to empty: median", "mean",
						"loop, µs/operation",
						"ratio to empty", "aim (median of calls)"}},
				measure.Table{Title: l.Call + ": start, memory, the collector", Figures: true,
					Columns: []string{"plugin", "communicator's initialization, ms",
						"first operation (AllReduce), ms", "job without rings, MiB", "collector, MiB",
						"collector's processor, µs/operation"}})
		}
		calls, rest := &tables[len(tables)-2], &tables[len(tables)-1]
		calls.Rows = append(calls.Rows, []string{l.Plugin, measure.Digits(l.CallMedian), measure.Digits(l.CallMean),
			ratio(l.CallRatio), ratio(l.MeanRatio), measure.Digits(l.Loop),
			ratio(l.LoopRatio), l.verdict()})
		rest.Rows = append(rest.Rows, []string{l.Plugin, measure.Digits(l.Init / 1e3), measure.Digits(l.First / 1e3),
			measure.Digits(l.Own), figure(l.Collector), figure(l.Processor)})
	}
	return tables
}

// Page shows all tables.
func (r *result) Page() *measure.Page {
	tables := r.loopTables()
	for _, f := range r.Firsts {
		if last := &tables[len(tables)-1]; last.Title != firstTitle(&f) {
			tables = append(tables, measure.Table{Title: firstTitle(&f), Figures: true,
				Columns: []string{"plugin", "median, ms", "shortest, ms", "longest, ms", "all, s",
					"initialization of all, s"}})
		}
		t := &tables[len(tables)-1]
		t.Rows = append(t.Rows, []string{f.Case, measure.Digits(f.Median / 1e3), measure.Digits(f.Least / 1e3),
			measure.Digits(f.Most / 1e3),
			measure.Digits(f.Sum / 1e6), measure.Digits(f.Init / 1e6)})
	}
	return &measure.Page{
		Heading: fmt.Sprintf("%s; NCCL %s; %d ranks, %d operations, %d rounds", r.Machine, r.Library, r.Ranks,
			r.Operations, r.Rounds),
		Tables: tables,
	}
}

func firstTitle(f *firstRow) string {
	return fmt.Sprintf("First operations of %d communicators, %s", f.Communicators, f.How)
}
