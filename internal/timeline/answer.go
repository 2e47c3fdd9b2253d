// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overtime"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// headAnswer is the part of the report below its verdict, with the places that it refers to.
type headAnswer struct {
	// From and To limit the run without start-up and without the time after the last operation, as in the critical
	// path; both are 0 if unknown.
	From    uint64       `json:"from"`
	To      uint64       `json:"to"`
	Lines   []headSaid   `json:"lines"`
	Windows []headWindow `json:"windows"`
	Worst   []headWorst  `json:"worst"`
}

// headSaid is a line of the report with the place that it refers to.
type headSaid struct {
	report.Line
	From   uint64 `json:"from,omitempty"`
	To     uint64 `json:"to,omitempty"` // 0: the line refers to no time
	Search string `json:"search,omitempty"`
}

// headWindow is the waiting in a window of time.
type headWindow struct {
	From   uint64  `json:"from"`
	To     uint64  `json:"to"`
	Waits  uint64  `json:"waits"`
	Waited uint64  `json:"waited"`
	Share  float64 `json:"share"` // of the time of all ranks
	Rank   int     `json:"rank"`  // rank that caused the largest part, index into ranks; −1: unknown
	Back   float64 `json:"back"`  // that part, ns
}

// headWorst is an operation with much waiting.
type headWorst struct {
	Comm        string  `json:"comm"`
	Operation   string  `json:"operation"`
	Ordinal     uint64  `json:"ordinal"`
	Since       uint64  `json:"since"` // the first begin
	At          uint64  `json:"at"`    // the last begin
	Rank        int     `json:"rank"`  // that was waited for; −1: unknown
	Phase       string  `json:"phase,omitempty"`
	Caused      uint64  `json:"caused"`
	Uncertainty *uint64 `json:"uncertainty"` // of it; null: not stated
}

// since converts a time to the page's time.
func (d *Data) since(t otf2.Timestamp) uint64 { return uint64(t - min(t, d.origin)) }

// answer returns the report's answer.
func (d *Data) answer(ranks rankIndex) headAnswer {
	s := d.report.WaitStates
	a := headAnswer{Lines: []headSaid{}, Windows: []headWindow{}, Worst: []headWorst{}}
	if p := d.report.CriticalPath; p != nil && p.Steady > 0 {
		begin := d.since(d.report.Summary.Begin)
		a.From, a.To = begin+p.StartUp+p.Unknown, begin+p.Length-min(p.Length, p.After)
	}
	for _, l := range report.LinesBelowVerdict(d.report) {
		a.Lines = append(a.Lines, d.placed(l, &a))
	}
	for _, w := range s.OverTime {
		one := headWindow{From: d.since(w.Begin), To: d.since(w.End), Waits: w.Waits, Waited: w.Waited, Share: w.Share,
			Rank: -1}
		if w.Rank >= 0 && w.Rank < len(d.ranks) {
			one.Rank, one.Back = w.Rank, w.GoesBack
		}
		a.Windows = append(a.Windows, one)
	}
	for _, w := range s.Worst {
		a.Worst = append(a.Worst, headWorst{w.Communicator, w.Operation, w.Ordinal, d.since(w.Since), d.since(w.At),
			ranks.find(w.Rank, w.Host), w.Phase, w.Caused, w.Uncertainty})
	}
	return a
}

// placed adds to a line the place that it refers to.
func (d *Data) placed(l report.Line, a *headAnswer) headSaid {
	said := headSaid{Line: l}
	s := d.report.WaitStates
	switch l.Name {
	case report.LinePath:
		said.From, said.To = a.From, a.To
	case report.LineMost:
		if w := overtime.Worst(s.OverTime); w != nil {
			said.From, said.To = d.since(w.Begin), d.since(w.End)
		}
	case report.LineStartUp:
		said.To = a.From
	case report.LineIn:
		said.Search = "wait>0"
	}
	return said
}
