// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
)

// result is what was found.
type result struct {
	Machine string `json:"machine"`
	Rounds  int    `json:"rounds"`
	Events  string `json:"events"`
	Rows    []row  `json:"rows"`
}

// row has medians of a plugin's runs.
type row struct {
	Storm     string  `json:"storm"`
	Plugin    string  `json:"plugin"`
	Loop      float64 `json:"loop_us"`      // per operation of a rank
	Ratio     float64 `json:"loop_ratio"`   // to the empty plugin of the same round
	Processor float64 `json:"processor_us"` // of the job's threads, per operation
	Init      float64 `json:"init_ms"`      // the first
	Finalize  float64 `json:"finalize_ms"`  // of all ranks
	Faults    float64 `json:"faults"`       // page faults from the second operation of a thread on
	Bytes     float64 `json:"bytes"`        // written, per operation
	// the collector's processor time per operation, up to its end; 0: there is none
	Collecting float64 `json:"collector_us"`
	Job        float64 `json:"job_mib"`       // the most memory, rings included
	Collector  float64 `json:"collector_mib"` // the most memory, without rings
	Kept       float64 `json:"kept"`          // part of the operations (ours: of the callbacks); -1: nobody can tell
	Least      float64 `json:"finalize_best"` // ms
}

// rowOf are the medians of runs, and of their ratios to the empty plugin's of the same round.
func rowOf(storm, plugin string, runs, empty []run) row {
	of := func(get func(r *run) float64) float64 {
		var v []float64
		for i := range runs {
			v = append(v, get(&runs[i]))
		}
		return median(v)
	}
	var ratios []float64
	least := runs[0].finalize
	for i := range runs {
		ratios = append(ratios, runs[i].loop/empty[i].loop)
		least = min(least, runs[i].finalize)
	}
	return row{
		Storm: storm, Plugin: plugin, Loop: of(func(r *run) float64 { return r.loop }), Ratio: median(ratios),
		Processor: of(func(r *run) float64 { return r.processor }), Init: of(func(r *run) float64 { return r.init }),
		Finalize: of(func(r *run) float64 { return r.finalize }), Least: least,
		Faults: of(func(r *run) float64 { return r.faults }),
		Bytes:  of(func(r *run) float64 { return r.bytes }), Kept: of(func(r *run) float64 { return r.kept }),
		Collecting: of(func(r *run) float64 { return r.collecting }), Job: of(func(r *run) float64 { return r.job }),
		Collector: of(func(r *run) float64 { return r.collector }),
	}
}

// Page shows a table for each storm.
func (r *result) Page() *measure.Page {
	p := &measure.Page{Heading: fmt.Sprintf("%s; all ranks in one process, medians of %d alternating rounds", r.Machine,
		r.Rounds)}
	for i := range r.Rows {
		w := &r.Rows[i]
		if n := len(p.Tables); n == 0 || p.Tables[n-1].Title != w.Storm {
			p.Tables = append(p.Tables, measure.Table{Title: w.Storm, Figures: true,
				Columns: []string{"plugin", "loop, µs/operation", "ratio to empty",
					"job's processor, µs/operation", "collector's, up to its end", "first init, ms", "finalize, ms",
					"best",
					"page faults", "job + collector, MiB", "bytes/operation", "kept"}})
		}
		kept := "–"
		if w.Kept >= 0 {
			kept = fmt.Sprintf("%.1f %%", 100*w.Kept)
		}
		t := &p.Tables[len(p.Tables)-1]
		t.Rows = append(t.Rows, []string{w.Plugin, measure.Digits(w.Loop), fmt.Sprintf("%.3f", w.Ratio),
			measure.Digits(w.Processor),
			some(w.Collecting), measure.Digits(w.Init), measure.Digits(w.Finalize), measure.Digits(w.Least),
			fmt.Sprintf("%.0f", w.Faults), measure.Digits(w.Job) + " + " + some(w.Collector),
			fmt.Sprintf("%.0f", w.Bytes), kept})
	}
	return p
}

// some is a figure of the collector: – without one.
func some(v float64) string {
	if v == 0 {
		return "–"
	}
	return measure.Digits(v)
}
