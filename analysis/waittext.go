// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// waitColumns are those of all tables of waits; sums gives their part of a row.
func waitColumns[T any](sums func(*T) *WaitSums) []column[T] {
	of := func(f func(*WaitSums) uint64) func(*T) uint64 { return func(r *T) uint64 { return f(sums(r)) } }
	return []column[T]{
		number("parts", "operations", of(func(s *WaitSums) uint64 { return s.Parts })),
		duration("time_ns", "time", of(func(s *WaitSums) uint64 { return s.Time })),
		number("waits", "waits", of(func(s *WaitSums) uint64 { return s.Waits })),
		duration("waited_ns", "waited", of(func(s *WaitSums) uint64 { return s.Waited })),
		percent("share", func(r *T) (float64, float64) { return float64(sums(r).Waited), float64(sums(r).Time) }),
		{"uncertainty_ns", "±", func(r *T) string { return sums(r).uncertaintyText() }, func(r *T) any {
			if s := sums(r); s.Unstated < s.Waits || s.Waits == 0 {
				return s.Uncertainty
			}
			return nil
		}},
		number("unstated", "", of(func(s *WaitSums) uint64 { return s.Unstated })),
		number("below", "", of(func(s *WaitSums) uint64 { return s.Below })),
		duration("below_ns", "", of(func(s *WaitSums) uint64 { return s.BelowTime })),
	}
}

// uncertaintyText is by how much the waited time may be off.
func (s *WaitSums) uncertaintyText() string {
	switch {
	case s.Waits == 0:
		return "–"
	case s.Unstated == s.Waits:
		return notKnown
	case s.Unstated > 0:
		return "> " + formatTime(float64(s.Uncertainty))
	}
	return formatTime(float64(s.Uncertainty))
}

func waitRowColumns(head string, host bool, total uint64) []column[WaitRow] {
	columns := []column[WaitRow]{label("name", head, func(r *WaitRow) string { return r.Name })}
	if host {
		columns = append(columns, label("host", "host", func(r *WaitRow) string { return r.Host }))
	}
	columns = append(columns, waitColumns(func(r *WaitRow) *WaitSums { return &r.WaitSums })...)
	return append(columns,
		duration("caused_ns", "wait caused", func(r *WaitRow) uint64 { return r.Caused }),
		percent("of all waiting", func(r *WaitRow) (float64, float64) { return float64(r.Caused), float64(total) }),
		number("last", "late arrivals", func(r *WaitRow) uint64 { return r.Last }),
		duration("max_caused_ns", "longest", func(r *WaitRow) uint64 { return r.MaxCaused }),
		column[WaitRow]{"worst_at", "", nil, func(r *WaitRow) any { return uint64(r.WorstAt) }},
	)
}

func waitGroupColumns(head string, collectives bool) []column[WaitGroup] {
	columns := append([]column[WaitGroup]{label("name", head, func(g *WaitGroup) string { return g.Name })},
		waitColumns(func(g *WaitGroup) *WaitSums { return &g.WaitSums })...)
	if !collectives {
		return columns
	}
	known := func(g *WaitGroup, ns float64) string {
		if g.Collectives == 0 {
			return "–"
		}
		return formatTime(ns)
	}
	return append(columns,
		number("collectives", "collectives", func(g *WaitGroup) uint64 { return g.Collectives }),
		column[WaitGroup]{"skew_avg_ns", "skew avg", func(g *WaitGroup) string { return known(g, g.SkewAvg) }, func(g *WaitGroup) any { return g.SkewAvg }},
		column[WaitGroup]{"skew_max_ns", "skew max", func(g *WaitGroup) string { return known(g, float64(g.SkewMax)) }, func(g *WaitGroup) any { return g.SkewMax }},
		column[WaitGroup]{"transfer_avg_ns", "transfer avg", func(g *WaitGroup) string { return known(g, g.TransferAvg) }, func(g *WaitGroup) any { return g.TransferAvg }},
	)
}

