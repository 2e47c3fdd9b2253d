// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/live"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Live returns the view's lines and tables with at most the given numbers of operations and ranks (0: all). It prefers
// ranks that others wait for or that wait the most. Warnings begin with "!".
func Live(v *live.View, operations, ranks int) *Document {
	d := &Document{title: v.Directory + ": " + describeView(v)}
	for _, p := range v.Problems {
		d.addIntro("! %s", p)
	}
	if v.State == live.LiveWaiting {
		return d
	}
	line := func(name, format string, args ...any) { d.addIntro("  %-10s  %s", name, fmt.Sprintf(format, args...)) }
	if v.Window == 0 {
		line("operations", "%d so far, none of them known in detail yet", v.Done)
	} else {
		line("operations", "%s/s, %s/s; %d so far", units.Number(v.Rate, false), formatRate(v.Bytes), v.Done)
		line("window", "%s, until %s ago", units.Time(float64(v.Window)), formatAge(time.Duration(v.Age)))
		line("waiting", "%s", waitingText(v))
	}
	if v.Lost == 0 {
		line("losses", "none")
	} else {
		d.addIntro("! losses      %d events: %s", v.Lost, selfreport.CountersText(v.LostBy))
	}
	if v.Partial > 0 {
		line("recording", "only in part, on request, in %s", units.Count(v.Partial, "process", "processes"))
	}
	if v.Skipped {
		d.addIntro("! there are too many events to follow: some were skipped")
	}
	for i := range v.Stops {
		d.addIntro("! stopped     %s", v.Stops[i].Sentence())
	}
	if v.Silent != "" {
		line("silent", "%s", v.Silent)
	}
	for _, died := range v.Died {
		d.addIntro("! died        %s", died)
	}
	if v.Crashed > 0 {
		d.addIntro("! of %s the collector has died, too", units.Count(v.Crashed, "process", "processes"))
	}
	d.sheets = append(d.sheets, firstRows(sheetOf("operations", "Operations", v.Operations, liveOperationColumns),
		operations, "operation", "operations"), liveRankSheet(v, ranks))
	if v.Hosts > 1 && v.Compared+v.NotCompared > 0 {
		d.addNote("Clocks of hosts are not known exactly while the job runs: between hosts, waiting is judged by the " +
			"ends of operations.")
	}
	return d
}

func describeView(v *live.View) string {
	if v.State == live.LiveWaiting {
		return "waiting for a job to be recorded here"
	}
	text := fmt.Sprintf("%s, %s on %s", v.State, units.Count(v.Processes, "process", "processes"),
		units.Count(v.Hosts, "host", "hosts"))
	if v.Ended > 0 && v.State == live.LiveRunning {
		text += fmt.Sprintf(", %d ended", v.Ended)
	}
	if v.Jobs > 1 {
		text += fmt.Sprintf(" (one of %d jobs in this directory)", v.Jobs)
	}
	return text
}

// waitingText names the rank that makes the others wait.
func waitingText(v *live.View) string {
	worst, waited := -1, 0.0
	for i := range v.Ranks {
		waited += v.Ranks[i].Waiting
		if c := v.Ranks[i].Caused; c > 0 && (worst < 0 || c > v.Ranks[worst].Caused) {
			worst = i
		}
	}
	switch {
	case v.Compared == 0:
		return "n/a: for no collective is it known when its members began"
	case worst < 0:
		return "nobody waits"
	}
	r := &v.Ranks[worst]
	return fmt.Sprintf("%s of the ranks' time, %s of it for %s on %s", percentOf(waited/float64(len(v.Ranks))),
		percentOf(r.Caused), r.Rank, r.Host)
}

// formatAge formats roughly how long ago an event was.
func formatAge(d time.Duration) string {
	switch {
	case d > 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	case d > 10*time.Second:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// formatRate formats bytes per second in decimal units, as usual for bandwidths.
func formatRate(v float64) string {
	names := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	i := 0
	for v >= 1000 && i < len(names)-1 {
		v /= 1000
		i++
	}
	return units.Number(v, i == 0) + " " + names[i]
}

// firstRows keeps at most the given number of a sheet's rows.
func firstRows(s sheet, most int, one, many string) sheet {
	if left := len(s.text) - most; most > 0 && left > 0 {
		s.text = s.text[:most]
		s.more = []string{fmt.Sprintf("… and %s", units.Count(left, one, many))}
	}
	return s
}

// liveRankSheet returns the table of ranks in world order; if there are too many ranks, of the most relevant ones.
func liveRankSheet(v *live.View, most int) sheet {
	rows := v.Ranks
	if most > 0 && len(rows) > most {
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, func(a, b live.Rank) int {
			return cmp.Compare(max(b.Caused, b.Waiting), max(a.Caused, a.Waiting))
		})
	}
	return firstRows(sheetOf("ranks", "Ranks", rows, liveRankColumns), most, "rank", "ranks")
}

// barWidth is the length of a full bar.
const barWidth = 20

// drawBar draws a part of 1 as a bar.
func drawBar(part float64) string {
	eighths := int(math.Round(min(max(part, 0), 1) * barWidth * 8))
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}

func fractionColumn[T any](field, head string, of func(*T) float64) column[T] {
	return column[T]{field, head, func(r *T) string {
		if v := of(r); v > 0 {
			return percentOf(v)
		}
		return "–"
	}, func(r *T) any { return of(r) }}
}

var liveOperationColumns = []column[live.Operation]{
	label("communicator", "communicator", func(o *live.Operation) string { return o.Communicator }),
	number("ranks", "ranks", func(o *live.Operation) uint64 { return uint64(o.Ranks) }),
	label("operation", "operation", func(o *live.Operation) string { return o.Operation }),
	{"operations_per_second", "per second", func(o *live.Operation) string { return units.Number(o.Rate, false) },
		func(o *live.Operation) any { return o.Rate }},
	shown("size", "size avg", units.Bytes, func(o *live.Operation) uint64 { return o.Size }),
	{"avg_ns", "time avg", func(o *live.Operation) string {
		if o.Timed == 0 {
			return "–"
		}
		return units.Time(o.Avg)
	}, func(o *live.Operation) any { return o.Avg }},
	number("timed", "", func(o *live.Operation) uint64 { return o.Timed }),
	label("timing_source", "timing source", func(o *live.Operation) string { return units.OrDash(o.TimingSource) }),
	shown("busbw", "busbw GB/s", bandwidthText, func(o *live.Operation) float64 { return o.BusBW }),
	fractionColumn("waiting", "waiting", func(o *live.Operation) float64 { return o.Waiting }),
}

var liveRankColumns = []column[live.Rank]{
	label("rank", "rank", func(r *live.Rank) string { return r.Rank }),
	label("host", "host", func(r *live.Rank) string { return r.Host }),
	{"pid", "pid", nil, func(r *live.Rank) any { return r.PID }},
	label("state", "state", func(r *live.Rank) string { return r.State }),
	{"operations_per_second", "per second", func(r *live.Rank) string { return units.Number(r.Rate, false) },
		func(r *live.Rank) any { return r.Rate }},
	fractionColumn("inside", "in operations", func(r *live.Rank) float64 { return r.Inside }),
	fractionColumn("waiting", "waiting", func(r *live.Rank) float64 { return r.Waiting }),
	number("lost", "lost", func(r *live.Rank) uint64 { return r.Lost }),
	fractionColumn("caused", "wait caused", func(r *live.Rank) float64 { return r.Caused }),
	{"", "<", func(r *live.Rank) string { return drawBar(r.Caused) }, nil},
}
