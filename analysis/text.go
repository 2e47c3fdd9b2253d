// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

// WriteText writes the report for people: summary, operations, phases if there are any, waiting.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	r.Summary.write(b)
	for _, p := range r.Problems {
		printable.Fprintf(b, "  problem        %s\n", p)
	}
	printable.Fprintln(b)
	r.writeOperations(b)
	printable.Fprintln(b)
	if len(r.Phases) > 0 {
		writePhases(b, r.Phases)
		printable.Fprintln(b)
	}
	r.Waits.write(b)
	if len(r.Communicators) > 1 {
		s := sheetOf("", "", r.Communicators, communicatorColumns)
		s.limit(func(i int) uint64 { return uint64(r.Communicators[i].Ranks) })
		printable.Fprintf(b, "\nCommunicators: what they may be for, by their names or members\n")
		t := newTable(s.heads...)
		t.rows = s.text
		_ = t.write(b)
		for _, line := range s.more {
			printable.Fprintln(b, line)
		}
	}
	return b.Flush() // bufio keeps the first error
}

func (s *Summary) write(w io.Writer) {
	printable.Fprintln(w, s.Archive)
	for _, l := range s.Lines() {
		printable.Fprintf(w, "  %-14s %s\n", l.Name, l.Text)
	}
}

// Line is a line of the summary as text. Those without a name go on with the one before.
type Line struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Alarm bool   `json:"alarm,omitempty"` // something is missing or strange
}

// Lines are the summary as text.
func (s *Summary) Lines() (all []Line) {
	line := func(name, format string, args ...any) {
		all = append(all, Line{Name: name, Text: fmt.Sprintf(format, args...)})
	}
	alarm := func() { all[len(all)-1].Alarm = true }
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
	if s.Missing+s.Running+s.Crashed > 0 {
		alarm()
	}
	if s.NotRecorded != nil {
		line("", "%s", s.NotRecorded.text())
		alarm()
	}
	for i, died := range s.Died {
		name := ""
		if i == 0 {
			name = "died"
		}
		line(name, "%s", died)
		alarm()
	}
	line("ranks", "%d on %s", s.Ranks, count(s.GPUs, "GPU", "GPUs"))
	line("communicators", "%d", s.Communicators)
	line("operations", "%d in %d calls, %s", s.Operations, s.Calls, formatBytes(s.Bytes))
	if s.Alone > 0 {
		line("", "%d on communicators of one rank are not in the table", s.Alone)
	}
	if s.Unfinished > 0 {
		line("", "%s not ended by all members", count(int(s.Unfinished), "collective", "collectives"))
		alarm()
	}
	if s.LeftOut > 0 {
		line("", "%d calls left out: their members did not record the same operations", s.LeftOut)
		alarm()
	}
	line("duration", "%s, %d events in %d locations", formatTime(float64(s.Duration)), s.Events, s.Locations)
	line("timing", "%s", counters(s.Timing))
	for _, w := range s.Withheld {
		if w.Processes != "all" {
			w.Value += " (process " + w.Processes + ")"
		}
		line("withheld", "%s", w.Value)
		alarm()
	}
	line("losses", "%s", counters(s.Lost))
	if len(s.Lost) > 0 {
		alarm()
	}
	line("oddities", "%s", counters(s.Oddities))
	if len(s.Oddities) > 0 {
		alarm()
	}
	if text := networkText(s.Network); text != "" {
		line("network", "%s", text)
	}
	if text := kernelsText(s.CUPTI, s.CUPTIStates); text != "" {
		line("kernels", "%s", text)
	}
	s.writePaused(line)
	s.writeHidden(line, alarm)
	if !s.Complete {
		line("complete", "no: parts of the communication are missing")
		alarm()
	}
	return all
}

// writeHidden tells what the library does not report.
func (s *Summary) writeHidden(line func(name, format string, args ...any), alarm func()) {
	head := "not visible"
	for _, t := range s.Hidden {
		if t.Grave {
			line(head, "%s", t)
			alarm()
			head = ""
		}
	}
	if used := hidden.Used(s.Hidden); used != "" {
		line(head, "if used: %s", used)
	}
}

