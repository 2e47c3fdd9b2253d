// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/efficiency"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overtime"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Limits of the lines in the report, which --waits shows in full.
const (
	shownPairs = 3
	shownWorst = 5
	leastPart  = 0.01 // part of all waiting from which on a line mentions it
)

// writeWhere writes a few lines about when and where ranks waited.
func writeWhere(r *operations.Report, w io.Writer, style Style) {
	s := r.WaitStates
	printable.Fprintf(w, "Where the waiting went: %s\n", whereTotal(s))
	if s.Total.Parts == 0 {
		for _, line := range startUpRemark(s) {
			printable.Fprintf(w, "  %s\n", line)
		}
		printable.Fprintln(w)
		return
	}
	clock := Clock{Begin: uint64(r.Summary.Begin), Absolute: style.Absolute}
	lines := whereLines(s, clock)
	if line := timeLine(s.OverTime, style.Width-28); line != "" {
		lines = slices.Insert(lines, 0, Line{Name: "over time", Text: line})
	}
	for _, l := range lines {
		printable.Fprintf(w, "  %-11s %s\n", l.Name, l.Text)
	}
	printable.Fprintln(w)
}

// whereTotal states which part of the time in operations was waiting.
func whereTotal(s *waits.States) string {
	if s.Total.Parts == 0 {
		return "not known, no operation has comparable times on two ranks"
	}
	return fmt.Sprintf("%s of %s in operations, %s", units.Time(float64(s.Total.Waited)),
		units.Time(float64(s.Total.Time)), units.Percent(float64(s.Total.Waited), float64(s.Total.Time)))
}

// writeWaiting writes which ranks waited, which ranks caused it, and which operations cost the most.
func writeWaiting(r *operations.Report, w io.Writer, style Style) {
	s := r.WaitStates
	if s.Total.Parts == 0 {
		return
	}
	printable.Fprintln(w, "Who waited, and for whom")
	ranks := whereRanks(s)
	ranks.more = startUpRemark(s)
	ranks.write(w, style)
	if len(s.Worst) == 0 {
		return
	}
	printable.Fprintf(w, "\nWhat cost the most\n")
	clock := Clock{Begin: uint64(r.Summary.Begin), Absolute: style.Absolute}
	few := slices.DeleteFunc(worstColumns(clock, s.Worst), func(c column[waits.Instance]) bool {
		return slices.Contains([]string{"host", "skew_ns", "transfer_ns"}, c.field)
	})
	worst := sheetOf("worst", "", s.Worst[:min(shownWorst, len(s.Worst))], few)
	worst.optional = []string{"±"}
	worst.write(w, style)
}

// lineEfficiency is the name of the lines about efficiencies.
const lineEfficiency = "efficiency"

// whereLines states when ranks waited most, in which operations, and how efficiently they used the time.
func whereLines(s *waits.States, clock Clock) (all []Line) {
	if worst := overtime.Worst(s.OverTime); worst != nil {
		all = append(all, Line{Name: LineMost, Text: worstWindow(worst, clock)})
	}
	pairs := slices.Clone(s.Pairs)
	slices.SortStableFunc(pairs, func(a, b waits.Pair) int {
		return int(min(max(int64(b.Waited)-int64(a.Waited), -1), 1))
	})
	var in []string
	for _, p := range pairs[:min(shownPairs, len(pairs))] {
		if p.Waited > 0 && float64(p.Waited) >= leastPart*float64(s.Total.Waited) {
			in = append(in, fmt.Sprintf("%s of %s %s (%s)", p.Name, units.OrDash(p.Communicator),
				units.Time(float64(p.Waited)), units.Percent(float64(p.Waited), float64(s.Total.Waited))))
		}
	}
	if len(in) > 0 {
		all = append(all, Line{Name: LineIn, Text: strings.Join(in, ", ")})
	}
	if line := startUpShare(s); line != "" {
		all = append(all, Line{Name: LineStartUp, Text: line})
	}
	if line := slowRemark(s); line != "" {
		all = append(all, Line{Name: lineSlow, Text: line})
	}
	for _, line := range efficiencyLines(s.Efficiency) {
		all = append(all, Line{Name: lineEfficiency, Text: line})
	}
	for i := range all {
		if i > 0 && all[i].Name == all[i-1].Name {
			all[i].Name = ""
		}
	}
	return all
}

