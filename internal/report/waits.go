// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// waitColumns returns the columns that all tables of waits share; sums returns their part of a row.
func waitColumns[T any](sums func(*T) *waits.Sums) []column[T] {
	of := func(f func(*waits.Sums) uint64) func(*T) uint64 { return func(r *T) uint64 { return f(sums(r)) } }
	return []column[T]{
		number("parts", "operations", of(func(s *waits.Sums) uint64 { return s.Parts })),
		duration("time_ns", "time", of(func(s *waits.Sums) uint64 { return s.Time })),
		number("waits", "waits", of(func(s *waits.Sums) uint64 { return s.Waits })),
		duration("waited_ns", "waited", of(func(s *waits.Sums) uint64 { return s.Waited })),
		percent("share", func(r *T) (float64, float64) { return float64(sums(r).Waited), float64(sums(r).Time) }),
		{"uncertainty_ns", "±", func(r *T) string { return uncertaintyText(sums(r)) }, func(r *T) any {
			if s := sums(r); s.Unstated < s.Waits || s.Waits == 0 {
				return s.Uncertainty
			}
			return nil
		}},
		number("unstated", "", of(func(s *waits.Sums) uint64 { return s.Unstated })),
		number("below", "", of(func(s *waits.Sums) uint64 { return s.Below })),
		duration("below_ns", "", of(func(s *waits.Sums) uint64 { return s.BelowTime })),
	}
}

// uncertaintyText formats the uncertainty of the waiting time.
func uncertaintyText(s *waits.Sums) string {
	switch {
	case s.Waits == 0:
		return "–"
	case s.Unstated == s.Waits:
		return units.Unknown
	case s.Unstated > 0:
		return "> " + units.Time(float64(s.Uncertainty))
	}
	return units.Time(float64(s.Uncertainty))
}

func waitRowColumns(head string, host bool, total uint64) []column[waits.Row] {
	columns := []column[waits.Row]{label("name", head, func(r *waits.Row) string { return r.Name })}
	if host {
		columns = append(columns, label("host", "host", func(r *waits.Row) string { return r.Host }))
	}
	columns = append(columns, waitColumns(func(r *waits.Row) *waits.Sums { return &r.Sums })...)
	return append(columns, duration("caused_ns", "wait caused", func(r *waits.Row) uint64 { return r.Caused }),
		percent("of waited", func(r *waits.Row) (float64, float64) { return float64(r.Caused), float64(total) }),
		number("last", "late arrivals", func(r *waits.Row) uint64 { return r.Last }),
		duration("max_caused_ns", "longest", func(r *waits.Row) uint64 { return r.MaxCaused }),
		column[waits.Row]{"goes_back_ns", "", nil, func(r *waits.Row) any { return valueOrNil(r.GoesBack) }},
		column[waits.Row]{"worst_at", "", nil, func(r *waits.Row) any { return uint64(r.WorstAt) }},
	)
}

func waitGroupColumns(head string, collectives bool) []column[waits.Group] {
	columns := append([]column[waits.Group]{label("name", head, func(g *waits.Group) string { return g.Name })},
		waitColumns(func(g *waits.Group) *waits.Sums { return &g.Sums })...)
	if !collectives {
		return columns
	}
	known := func(c column[waits.Group]) column[waits.Group] {
		text := c.text
		c.text = func(g *waits.Group) string {
			if g.Collectives == 0 {
				return "–"
			}
			return text(g)
		}
		return c
	}
	return append(columns, number("collectives", "collectives", func(g *waits.Group) uint64 { return g.Collectives }),
		known(meanTime("skew_avg_ns", "skew avg", func(g *waits.Group) float64 { return g.SkewAvg })),
		known(duration("skew_max_ns", "skew max", func(g *waits.Group) uint64 { return g.SkewMax })),
		known(meanTime("transfer_avg_ns", "transfer avg", func(g *waits.Group) float64 { return g.TransferAvg })),
	)
}

