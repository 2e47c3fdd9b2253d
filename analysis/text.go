// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// WriteText writes the report for people: summary, operations, phases if there are any, waiting.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	r.Summary.write(b)
	for _, p := range r.Problems {
		fmt.Fprintf(b, "  problem        %s\n", p)
	}
	fmt.Fprintln(b)
	r.writeOperations(b)
	fmt.Fprintln(b)
	if len(r.Phases) > 0 {
		writePhases(b, r.Phases)
		fmt.Fprintln(b)
	}
	r.Waits.write(b)
	return b.Flush() // bufio keeps the first error
}

func (s *Summary) write(w io.Writer) {
	fmt.Fprintln(w, s.Archive)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	processes := count(s.Processes, "process", "processes") + " on " + count(s.Hosts, "host", "hosts")
	for _, state := range []struct {
		n    uint64
		text string
	}{{s.Missing, "without data"}, {s.Running, "still running"}, {s.Crashed, "ended before their data was complete"}} {
		if state.n > 0 {
			processes += fmt.Sprintf(", %d %s", state.n, state.text)
		}
	}
	line("processes", "%s", processes)
	line("ranks", "%d on %s", s.Ranks, count(s.GPUs, "GPU", "GPUs"))
	line("communicators", "%d", s.Communicators)
	line("operations", "%d in %d calls, %s", s.Operations, s.Calls, formatBytes(s.Bytes))
	if s.Alone > 0 {
		line("", "%d on communicators of one rank are not in the table", s.Alone)
	}
	if s.Unfinished > 0 {
		line("", "%s not ended by all members", count(int(s.Unfinished), "collective", "collectives"))
	}
	if s.LeftOut > 0 {
		line("", "%d calls left out: their members did not record the same operations", s.LeftOut)
	}
	line("duration", "%s, %d events in %d locations", formatTime(float64(s.Duration)), s.Events, s.Locations)
	line("timing", "%s", counters(s.Timing))
	line("losses", "%s", counters(s.Lost))
	line("oddities", "%s", counters(s.Oddities))
	if text := networkText(s.Network); text != "" {
		line("network", "%s", text)
	}
	if text := kernelsText(s.CUPTI, s.CUPTIStates); text != "" {
		line("kernels", "%s", text)
	}
	s.writePaused(line)
	if !s.Complete {
		line("complete", "no: parts of the communication are missing")
	}
}

// maxGaps is how many gaps the text names.
const maxGaps = 8

// writePaused tells what is missing because somebody wished so.
func (s *Summary) writePaused(line func(name, format string, args ...any)) {
	head := "not recorded"
	for _, g := range s.Gaps[:min(len(s.Gaps), maxGaps)] {
		what := fmt.Sprintf("operations %d", g.First)
		switch {
		case g.Last == nil:
			what += " and later"
		case *g.Last != g.First:
			what += fmt.Sprintf("-%d", *g.Last)
		default:
			what = fmt.Sprintf("operation %d", g.First)
		}
		if g.Replayed {
			what = "replayed " + what
		}
		line(head, "on request: %s of %s", what, orDash(g.Communicator))
		head = ""
	}
	if n := s.GapCount; n > maxGaps {
		line(head, "on request: %s more", count(int(n)-maxGaps, "stretch", "stretches"))
		head = ""
	}
	if text := counters(s.Paused); text != "none" {
		line(head, "on request: %s events of NCCL", text)
	}
}