// verdictBasis is the time that the verdict explains: the waiting that the first operations of communicators did not
// cause, and the time that slow links and GPUs cost within operations.
type verdictBasis struct{ waited, later, slow, all float64 }

func newVerdictBasis(s *waits.States) (j verdictBasis, ok bool) {
	v := s.Verdict
	if v == nil || len(v.Culprits) > 0 && v.Culprits[0].Stops() {
		return j, false
	}
	j = verdictBasis{slow: s.Slow.Cost, all: float64(v.Waited)}
	j.waited = max(0, j.all-j.slow)
	j.later = max(0, float64(s.Total.Waited)-j.waited)
	return j, true
}

// startUpShare states how much of the waiting start-up caused, which the verdict excludes; "" if that is little.
func startUpShare(s *waits.States) string {
	j, ok := newVerdictBasis(s)
	if !ok || j.later == 0 || j.later < leastPart*float64(s.Total.Waited) {
		return ""
	}
	text := fmt.Sprintf("%s of it was caused by the first operations of communicators", units.Time(j.later))
	if slowRemark(s) != "" { // slowRemark states the basis of the verdict
		return text
	}
	return text + "; the answer above covers the other " + units.Time(j.all)
}

// slowRemark states that the verdict also includes the time that slow links and GPUs cost; "" if that is little.
func slowRemark(s *waits.States) string {
	j, ok := newVerdictBasis(s)
	if !ok || j.slow == 0 || j.slow < leastPart*j.all {
		return ""
	}
	return fmt.Sprintf(
		"the answer above covers %s: %s of waiting for others, and %s for which slow links and GPUs held ranks up in "+
			"operations", units.Time(j.all), units.Time(j.waited), units.Time(j.slow))
}

func worstWindow(w *overtime.Window, clock Clock) string {
	text := fmt.Sprintf("%s to %s: ranks waited %s of the time", clock.formatTime(uint64(w.Begin)),
		clock.formatTime(uint64(w.End)), units.Percent(w.Share, 1))
	if w.Rank >= 0 && w.GoesBack >= leastPart*float64(w.Waited) {
		text += fmt.Sprintf(", %s of it caused by %s",
			units.Percent(min(w.GoesBack, float64(w.Waited)), float64(w.Waited)), w.Name)
	}
	return text
}

// efficiencyLines returns the efficiencies as products of their factors.
func efficiencyLines(e *efficiency.Result) (all []string) {
	if e == nil {
		return nil
	}
	share := func(v float64) string { return units.Percent(v, 1) }
	if f := e.Ranks; f != nil {
		rest := "communication " + share(f.Communication)
		if f.Transfer != nil {
			rest = "serialization " + share(*f.Serialization) + " × transfer " + share(*f.Transfer)
		}
		all = append(all, fmt.Sprintf("parallel %s = load balance %s × %s", share(f.Parallel), share(f.LoadBalance),
			rest))
	}
	if g := e.GPUs; g != nil {
		all = append(all, fmt.Sprintf("GPUs: parallel %s = load balance %s × communication %s × orchestration %s",
			share(g.Parallel), share(g.LoadBalance), share(g.Communication), share(g.Orchestration)))
	}
	if e.NotKnown != "" {
		all = append(all, "not known: "+e.NotKnown)
	}
	return all
}

var marks = []rune("▁▂▃▄▅▆▇█")