// paradigmColumns are the columns of waits by paradigm.
var paradigmColumns = append([]column[waits.Paradigm]{label(
	"name", "paradigm", func(p *waits.Paradigm) string { return p.Name })},
	append(waitColumns(func(p *waits.Paradigm) *waits.Sums { return &p.Sums }),
		meanTime("through_others_ns", "after waits in others",
			func(p *waits.Paradigm) float64 { return p.Through }))...)

// worstColumns returns the columns of the most expensive operations; clock formats points in time.
func worstColumns(clock Clock, all []waits.Instance) []column[waits.Instance] {
	phase := label("phase", "phase", func(i *waits.Instance) string { return i.Phase })
	if !slices.ContainsFunc(all, func(i waits.Instance) bool { return i.Phase != "" }) {
		phase.head = ""
	}
	return []column[waits.Instance]{
		label("communicator", "communicator", func(i *waits.Instance) string { return i.Communicator }),
		label("operation", "operation", func(i *waits.Instance) string { return i.Operation }),
		number("ordinal", "number", func(i *waits.Instance) uint64 { return i.Ordinal }),
		shown("at", "at", clock.formatTime, func(i *waits.Instance) uint64 { return uint64(i.At) }),
		phase,
		label("rank", "waited for", func(i *waits.Instance) string { return i.Rank }),
		label("host", "host", func(i *waits.Instance) string { return i.Host }),
		duration("caused_ns", "all waited", func(i *waits.Instance) uint64 { return i.Caused }),
		optional("uncertainty_ns", "±", units.Unknown, durationText,
			func(i *waits.Instance) *uint64 { return i.Uncertainty }),
		duration("skew_ns", "skew", func(i *waits.Instance) uint64 { return i.Skew }),
		duration("transfer_ns", "transfer", func(i *waits.Instance) uint64 { return i.Transfer }),
	}
}

var networkWaitColumns = []column[waits.NetworkRow]{
	label("communicator", "communicator", func(n *waits.NetworkRow) string { return n.Communicator }),
	number("comm", "", func(n *waits.NetworkRow) uint64 { return uint64(n.Comm) }),
	shown("comm_rank", "its rank", numberOrUnknown, func(n *waits.NetworkRow) int { return n.CommRank }),
	label("rank", "process", func(n *waits.NetworkRow) string { return n.Rank }),
	label("host", "host", func(n *waits.NetworkRow) string { return n.Host }),
	duration("send_gpu_wait_ns", "send: GPU wait", func(n *waits.NetworkRow) uint64 { return n.SendGPU }),
	duration("send_peer_wait_ns", "peer wait", func(n *waits.NetworkRow) uint64 { return n.SendPeer }),
	duration("send_network_ns", "network", func(n *waits.NetworkRow) uint64 { return n.SendNetwork }),
	duration("recv_network_ns", "receive: network", func(n *waits.NetworkRow) uint64 { return n.RecvNetwork }),
	duration("recv_flush_ns", "flush", func(n *waits.NetworkRow) uint64 { return n.RecvFlush }),
	duration("recv_gpu_wait_ns", "GPU wait", func(n *waits.NetworkRow) uint64 { return n.RecvGPU }),
	number("phases", "phases", func(n *waits.NetworkRow) uint64 { return n.Phases }),
	number("unfinished", "unfinished", func(n *waits.NetworkRow) uint64 { return n.Unfinished }),
	duration("awaited_by_ns", "senders waited for it", func(n *waits.NetworkRow) uint64 { return n.AwaitedBy }),
}

var enqueueColumns = []column[waits.EnqueueRow]{
	label("rank", "rank", func(r *waits.EnqueueRow) string { return r.Rank }),
	label("host", "host", func(r *waits.EnqueueRow) string { return r.Host }),
	number("parts", "operations", func(r *waits.EnqueueRow) uint64 { return r.Parts }),
	number("last", "late arrivals", func(r *waits.EnqueueRow) uint64 { return r.Last }),
	duration("behind_ns", "behind the first", func(r *waits.EnqueueRow) uint64 { return r.Behind }),
	duration("max_behind_ns", "most", func(r *waits.EnqueueRow) uint64 { return r.MaxLate }),
}