var worstColumns = []column[WaitInstance]{
	label("communicator", "communicator", func(i *WaitInstance) string { return i.Communicator }),
	label("operation", "operation", func(i *WaitInstance) string { return i.Operation }),
	number("ordinal", "number", func(i *WaitInstance) uint64 { return i.Ordinal }),
	{"at", "at", nil, func(i *WaitInstance) any { return uint64(i.At) }},
	label("rank", "waited for", func(i *WaitInstance) string { return i.Rank }),
	label("host", "host", func(i *WaitInstance) string { return i.Host }),
	duration("caused_ns", "all waited", func(i *WaitInstance) uint64 { return i.Caused }),
	{"uncertainty_ns", "±", func(i *WaitInstance) string {
		if i.Uncertainty == nil {
			return notKnown
		}
		return formatTime(float64(*i.Uncertainty))
	}, func(i *WaitInstance) any { return i.Uncertainty }},
	duration("skew_ns", "skew", func(i *WaitInstance) uint64 { return i.Skew }),
	duration("transfer_ns", "transfer", func(i *WaitInstance) uint64 { return i.Transfer }),
}

var networkWaitColumns = []column[NetworkWait]{
	label("communicator", "communicator", func(n *NetworkWait) string { return n.Communicator }),
	number("comm", "", func(n *NetworkWait) uint64 { return uint64(n.Comm) }),
	{"comm_rank", "its rank", func(n *NetworkWait) string {
		if n.CommRank < 0 {
			return notKnown
		}
		return fmt.Sprint(n.CommRank)
	}, func(n *NetworkWait) any { return n.CommRank }},
	label("rank", "process", func(n *NetworkWait) string { return n.Rank }),
	label("host", "host", func(n *NetworkWait) string { return n.Host }),
	duration("send_gpu_wait_ns", "send: GPU wait", func(n *NetworkWait) uint64 { return n.SendGPU }),
	duration("send_peer_wait_ns", "peer wait", func(n *NetworkWait) uint64 { return n.SendPeer }),
	duration("send_network_ns", "network", func(n *NetworkWait) uint64 { return n.SendNetwork }),
	duration("recv_network_ns", "receive: network", func(n *NetworkWait) uint64 { return n.RecvNetwork }),
	duration("recv_flush_ns", "flush", func(n *NetworkWait) uint64 { return n.RecvFlush }),
	duration("recv_gpu_wait_ns", "GPU wait", func(n *NetworkWait) uint64 { return n.RecvGPU }),
	number("phases", "phases", func(n *NetworkWait) uint64 { return n.Phases }),
	number("unfinished", "unfinished", func(n *NetworkWait) uint64 { return n.Unfinished }),
	duration("awaited_by_ns", "senders waited for it", func(n *NetworkWait) uint64 { return n.AwaitedBy }),
}

var enqueueColumns = []column[EnqueueRow]{
	label("rank", "rank", func(r *EnqueueRow) string { return r.Rank }),
	label("host", "host", func(r *EnqueueRow) string { return r.Host }),
	number("parts", "collectives", func(r *EnqueueRow) uint64 { return r.Parts }),
	number("last", "late arrivals", func(r *EnqueueRow) uint64 { return r.Last }),
	duration("behind_ns", "behind the first", func(r *EnqueueRow) uint64 { return r.Behind }),
	duration("max_behind_ns", "most", func(r *EnqueueRow) uint64 { return r.MaxLate }),
}

