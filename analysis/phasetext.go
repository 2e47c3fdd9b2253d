// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"io"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

const notKnown = "n/a"

// phaseHeads are the heads of the table for people.
var phaseHeads = []string{"<phase", "ranks", "count", "avg", "min", "p50", "max", "in NCCL calls", "share", "calls",
	"with GPU time", "GPU time/rank", "<slowest rank", "its time", "spread"}

// phaseFields are the fields in CSV.
var phaseFields = []column[PhaseRow]{
	label("phase", "", func(p *PhaseRow) string { return p.Phase }),
	number("ranks", "", func(p *PhaseRow) uint64 { return uint64(p.Ranks) }),
	number("count", "", func(p *PhaseRow) uint64 { return p.Count }),
	number("points", "", func(p *PhaseRow) uint64 { return p.Points }),
	number("unfinished", "", func(p *PhaseRow) uint64 { return p.Unfinished }),
	meanTime("avg_ns", "", func(p *PhaseRow) float64 { return p.Time.Avg }),
	meanTime("min_ns", "", func(p *PhaseRow) float64 { return p.Time.Min }),
	meanTime("p50_ns", "", func(p *PhaseRow) float64 { return p.Time.P50 }),
	meanTime("p99_ns", "", func(p *PhaseRow) float64 { return p.Time.P99 }),
	meanTime("max_ns", "", func(p *PhaseRow) float64 { return p.Time.Max }),
	{"nccl_ns", "", nil, func(p *PhaseRow) any { return p.ifCalls(p.NCCL) }},
	{"calls", "", nil, func(p *PhaseRow) any { return p.ifCalls(p.Calls) }},
	{"timed", "", nil, func(p *PhaseRow) any { return p.ifCalls(p.Timed) }},
	{"gpu_avg_ns", "", nil, func(p *PhaseRow) any { return known(p.GPU) }},
	label("slowest_rank", "", func(p *PhaseRow) string { return p.Slowest }),
	number("spread_ns", "", func(p *PhaseRow) uint64 { return p.Spread }),
}

// ifCalls is a number that is not known in archives without calls.
func (p *PhaseRow) ifCalls(n uint64) any {
	if !p.CallsKnown {
		return nil
	}
	return n
}

func phaseSheet(rows []PhaseRow) sheet {
	s := sheetOf("phases", "Phases of the application", rows, phaseFields)
	s.heads, s.text = phaseHeads, phaseRows(rows)
	return s
}

func phaseRows(rows []PhaseRow) (cells [][]string) {
	for i := range rows {
		p := &rows[i]
		cells = append(cells, append([]string{p.Phase, fmt.Sprint(p.Ranks), p.countText()}, p.timeCells()...))
	}
	return cells
}

func writePhases(w io.Writer, rows []PhaseRow) {
	printable.Fprintln(w, "Phases of the application")
	t := newTable(phaseHeads...)
	t.rows = phaseRows(rows)
	var unfinished, captured uint64
	approximate := false
	for i := range rows {
		p := &rows[i]
		unfinished += p.Unfinished
		captured += p.Captured
		approximate = approximate || p.Approximate
	}
	_ = t.write(w) // a buffered writer keeps its error
	if approximate {
		printable.Fprintln(w, "~ right to 2 %")
	}
	if unfinished > 0 {
		printable.Fprintf(w, "%s not ended in the data and not in these times.\n", count(int(unfinished), "phase had", "phases had"))
	}
	if captured > 0 {
		printable.Fprintln(w, "Calls that were captured into graphs are in the calls; what their replays took is in no phase.")
	}
}

func (p *PhaseRow) countText() string {
	points := count(int(p.Points), "point", "points")
	switch {
	case p.Points == 0:
		return fmt.Sprint(p.Count)
	case p.Count == 0:
		return points
	}
	return fmt.Sprintf("%d, %s", p.Count, points)
}

// timeCells are the cells from avg to spread.
func (p *PhaseRow) timeCells() []string {
	const none = "–"
	share := formatPercent(float64(p.NCCL), p.Time.Total)
	inside := formatTime(float64(p.NCCL) / float64(max(p.Count, 1)))
	calls, timed := fmt.Sprint(p.Calls), fmt.Sprint(p.Timed)
	if !p.CallsKnown {
		share, inside, calls, timed = notKnown, notKnown, notKnown, notKnown
	}
	cells := []string{none, none, none, none, none, none}
	slowest := []string{none, none, none}
	if p.Count > 0 {
		p50 := formatTime(p.Time.P50)
		if p.Approximate {
			p50 = "~" + p50
		}
		cells = []string{
			formatTime(p.Time.Avg), formatTime(p.Time.Min), p50, formatTime(p.Time.Max), inside, share,
		}
		most := uint64(0)
		for i := range p.ByRank {
			most = max(most, p.ByRank[i].Total)
		}
		slowest = []string{p.Slowest, formatTime(float64(most)), formatTime(float64(p.Spread))}
	}
	gpu := notKnown
	switch {
	case p.Timed > 0:
		gpu = formatTime(p.GPU)
	case p.CallsKnown && p.Calls == 0:
		gpu = none
	}
	return append(append(cells, calls, timed, gpu), slowest...)
}
