// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
)

// result is what a run found.
type result struct {
	Machine string   `json:"machine"`
	Go      string   `json:"go"`
	Libotf2 string   `json:"libotf2"`
	Rounds  int      `json:"rounds"`
	Rows    []figure `json:"rows"`
	Notes   []string `json:"notes,omitempty"`
}

// figure is one row of the table. Ratios are ours to libotf2's, of the best times; absent is what was not measured.
type figure struct {
	Case     string   `json:"case"`
	Unit     string   `json:"unit"`
	Rounds   int      `json:"rounds"`
	Ours     stat     `json:"ours"`
	Libotf2  *stat    `json:"libotf2,omitempty"`
	Ratio    *float64 `json:"ratio,omitempty"`
	RatioCPU *float64 `json:"ratio_cpu,omitempty"`
	Aim      float64  `json:"aim,omitempty"`   // largest ratio
	Limit    float64  `json:"limit,omitempty"` // largest value of ours
	Verdict  string   `json:"verdict,omitempty"`
}

// stat sums up some values, of times also those of the processors' time.
type stat struct {
	Min       float64 `json:"min"`
	Median    float64 `json:"median"`
	Max       float64 `json:"max"`
	CPU       float64 `json:"cpu_min,omitempty"`
	CPUMedian float64 `json:"cpu_median,omitempty"`
}

const met, missed = "met", "missed"

func minimumAndMedian(v []float64) (float64, float64) {
	return slices.Min(v), stats.Median(v)
}

// stat returns the row's values over outcomes.
func (r *row) stat(outcomes []*outcome) stat {
	var wall, cpu []float64
	for _, o := range outcomes {
		if r.count != nil {
			wall = append(wall, r.count(o))
			continue
		}
		s := r.of(o)
		wall, cpu = append(wall, r.in(s.Wall, o)), append(cpu, r.in(s.CPU, o))
	}
	var s stat
	s.Min, s.Median = minimumAndMedian(wall)
	s.Max = slices.Max(wall)
	if cpu != nil {
		s.CPU, s.CPUMedian = minimumAndMedian(cpu)
	}
	return s
}

// add appends a row. An aim is met if the ratio of the best times and that of the processors' best times are, a limit
// if no round was above it.
func (r *result) add(w *row, samples []sample) {
	var ours, libotf2 []*outcome
	for _, s := range samples {
		ours = append(ours, s.ours)
		if s.libotf2 != nil {
			libotf2 = append(libotf2, s.libotf2)
		}
	}
	f := figure{Case: w.title, Unit: w.unit, Rounds: len(samples), Ours: w.stat(ours), Aim: w.aim, Limit: w.limit}
	worst := 0.0
	if len(libotf2) > 0 {
		s := w.stat(libotf2)
		f.Libotf2 = &s
		ratio := f.Ours.Min / s.Min
		f.Ratio, worst = &ratio, ratio
		if s.CPU > 0 {
			cpu := f.Ours.CPU / s.CPU
			f.RatioCPU, worst = &cpu, max(ratio, cpu)
		}
	}
	switch {
	case w.limit > 0:
		f.Verdict = met
		if f.Ours.Max > w.limit {
			f.Verdict = missed
		}
	case w.aim > 0 && f.Ratio == nil:
		f.Verdict = "not measured"
	case w.aim > 0 && worst <= w.aim:
		f.Verdict = met
	case w.aim > 0:
		f.Verdict = fmt.Sprintf("%s by %.0f %%", missed, 100*(worst/w.aim-1))
	}
	r.Rows = append(r.Rows, f)
}

var columns = []string{"case", "unit", "ours", "libotf2", "ratio", "ratio CPU", "aim", ""}

// cells returns the texts of a row: the smallest value and, in brackets, the median; of files the largest.
func (f *figure) cells() []string {
	show := func(s *stat) string {
		switch {
		case s == nil:
			return "–"
		case f.Unit == fileCount:
			return fmt.Sprintf("%.0f", s.Max)
		default:
			return fmt.Sprintf("%s (%s)", measure.Digits(s.Min), measure.Digits(s.Median))
		}
	}
	ratio := func(r *float64) string {
		if r == nil {
			return "–"
		}
		return fmt.Sprintf("%.3f", *r)
	}
	aim := "–"
	if f.Aim > 0 {
		aim = fmt.Sprintf("≤ %g×", f.Aim)
	} else if f.Limit > 0 {
		aim = fmt.Sprintf("≤ %g %s", f.Limit, f.Unit)
	}
	return []string{f.Case, f.Unit, show(&f.Ours), show(f.Libotf2), ratio(f.Ratio), ratio(f.RatioCPU), aim, f.Verdict}
}

// Page shows the rows as a table.
func (r *result) Page() *measure.Page {
	t := measure.Table{Columns: columns}
	for i := range r.Rows {
		t.Rows = append(t.Rows, r.Rows[i].cells())
	}
	heading := fmt.Sprintf("%s; %s; libotf2 %s; best (median) of up to %d alternating rounds", r.Machine, r.Go,
		r.Libotf2, r.Rounds)
	return &measure.Page{Heading: heading, Tables: []measure.Table{t}, Notes: r.Notes}
}