// byRAS is the counter of what is missing because somebody else has changed NCCL's activation mask.
const byRAS = "OPERATIONS_BY_RAS"

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
		why := "on request"
		if g.Lost {
			why = "lost"
		}
		line(head, "%s: %s of %s", why, what, orDash(g.Communicator))
		head = ""
	}
	if n := s.GapCount; n > maxGaps {
		line(head, "on request: %s more", count(int(n)-maxGaps, "stretch", "stretches"))
		head = ""
	}
	onRequest := maps.Clone(s.Paused)
	if n := onRequest[byRAS]; n > 0 {
		line(head, "paused by RAS: %s", count(int(n), "operation that NCCL made and did not tell", "operations that NCCL made and did not tell"))
		head = ""
		delete(onRequest, byRAS)
	}
	if text := counters(onRequest); text != "none" {
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
//
// Those of operations that died with collectors say so behind their function.
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
		what, died := strings.CutPrefix(name, diedPrefix)
		names[i] = fmt.Sprintf("%d %s", all[name], strings.ToLower(strings.NewReplacer("::", " ", "_", " ").Replace(what)))
		if died {
			names[i] += " with a collector that died"
		}
	}
	return strings.Join(names, ", ")
}

// operationColumns are those of the operations, by size or by class of sizes.
func operationColumns(class bool) []column[OperationRow] {
	type row = OperationRow
	columns := []column[row]{
		label("communicator", "communicator", func(o *row) string { return o.Communicator }),
		number("comm", "", func(o *row) uint64 { return uint64(o.Comm) }),
		{"role", "<likely role", func(o *row) string { return orDash(o.Role) }, func(o *row) any { return o.Role }},
		number("ranks", "ranks", func(o *row) uint64 { return uint64(o.Ranks) }),
		{"operation", "<operation", func(o *row) string {
			name := o.Operation
			if o.Device {
				name = "*" + name
			}
			if o.Grouped {
				name += "*"
			}
			return name
		}, func(o *row) any { return o.Operation }},
		{"grouped", "", nil, func(o *row) any { return o.Grouped }},
		{"device", "", nil, func(o *row) any { return o.Device }},
		{"type", "<type", func(o *row) string { return strings.TrimPrefix(o.Datatype, "nccl") }, func(o *row) any { return o.Datatype }},
	}
	size := "size"
	if class {
		size = "mean size"
		columns = append(columns, label("size_class", "sizes", func(o *row) string { return o.Class.String() }))
	}
	return append(columns, []column[row]{
		{"size", size, func(o *row) string { return formatBytes(o.Size) }, func(o *row) any { return o.Size }},
		number("count", "count", func(o *row) uint64 { return o.Count }),
		number("calls", "", func(o *row) uint64 { return o.Calls }),
		{"min_calls_per_rank", "", nil, func(o *row) any { return o.MinCallsPerRank }},
		{"max_calls_per_rank", "calls/rank", func(o *row) string { return span(o.MinCallsPerRank, o.MaxCallsPerRank) }, func(o *row) any { return o.MaxCallsPerRank }},
		meanTime("avg_ns", "avg", func(o *row) float64 { return o.Time.Avg }),
		meanTime("min_ns", "min", func(o *row) float64 { return o.Time.Min }),
		{"p50_ns", "p50", func(o *row) string { return o.percentile(o.Time.P50) }, func(o *row) any { return o.Time.P50 }},
		{"p99_ns", "p99", func(o *row) string { return o.percentile(o.Time.P99) }, func(o *row) any { return o.Time.P99 }},
		meanTime("max_ns", "max", func(o *row) float64 { return o.Time.Max }),
		{"algbw", "algbw GB/s", func(o *row) string { return bandwidth(o.AlgBW) }, func(o *row) any { return known(o.AlgBW) }},
		{"busbw", "busbw GB/s", func(o *row) string { return bandwidth(o.BusBW) }, func(o *row) any { return known(o.BusBW) }},
		{"algorithms", "<algorithm", func(o *row) string { return orDash(strings.Join(o.Algorithms, ",")) }, func(o *row) any { return strings.Join(o.Algorithms, ",") }},
		{"protocols", "<protocol", func(o *row) string { return orDash(strings.Join(o.Protocols, ",")) }, func(o *row) any { return strings.Join(o.Protocols, ",") }},
		{"min_channels", "", nil, func(o *row) any { return o.MinChannels }},
		{"max_channels", "channels", func(o *row) string { return span(uint64(o.MinChannels), uint64(o.MaxChannels)) }, func(o *row) any { return o.MaxChannels }},
		{"timing_source", "<timing source", func(o *row) string { return orDash(o.TimingSource) }, func(o *row) any { return o.TimingSource }},
	}...)
}

// known is a value that is not known where it is 0.
func known(v float64) any {
	if v == 0 {
		return nil
	}
	return v
}

func (o *OperationRow) percentile(ns float64) string {
	if o.Approximate {
		return "~" + formatTime(ns)
	}
	return formatTime(ns)
}