// Document gives the waits as tables.
func (w *WaitStates) Document() *Document {
	d := &Document{Title: "Waiting"}
	compared := func(n uint64, one, many string) string {
		if n == 0 {
			return "no " + many
		}
		return count(int(n), one, many)
	}
	var times []string
	for _, name := range slices.Sorted(maps.Keys(w.Times)) {
		times = append(times, fmt.Sprintf("%d by %s times", w.Times[name], name))
	}
	basis := ""
	if len(times) > 0 {
		basis = " (" + strings.Join(times, ", ") + ")"
	}
	d.say("%s and %s compared%s", compared(w.Collectives, "collective", "collectives"), compared(w.Messages, "message", "messages"), basis)
	var left []string
	for _, n := range []struct {
		n    uint64
		text string
	}{
		{w.NotCompared.NoTimes, "collectives without comparable times of two members"},
		{w.NotCompared.Unfinished, "collectives not ended by all"},
		{w.NotCompared.Members, "members of others without comparable times"},
		{w.NotCompared.Messages, "messages without comparable times"},
		{w.NotCompared.Unmatched, "ends of messages without the other"},
		{w.NotCompared.NotAlike, "ends of messages that were recorded differently"},
	} {
		if n.n > 0 {
			left = append(left, fmt.Sprintf("%d %s", n.n, n.text))
		}
	}
	if len(left) > 0 {
		d.say("n/a: %s", strings.Join(left, ", "))
	}
	if w.Total.Parts > 0 {
		t := &w.Total
		line := fmt.Sprintf("waited %s of %s, %s", formatTime(float64(t.Waited)), formatTime(float64(t.Time)), formatPercent(float64(t.Waited), float64(t.Time)))
		switch {
		case t.Waits == 0:
		case t.Unstated == t.Waits:
			line += "; how exact that is the archive does not say"
		case t.Unstated > 0:
			line += fmt.Sprintf(", ± more than %s: %d of %s say how exact they are", formatTime(float64(t.Uncertainty)), t.Waits-t.Unstated, count(int(t.Waits), "wait", "waits"))
		default:
			line += fmt.Sprintf(", ± %s", formatTime(float64(t.Uncertainty)))
		}
		if t.Below > 0 {
			line += fmt.Sprintf("; %s of it in %s not longer than what they may be off by", formatTime(float64(t.BelowTime)), count(int(t.Below), "wait", "waits"))
		}
		d.say("%s", line)
	}
	total := w.Total.Waited
	d.sheets = []sheet{
		sheetOf("kinds", "By cause", w.Kinds, waitGroupColumns("cause", false)),
		sheetOf("ranks", "By rank", recorded(w.Ranks, func(r WaitRow) bool { return r.NoData }), waitRowColumns("rank", true, total)),
		sheetOf("gpus", "By GPU", w.GPUs, waitRowColumns("GPU", true, total)),
		sheetOf("hosts", "By host", w.HostRows, waitRowColumns("host", false, total)),
		sheetOf("communicators", "By communicator", w.Communicators, waitGroupColumns("communicator", true)),
		sheetOf("operations", "By operation", w.Operations, waitGroupColumns("operation", true)),
		sheetOf("phases", "By phase of the application", w.Phases, waitGroupColumns("phase", false)),
		sheetOf("worst", "Collectives that cost the most", w.Worst, worstColumns),
		sheetOf("network", "Transfers over the network: what the oldest one of each rank waited for", w.Network, networkWaitColumns),
		sheetOf("enqueue", "Enqueue arrival: who called last; this is not waiting", recorded(w.Enqueue.Ranks, func(r EnqueueRow) bool { return r.NoData }), enqueueColumns),
	}
	if w.Total.Parts == 0 {
		for i := range d.sheets[:8] {
			d.sheets[i].text = nil
		}
	}
	if e := &w.Enqueue; e.Collectives > 0 {
		d.sheets[9].more = []string{fmt.Sprintf("%s: from the first to the last call %s on average, at most %s.",
			count(int(e.Collectives), "collective", "collectives"), formatTime(e.SkewAvg), formatTime(float64(e.SkewMax)))}
	}
	if i := w.Culprit(); i >= 0 {
		r := &w.Ranks[i]
		d.note("%s on %s made the others wait %s in all, %s of all waiting.", r.Name, r.Host, formatTime(float64(r.Caused)), formatPercent(float64(r.Caused), float64(total)))
	} else if w.Total.Parts > 0 {
		d.note("Nobody waited.")
	}
	if s := w.StartUp; s.Waited > 0 {
		d.note("Not counted there: %s in the first collective of each communicator, %s of it for %s (starting up).",
			formatTime(float64(s.Waited)), formatTime(float64(s.Caused)), s.Rank)
	}
	if w.Hosts > 1 && w.Total.Parts > 0 {
		d.note("Times of %d hosts are compared as recorded; errors of their clocks are in these figures, and not in what is said of their exactness.", w.Hosts)
	}
	if w.NetworkUnknown > 0 {
		d.note("Of %s it is not known whose transfers they show.", count(int(w.NetworkUnknown), "network row", "network rows"))
	}
	return d
}

// Culprit is the index of the rank that the others waited for most, −1 if nobody waited.
func (w *WaitStates) Culprit() int {
	best := -1
	for i := range w.Ranks {
		if c := w.Ranks[i].Caused; c > 0 && (best < 0 || c > w.Ranks[best].Caused) {
			best = i
		}
	}
	return best
}