// waitOptional holds the columns of tables of waits that narrow terminals omit.
var waitOptional = []string{"operations", "collectives", "longest", "transfer avg", "skew avg", "±", "late arrivals",
	"time", "share"}

// worstOptional holds those of the most expensive operations.
var worstOptional = []string{"host", "±", "transfer", "skew"}

// Waits returns the waits as tables. clock formats points in time; remarks are added above the tables.
func Waits(w *waits.States, clock Clock, remarks ...string) *Document {
	d := &Document{title: "Waiting"}
	d.addIntro("%s", comparedLine(w))
	if left := notComparedText(&w.NotCompared); len(left) > 0 {
		d.addIntro("n/a: %s", strings.Join(left, ", "))
	}
	for _, line := range remarks {
		d.addIntro("%s", line)
	}
	if w.Total.Parts > 0 {
		d.addIntro("%s", waitedLine(&w.Total))
	}
	d.sheets = waitSheets(w, clock)
	waitNotes(d, w)
	return d
}

// comparedLine states how many operations were compared, by timing source.
func comparedLine(w *waits.States) string {
	compared := func(n uint64, one, many string) string {
		if n == 0 {
			return "no " + many
		}
		return units.Count(int(n), one, many)
	}
	var times []string
	for _, name := range slices.Sorted(maps.Keys(w.Times)) {
		times = append(times, fmt.Sprintf("%d by %s", w.Times[name], cmp.Or(timingWords[name], name+" times")))
	}
	basis := ""
	if len(times) > 0 {
		basis = " (" + strings.Join(times, ", ") + ")"
	}
	return fmt.Sprintf("%s and %s compared%s", compared(w.Collectives, "collective", "collectives"),
		compared(w.Messages, "message", "messages"), basis)
}

// notComparedText states what was not compared, and why.
func notComparedText(not *waits.NotCompared) (left []string) {
	for _, n := range []struct {
		n         uint64
		one, many string
		text      string
	}{
		{not.NoTimes, "collective", "collectives", "without comparable times of two members"},
		{not.Unfinished, "collective", "collectives", "not ended by all"},
		{not.Members, "member", "members", "of others without comparable times"},
		{not.Messages, "message", "messages", "without comparable times"},
		{not.Unmatched, "end of a message", "ends of messages", "without the other"},
		{not.Inconsistent, "end of a message", "ends of messages", "recorded unlike the other"},
	} {
		if n.n > 0 {
			left = append(left, units.Count(int(n.n), n.one, n.many)+" "+n.text)
		}
	}
	return left
}

// waitedLine states the total waiting time and its uncertainty.
func waitedLine(t *waits.Sums) string {
	line := fmt.Sprintf("waited %s of %s, %s", units.Time(float64(t.Waited)), units.Time(float64(t.Time)),
		units.Percent(float64(t.Waited), float64(t.Time)))
	switch {
	case t.Waits == 0:
	case t.Unstated == t.Waits:
		line += "; the archive does not state the uncertainty of that"
	case t.Unstated > 0:
		line += fmt.Sprintf(", ± more than %s: the uncertainty of %d of %s is stated",
			units.Time(float64(t.Uncertainty)), t.Waits-t.Unstated, units.Count(int(t.Waits), "wait", "waits"))
	default:
		line += fmt.Sprintf(", ± %s", units.Time(float64(t.Uncertainty)))
	}
	if t.Below > 0 {
		line += fmt.Sprintf("; %s of it in %s no longer than the uncertainty", units.Time(float64(t.BelowTime)),
			units.Count(int(t.Below), "wait", "waits"))
	}
	return line
}