// networkText tells what went over the network in one line, "" if nothing is known.
func networkText(n map[string]uint64) string {
	var parts []string
	add := func(known bool, format string, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	transfers := func(key, one, many string) string { return count(int(n[key]), one, many) }
	add(n["PUTS"] > 0, "%s sent, %s", transfers("PUTS", "transfer", "transfers"), formatBytes(n["PUT_BYTES"]))
	add(n["RECEIVED_BYTES"] > 0, "%s received", formatBytes(n["RECEIVED_BYTES"]))
	add(n["EMPTY_TRANSFERS"] > 0, "%s", transfers("EMPTY_TRANSFERS", "empty transfer", "empty transfers"))
	add(n["IB_EVENTS"] > 0, "%s of InfiniBand, %s sent", transfers("IB_EVENTS", "event", "events"), formatBytes(n["IB_SENT_BYTES"]))
	add(n["SOCKET_EVENTS"] > 0, "%s of sockets, %s", transfers("SOCKET_EVENTS", "event", "events"), formatBytes(n["SOCKET_BYTES"]))
	add(n["OTHER_NET_EVENTS"] > 0, "%s of other networks", transfers("OTHER_NET_EVENTS", "event", "events"))
	return strings.Join(parts, "; ")
}

// kernelsText tells what became of the kernels that CUPTI recorded in one line, and where it could not record them; "" if
// it was not to be used.
func kernelsText(n map[string]uint64, states []SelfValue) string {
	var without []string
	for _, s := range states {
		state, why, _ := strings.Cut(s.Value, ": ")
		if slices.Contains([]string{"on", "ended", "off"}, state) {
			continue
		}
		where := ""
		if s.Processes != "all" {
			where = " in process " + s.Processes
			if strings.ContainsAny(s.Processes, "-,") {
				where = " in processes " + s.Processes
			}
		}
		without = append(without, fmt.Sprintf("CUPTI is %s%s: %s", state, where, cmp.Or(why, "no reason is known")))
	}
	if n["RECORDS"] == 0 {
		return strings.Join(without, "; ")
	}
	parts := []string{
		fmt.Sprintf("%d recorded, %d of them linked with their launches", n["KERNELS"], n["KERNELS_LINKED"]),
		fmt.Sprintf("%d of NCCL's not linked", n["NCCL_KERNELS_UNLINKED"]),
	}
	add := func(n uint64, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	if replayed := n["KERNELS_GRAPH_LINKED"]; replayed > 0 {
		parts[0] += fmt.Sprintf(", %d with replayed operations", replayed)
	}
	add(n["KERNELS_UNDECIDED"], "%d still undecided")
	add(n["WITHOUT_TIMES"]+n["WITHOUT_CLOCK"]+n["WITHOUT_DEVICE"]+n["WITHOUT_ROW"]+n["UNDRAWN"], "%d records not drawn")
	return strings.Join(append(parts, without...), "; ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// counters writes counters in one line, ordered by name.
func counters(all map[string]uint64) string {
	names := make([]string, 0, len(all))
	for name, n := range all {
		if n > 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", all[name], strings.ToLower(strings.NewReplacer("::", " ", "_", " ").Replace(name)))
	}
	return strings.Join(names, ", ")
}

func (r *Report) writeOperations(w io.Writer) {
	t := newTable("<communicator", "ranks", "<operation", "<type", "size", "count", "calls/rank", "avg", "min", "p50", "p99", "max",
		"algbw GB/s", "busbw GB/s", "<algorithm", "<protocol", "channels", "<time of")
	grouped, device := false, false
	for i := range r.Operations {
		o := &r.Operations[i]
		name := o.Operation
		if o.Device {
			name = "*" + name
			device = true
		}
		if o.Grouped {
			name += "*"
			grouped = true
		}
		t.row(o.Communicator, fmt.Sprint(o.Ranks), name, strings.TrimPrefix(o.Datatype, "nccl"), formatBytes(o.Size), fmt.Sprint(o.Count),
			span(o.MinCallsPerRank, o.MaxCallsPerRank), formatTime(o.Time.Avg), formatTime(o.Time.Min), formatTime(o.Time.P50),
			formatTime(o.Time.P99), formatTime(o.Time.Max), bandwidth(o.AlgBW), bandwidth(o.BusBW),
			orDash(strings.Join(o.Algorithms, ",")), orDash(strings.Join(o.Protocols, ",")), span(uint64(o.MinChannels), uint64(o.MaxChannels)),
			orDash(o.TimingSource))
	}
	if len(t.rows) == 0 {
		fmt.Fprintln(w, "No operations.")
		return
	}
	_ = t.write(w) // a buffered writer keeps its error
	if device {
		fmt.Fprintln(w, "* before the name: a buffer is in GPU memory")
	}
	if grouped {
		fmt.Fprintln(w, "* launched together with others: the times are those of the whole launch")
	}
}

func span(low, high uint64) string {
	switch {
	case high == 0:
		return "–"
	case low == high:
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d–%d", low, high)
}

// bandwidth has three significant digits, as far as they are before the point or matter.
func bandwidth(v float64) string {
	if v == 0 {
		return "–"
	}
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func (ws *Waits) write(w io.Writer) {
	fmt.Fprintf(w, "Waiting at the start of collectives: %d looked at", ws.Collectives)
	if ws.LeftOut > 0 {
		fmt.Fprintf(w, ", %d left out (no GPU times of two members, or not ended by all)", ws.LeftOut)
	}
	fmt.Fprintln(w)
	if ws.Collectives == 0 {
		return
	}
	t := newTable("<rank", "<host", "collectives", "time", "waited", "share", "others waited for it", "of all waiting", "times last", "longest")
	for _, r := range ws.Ranks {
		t.row(r.Rank, r.Host, fmt.Sprint(r.Collectives), formatTime(float64(r.Time)), formatTime(float64(r.Waited)),
			formatPercent(float64(r.Waited), float64(r.Time)), formatTime(float64(r.Caused)),
			formatPercent(float64(r.Caused), float64(ws.Total)), fmt.Sprint(r.Last), formatTime(float64(r.MaxCaused)))
	}
	_ = t.write(w)
	if i := ws.Culprit(); i >= 0 {
		r := ws.Ranks[i]
		fmt.Fprintf(w, "%s on %s made the others wait %s in all, %s of all waiting.\n", r.Rank, r.Host, formatTime(float64(r.Caused)), formatPercent(float64(r.Caused), float64(ws.Total)))
	} else {
		fmt.Fprintln(w, "Nobody waited.")
	}
	if s := ws.StartUp; s.Waited > 0 {
		fmt.Fprintf(w, "Not counted there: %s in the first collective of each communicator, %s of it for %s (starting up).\n",
			formatTime(float64(s.Waited)), formatTime(float64(s.Caused)), s.Rank)
	}
	if ws.Hosts > 1 {
		fmt.Fprintf(w, "Times of %d hosts are compared as recorded; errors of their clocks are in these figures.\n", ws.Hosts)
	}
}