// timeLine draws the waiting over time with one mark for each window, or for several if width is too small (0: not
// limited); "" if nobody waited.
func timeLine(windows []overtime.Window, width int) string {
	shares, each := make([]float64, len(windows)), 1
	for i := range windows {
		shares[i] = windows[i].Share
	}
	for width > 0 && len(shares) > max(width, 8) {
		for i := 0; 2*i < len(shares); i++ {
			shares[i] = max(shares[2*i], shares[min(2*i+1, len(shares)-1)])
		}
		shares, each = shares[:(len(shares)+1)/2], 2*each
	}
	if len(shares) < 2 || slices.Max(shares) == 0 {
		return ""
	}
	most := slices.Max(shares)
	var b strings.Builder
	for _, s := range shares {
		if s == 0 {
			b.WriteRune('·')
		} else {
			b.WriteRune(marks[min(int(s/most*float64(len(marks))), len(marks)-1)])
		}
	}
	middle := windows[len(windows)/2] // the first and the last window may be shorter
	return fmt.Sprintf("%s  %s each", &b, units.Time(float64(each)*float64(middle.End-middle.Begin)))
}

// whereRanks returns the waiting by rank, and the waiting that each caused.
func whereRanks(s *waits.States) sheet {
	rows := withData(s.Ranks, func(r waits.Row) bool { return r.NoData })
	all := float64(s.Total.Waited)
	if s.Verdict != nil {
		all = float64(s.Verdict.Waited)
	}
	table := sheetOf("ranks", "", rows, []column[waits.Row]{
		label("", "rank", func(r *waits.Row) string { return r.Name }),
		label("", "host", func(r *waits.Row) string { return r.Host }),
		number("", "operations", func(r *waits.Row) uint64 { return r.Parts }),
		duration("", "time", func(r *waits.Row) uint64 { return r.Time }),
		duration("", "waited", func(r *waits.Row) uint64 { return r.Waited }),
		percent("share", func(r *waits.Row) (float64, float64) { return float64(r.Waited), float64(r.Time) }),
		meanTime("", "caused by it", causedTime),
		percent("of all waiting", func(r *waits.Row) (float64, float64) { return causedTime(r), all }),
		number("", "came last", func(r *waits.Row) uint64 { return r.Last }),
	})
	table.sortBy("the waiting that ranks caused", func(i int) float64 { return causedTime(&rows[i]) })
	table.optional = []string{"operations", "came last", "time", "share"}
	return table
}

func causedTime(r *waits.Row) float64 {
	if r.GoesBack == nil {
		return 0
	}
	return *r.GoesBack
}

// startUpRemark states what is not counted, and how well clocks compare.
func startUpRemark(s *waits.States) (lines []string) {
	if left := s.NotCompared.NoTimes + s.NotCompared.Unfinished; left > 0 {
		lines = append(lines, fmt.Sprintf("Left out: %s, without comparable times on two ranks, or not ended by all.",
			units.Count(int(left), "collective", "collectives")))
	}
	if text := firstCollectives(&s.StartUp); text != "" {
		lines = append(lines, text)
	}
	if s.Hosts > 1 && s.Total.Parts > 0 {
		lines = append(lines, clocksRemark(s.Hosts, s.Clocks, false))
	}
	return lines
}

// firstCollectives states the waiting in first collectives, which no table includes; "" if there was none.
func firstCollectives(u *waits.StartUp) string {
	if u.Waited == 0 {
		return ""
	}
	return fmt.Sprintf("Not counted: %s waited in the first collective of each communicator "+
		"(start-up), %s of it for %s.", units.Time(float64(u.Waited)), units.Time(float64(u.Caused)), u.Rank)
}