// waitSheets returns the tables of waits.
func waitSheets(w *waits.States, clock Clock) []sheet {
	total, ranks := w.Total.Waited, withData(w.Ranks, func(r waits.Row) bool { return r.NoData })
	sheets := []sheet{
		sheetOf("kinds", "By cause", w.Kinds, waitGroupColumns("cause", false)),
		sheetOf("ranks", "By rank", ranks, waitRowColumns("rank", true, total)),
		sheetOf("gpus", "By GPU", w.GPUs, waitRowColumns("GPU", true, total)),
		sheetOf("hosts", "By host", w.HostRows, waitRowColumns("host", false, total)),
		sheetOf("communicators", "By communicator", w.Communicators, waitGroupColumns("communicator", true)),
		sheetOf("operations", "By operation", w.Operations, waitGroupColumns("operation", true)),
		sheetOf("phases", "By phase of the application", w.Phases, waitGroupColumns("phase", false)),
		sheetOf("worst", "Operations that cost the most", w.Worst, worstColumns(clock, w.Worst)),
		sheetOf("slow", "Slow links and GPUs: what made operations take long after all members had arrived",
			w.Slow.Rows, slowColumns),
		sheetOf("network", "Transfers over the network: what the oldest one of each rank waited for", w.Network,
			networkWaitColumns),
		sheetOf("enqueue", "Enqueue arrival: who called last; this is not waiting",
			withData(w.Enqueue.Ranks, func(r waits.EnqueueRow) bool { return r.NoData }), enqueueColumns),
	}
	for i, rows := range map[int][]waits.Row{1: ranks, 2: w.GPUs, 3: w.HostRows} {
		sheets[i].sortBy("the waiting caused", func(k int) float64 { return float64(rows[k].Caused) })
		sheets[i].optional = waitOptional
	}
	for i, rows := range map[int][]waits.Group{4: w.Communicators, 5: w.Operations, 6: w.Phases} {
		sheets[i].sortBy("the waiting", func(k int) float64 { return float64(rows[k].Waited) })
		sheets[i].optional = waitOptional
	}
	sheets[0].optional = waitOptional
	sheets[7].sortBy("the waiting", func(k int) float64 { return float64(w.Worst[k].Caused) })
	sheets[7].optional = worstOptional
	sheets[9].sortBy("the waiting for peers", func(k int) float64 { return float64(w.Network[k].AwaitedBy) })
	sheets[9].optional = []string{"host", "phases", "unfinished", "flush", "process"}
	if w.Total.Parts == 0 {
		for i := range sheets[:8] {
			sheets[i].text = nil
		}
	}
	if len(w.Paradigms) > 0 {
		paradigms := sheetOf("paradigms", "By paradigm", w.Paradigms, paradigmColumns)
		paradigms.optional = waitOptional
		sheets = slices.Insert(sheets, 1, paradigms)
	}
	if e := &w.Enqueue; e.Collectives+e.Messages > 0 {
		sheets[len(sheets)-1].more = []string{fmt.Sprintf(
			"%s: from the first to the last call %s on average, at most %s.",
			units.Count(int(e.Collectives+e.Messages), "operation", "operations"), units.Time(e.SkewAvg),
			units.Time(float64(e.SkewMax)))}
	}
	at := slices.IndexFunc(sheets, func(s sheet) bool { return s.name == "phases" })
	return slices.Concat(efficiencySheets(w.Efficiency), sheets[:at], whereSheets(w, clock), sheets[at:])
}

// waitNotes adds the notes below the tables.
func waitNotes(d *Document, w *waits.States) {
	if w.Verdict != nil {
		d.addNote("%s", w.Verdict.Text)
	}
	for _, text := range []string{startUpShare(w), slowRemark(w)} {
		if text != "" {
			d.addNote("Waiting: %s.", text)
		}
	}
	if text := firstCollectives(&w.StartUp); text != "" {
		d.addNote("%s", text)
	}
	if w.Hosts > 1 && w.Total.Parts > 0 {
		d.addNote("%s", clocksRemark(w.Hosts, w.Clocks, true))
	}
	if w.NetworkUnknown > 0 {
		d.addNote("For %s, it is not known whose transfers they show.",
			units.Count(int(w.NetworkUnknown), "network row", "network rows"))
	}
}