func (r *Report) operationSheet() sheet {
	class := slices.ContainsFunc(r.Operations, func(o OperationRow) bool { return o.Class != nil })
	s := sheetOf("operations", "Operations", r.Operations, operationColumns(class))
	var notes []string
	if slices.ContainsFunc(r.Operations, func(o OperationRow) bool { return o.Device }) {
		notes = append(notes, "* before the name: a buffer is in GPU memory")
	}
	if slices.ContainsFunc(r.Operations, func(o OperationRow) bool { return o.Grouped }) {
		notes = append(notes, "* launched together with others: the times are those of the whole launch")
	}
	if slices.ContainsFunc(r.Operations, func(o OperationRow) bool { return o.Approximate }) {
		notes = append(notes, "~ right to 2 %")
	}
	s.more = notes
	return s
}

func (r *Report) writeOperations(w io.Writer) {
	s := r.operationSheet()
	if len(s.text) == 0 {
		printable.Fprintln(w, "No operations.")
		return
	}
	t := newTable(s.heads...)
	t.rows = s.text
	_ = t.write(w) // a buffered writer keeps its error
	for _, line := range append(s.more, timesRemark) {
		printable.Fprintln(w, line)
	}
}

// timesRemark says what is counted: others count members.
const timesRemark = "count and times are of operations: of a collective the mean of its members' times. Profiles have the members' times."

// Document gives the report as tables; for people WriteText has more to say.
func (r *Report) Document() *Document {
	d := &Document{Title: r.Summary.Archive}
	var b strings.Builder
	r.Summary.write(&b)
	for _, line := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n")[1:] {
		d.say("%s", strings.TrimSpace(line))
	}
	for _, p := range r.Problems {
		d.say("problem: %s", p)
	}
	d.sheets = []sheet{r.operationSheet(), phaseSheet(r.Phases), r.Waits.sheet(), sheetOf("communicators", "Communicators", r.Communicators, communicatorColumns)}
	d.sheets[2].more = r.Waits.remark()
	d.sheets[0].more = append(d.sheets[0].more, timesRemark)
	return d
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
	s := ws.sheet()
	printable.Fprintln(w, s.title)
	if ws.Collectives == 0 {
		return
	}
	t := newTable(s.heads...)
	t.rows = s.text
	_ = t.write(w)
	for _, line := range ws.remark() {
		printable.Fprintln(w, line)
	}
}

var waitsColumns = func(total uint64) []column[RankWait] {
	return []column[RankWait]{
		label("rank", "rank", func(r *RankWait) string { return r.Rank }),
		label("host", "host", func(r *RankWait) string { return r.Host }),
		number("collectives", "collectives", func(r *RankWait) uint64 { return r.Collectives }),
		duration("time_ns", "time", func(r *RankWait) uint64 { return r.Time }),
		duration("waited_ns", "waited", func(r *RankWait) uint64 { return r.Waited }),
		percent("share", func(r *RankWait) (float64, float64) { return float64(r.Waited), float64(r.Time) }),
		duration("caused_ns", "wait caused", func(r *RankWait) uint64 { return r.Caused }),
		percent("of all waiting", func(r *RankWait) (float64, float64) { return float64(r.Caused), float64(total) }),
		number("last", "late arrivals", func(r *RankWait) uint64 { return r.Last }),
		duration("max_caused_ns", "longest", func(r *RankWait) uint64 { return r.MaxCaused }),
		{"worst_at", "", nil, func(r *RankWait) any { return uint64(r.WorstAt) }},
	}
}

func (ws *Waits) sheet() sheet {
	title := fmt.Sprintf("Waiting at the start of collectives: %d looked at", ws.Collectives)
	if ws.LeftOut > 0 {
		title += fmt.Sprintf(", %d left out (no times of two members that can be compared, or not ended by all)", ws.LeftOut)
	}
	s := sheetOf("waits", title, recorded(ws.Ranks, func(r RankWait) bool { return r.NoData }), waitsColumns(ws.Total))
	if ws.Collectives == 0 {
		s.text = nil
	}
	return s
}

// remark says in words who was waited for; it is empty if no collectives were looked at.
func (ws *Waits) remark() []string {
	if ws.Collectives == 0 {
		return nil
	}
	lines := []string{"Nobody waited."}
	if i := ws.Culprit(); i >= 0 {
		r := ws.Ranks[i]
		lines[0] = fmt.Sprintf("%s on %s made the others wait %s in all, %s of all waiting.", r.Rank, r.Host, formatTime(float64(r.Caused)), formatPercent(float64(r.Caused), float64(ws.Total)))
	}
	if s := ws.StartUp; s.Waited > 0 {
		lines = append(lines, fmt.Sprintf("Not counted there: %s in the first collective of each communicator, %s of it for %s (starting up).",
			formatTime(float64(s.Waited)), formatTime(float64(s.Caused)), s.Rank))
	}
	if ws.Hosts > 1 {
		lines = append(lines, fmt.Sprintf("Times of %d hosts are compared as recorded; errors of their clocks are in these figures.", ws.Hosts))
	}
	return lines
}