// whereSheets returns the tables of --waits about windows of time, operations and efficiency.
func whereSheets(s *waits.States, clock Clock) []sheet {
	pairs := sheetOf("communicator_operations", "By communicator and operation", s.Pairs, append([]column[waits.Pair]{
		label("communicator", "communicator", func(p *waits.Pair) string { return p.Communicator }),
		number("comm", "", func(p *waits.Pair) uint64 { return uint64(p.Comm) }),
		label("name", "operation", func(p *waits.Pair) string { return p.Name }),
	}, waitColumns(func(p *waits.Pair) *waits.Sums { return &p.Sums })...))
	pairs.sortBy("the waiting", func(i int) float64 { return float64(s.Pairs[i].Waited) })
	pairs.optional = waitOptional
	over := sheetOf("over_time", "Over time", s.OverTime, []column[overtime.Window]{
		shown("begin", "from", clock.formatTime, func(w *overtime.Window) uint64 { return uint64(w.Begin) }),
		shown("end", "to", clock.formatTime, func(w *overtime.Window) uint64 { return uint64(w.End) }),
		number("waits", "waits", func(w *overtime.Window) uint64 { return w.Waits }),
		duration("waited_ns", "waited", func(w *overtime.Window) uint64 { return w.Waited }),
		{"share", "of the ranks' time", func(w *overtime.Window) string { return units.Percent(w.Share, 1) },
			func(w *overtime.Window) any { return w.Share }},
		shown("rank", "<caused by", units.OrDash, func(w *overtime.Window) string { return w.Name }),
		{"goes_back_ns", "of that", func(w *overtime.Window) string {
			return units.Percent(min(w.GoesBack, float64(w.Waited)), float64(w.Waited))
		}, func(w *overtime.Window) any { return w.GoesBack }},
	})
	over.sortBy("the waiting", func(i int) float64 { return float64(s.OverTime[i].Waited) })
	over.order.fixed = true
	if s.Total.Parts == 0 {
		pairs.text, over.text = nil, nil
	}
	return []sheet{pairs, over}
}

// efficiencySheets returns the efficiencies of the run, and the times of ranks from which they are computed.
func efficiencySheets(e *efficiency.Result) []sheet {
	if e == nil {
		return nil
	}
	type row struct {
		of, name string
		value    *float64
	}
	var rows []row
	if f := e.Ranks; f != nil {
		rows = append(rows, row{"ranks", "parallel efficiency", &f.Parallel},
			row{"ranks", "load balance", &f.LoadBalance}, row{"ranks", "communication efficiency", &f.Communication},
			row{"ranks", "serialization efficiency", f.Serialization}, row{"ranks", "transfer efficiency", f.Transfer})
	}
	if g := e.GPUs; g != nil {
		rows = append(rows, row{"GPUs", "parallel efficiency", &g.Parallel},
			row{"GPUs", "load balance", &g.LoadBalance}, row{"GPUs", "communication efficiency", &g.Communication},
			row{"GPUs", "orchestration efficiency", &g.Orchestration})
	}
	factors := sheetOf("efficiencies", "Efficiencies, after POP and TALP", rows, []column[row]{
		label("of", "of", func(r *row) string { return r.of }),
		label("name", "efficiency", func(r *row) string { return r.name }),
		optional("value", "value", units.Unknown, func(part float64) string { return units.Percent(part, 1) },
			func(r *row) *float64 { return r.value }),
	})
	if e.NotKnown != "" {
		factors.more = []string{"not known: " + e.NotKnown}
	}
	type rank = efficiency.Row
	optional := func(field, head string, of func(*rank) *uint64) column[rank] {
		return column[rank]{field, head, func(r *rank) string {
			if of(r) == nil {
				return units.Unknown
			}
			return units.Time(float64(*of(r)))
		}, func(r *rank) any { return of(r) }}
	}
	times := sheetOf("efficiency_ranks", "What the efficiencies are made of", e.ByRank, []column[rank]{
		label("rank", "rank", func(r *rank) string { return r.Rank }),
		label("host", "host", func(r *rank) string { return r.Host }),
		duration("observed_ns", "observed", func(r *rank) uint64 { return r.Observed }),
		duration("start_up_ns", "", func(r *rank) uint64 { return r.StartUp }),
		duration("useful_ns", "useful", func(r *rank) uint64 { return r.Useful }),
		percent("share", func(r *rank) (float64, float64) { return float64(r.Useful), float64(r.Observed) }),
		duration("operations_ns", "in operations", func(r *rank) uint64 { return r.Operations }),
		optional("ideal_ns", "ideal", func(r *rank) *uint64 { return r.Ideal }),
		optional("computing_ns", "computing", func(r *rank) *uint64 { return r.Computing }),
		optional("active_ns", "active", func(r *rank) *uint64 { return r.Active }),
	})
	times.sortBy("the time in operations", func(i int) float64 { return float64(e.ByRank[i].Operations) })
	times.optional = []string{"host", "active", "computing", "in operations"}
	return []sheet{factors, times}
}
