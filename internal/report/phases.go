// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/phases"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// phaseHeads are the heads of the table in text.
var phaseHeads = []string{"<phase", "ranks", "count", "avg", "min", "p50", "max", "in NCCL calls", "share", "calls",
	"with GPU time", "GPU time/rank", "waited", "load balance", "comm. eff.", "<slowest rank", "its time", "spread"}

// phaseFields are the fields in CSV.
var phaseFields = []column[phases.Row]{
	label("phase", "", func(p *phases.Row) string { return p.Phase }),
	number("ranks", "", func(p *phases.Row) uint64 { return uint64(p.Ranks) }),
	number("count", "", func(p *phases.Row) uint64 { return p.Count }),
	number("points", "", func(p *phases.Row) uint64 { return p.Points }),
	number("unfinished", "", func(p *phases.Row) uint64 { return p.Unfinished }),
	meanTime("avg_ns", "", func(p *phases.Row) float64 { return p.Time.Avg }),
	meanTime("min_ns", "", func(p *phases.Row) float64 { return p.Time.Min }),
	meanTime("p50_ns", "", func(p *phases.Row) float64 { return p.Time.P50 }),
	meanTime("p99_ns", "", func(p *phases.Row) float64 { return p.Time.P99 }),
	meanTime("max_ns", "", func(p *phases.Row) float64 { return p.Time.Max }),
	{"nccl_ns", "", nil, func(p *phases.Row) any { return countIfCalls(p, p.NCCL) }},
	{"calls", "", nil, func(p *phases.Row) any { return countIfCalls(p, p.Calls) }},
	{"timed", "", nil, func(p *phases.Row) any { return countIfCalls(p, p.Timed) }},
	{"gpu_avg_ns", "", nil, func(p *phases.Row) any { return knownOrNil(p.GPU) }},
	label("slowest_rank", "", func(p *phases.Row) string { return p.Slowest }),
	number("spread_ns", "", func(p *phases.Row) uint64 { return p.Spread }),
	number("waited_ns", "", func(p *phases.Row) uint64 { return p.Waited }),
	{"load_balance", "", nil, func(p *phases.Row) any {
		if p.Efficiency == nil {
			return nil
		}
		return p.Efficiency.LoadBalance
	}},
	{"communication_efficiency", "", nil, func(p *phases.Row) any {
		if p.Efficiency == nil {
			return nil
		}
		return p.Efficiency.Communication
	}},
}

// countIfCalls returns n, or nil in archives without calls, where it is not known.
func countIfCalls(p *phases.Row, n uint64) any {
	if !p.CallsKnown {
		return nil
	}
	return n
}

func phaseSheet(rows []phases.Row) sheet {
	s := sheetOf("phases", "Phases of the application", rows, phaseFields)
	s.heads, s.text = phaseHeads, phaseRows(rows)
	s.sortBy("the time", func(i int) float64 { return rows[i].Time.Total })
	s.order.fixed = true
	s.optional = []string{"min", "p50", "calls", "spread", "in NCCL calls", "with GPU time"}
	return s
}

func phaseRows(rows []phases.Row) (cells [][]string) {
	for i := range rows {
		p := &rows[i]
		cells = append(cells, append([]string{p.Phase, fmt.Sprint(p.Ranks), phaseCountText(p)}, timeCells(p)...))
	}
	return cells
}

func writePhases(w io.Writer, rows []phases.Row, style Style) {
	printable.Fprintln(w, "Phases of the application")
	s := phaseSheet(rows)
	s.more = append(s.more, phaseRemarks(rows)...)
	s.write(w, style)
}

// phaseRemarks state what the times do not include, and their quality.
func phaseRemarks(rows []phases.Row) (lines []string) {
	var unfinished, captured uint64
	approximate := false
	for i := range rows {
		p := &rows[i]
		unfinished += p.Unfinished
		captured += p.Captured
		approximate = approximate || p.Approximate
	}
	if approximate {
		lines = append(lines, "~ accurate to 2 %")
	}
	if unfinished > 0 {
		lines = append(lines, units.Count(int(unfinished), "phase had",
			"phases had")+" not ended in the data, and these times leave them out.")
	}
	if captured > 0 {
		lines = append(
			lines, "Calls that graphs captured are counted as calls; no phase includes the time of their replays.")
	}
	return lines
}

func phaseCountText(p *phases.Row) string {
	points := units.Count(int(p.Points), "point", "points")
	switch {
	case p.Points == 0:
		return fmt.Sprint(p.Count)
	case p.Count == 0:
		return points
	}
	return fmt.Sprintf("%d, %s", p.Count, points)
}

// timeCells returns the cells from avg to spread.
func timeCells(p *phases.Row) []string {
	const none = "–"
	share := units.Percent(float64(p.NCCL), p.Time.Total)
	inside := units.Time(float64(p.NCCL) / float64(max(p.Count, 1)))
	calls, timed := fmt.Sprint(p.Calls), fmt.Sprint(p.Timed)
	if !p.CallsKnown {
		share, inside, calls, timed = units.Unknown, units.Unknown, units.Unknown, units.Unknown
	}
	cells := []string{none, none, none, none, none, none}
	slowest := []string{none, none, none}
	if p.Count > 0 {
		p50 := units.Time(p.Time.P50)
		if p.Approximate {
			p50 = "~" + p50
		}
		cells = []string{
			units.Time(p.Time.Avg), units.Time(p.Time.Min), p50, units.Time(p.Time.Max), inside, share,
		}
		most := uint64(0)
		for i := range p.ByRank {
			most = max(most, p.ByRank[i].Total)
		}
		slowest = []string{p.Slowest, units.Time(float64(most)), units.Time(float64(p.Spread))}
	}
	gpu := units.Unknown
	switch {
	case p.Timed > 0:
		gpu = units.Time(p.GPU)
	case p.CallsKnown && p.Calls == 0:
		gpu = none
	}
	balance, communication := units.Unknown, units.Unknown
	if f := p.Efficiency; f != nil {
		balance, communication = units.Percent(f.LoadBalance, 1), units.Percent(f.Communication, 1)
	}
	return append(append(cells, calls, timed, gpu, units.Time(float64(p.Waited)), balance, communication), slowest...)
}
