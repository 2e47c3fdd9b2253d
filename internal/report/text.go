// SPDX-License-Identifier: Apache-2.0

// Package report writes the results of the analysis packages as text, CSV, Markdown and HTML. It formats numbers and
// computes none: each question has a file here, which turns the result of one analysis package into a Document.
package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/folding"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// WriteStyled writes the report as text: the summary, the operations, the phases if there are any, the waiting, and the
// next step.
func WriteStyled(r *operations.Report, w io.Writer, style Style) error {
	lines := folding.NewWriter(w, style.Width)
	b := bufio.NewWriter(lines)
	writeSummary(&r.Summary, b, style)
	for _, p := range r.Problems {
		printable.Fprintf(b, "  problem        %s\n", style.colorText(alarmColor, p))
	}
	printable.Fprintln(b)
	if r.Verdict != nil {
		printable.Fprintf(b, "%s\n\n", style.colorText(answerColor, r.Verdict.Text))
	}
	path := pathLines(r.CriticalPath)
	for _, line := range path {
		printable.Fprintln(b, line)
	}
	if len(path) > 0 {
		printable.Fprintln(b)
	}
	writeWhere(r, b, style)
	writeOperations(r, b, style)
	printable.Fprintln(b)
	if len(r.Phases) > 0 {
		writePhases(b, r.Phases, style)
		printable.Fprintln(b)
	}
	writeWaiting(r, b, style)
	if len(r.Communicators) > 1 {
		s := communicatorSheet(r.Communicators)
		printable.Fprintf(b, "\nCommunicators and their likely roles, by their names or members\n")
		s.write(b, style)
	}
	if line := nextStep(r); line != "" {
		printable.Fprintf(b, "\n%s\n", line)
	}
	return cmp.Or(b.Flush(), lines.Flush()) // bufio keeps the first error
}

func writeSummary(s *operations.Summary, w io.Writer, style Style) {
	printable.Fprintln(w, s.Archive)
	for _, l := range SummaryLines(s) {
		text := printable.Raw(printable.Name(l.Text))
		if l.Alarm {
			text = style.colorText(alarmColor, l.Text)
		}
		printable.Fprintf(w, "  %-14s %s\n", l.Name, text)
	}
}

// Line is a line of the summary. A line without a name continues the line before.
type Line struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Alarm bool   `json:"alarm,omitempty"` // a warning
}

// SummaryLines returns the summary as lines of text.
func SummaryLines(s *operations.Summary) []Line {
	var l summaryLines
	if d := s.Selection; d != nil {
		l.addAlarm("selection", "%s; times, losses, oddities, network and kernels are of the whole archive", d.Text)
	}
	l.addProcesses(s)
	l.addLine("ranks", "%d on %s", s.Ranks, units.Count(s.GPUs, "GPU", "GPUs"))
	l.addLine("communicators", "%d", s.Communicators)
	l.addOperations(s)
	l.addLine("duration", "%s, %d events in %d locations", units.Time(float64(s.Duration)), s.Events, s.Locations)
	l.addTiming(s.Timing)
	l.addEnds(s.Ends)
	for _, w := range s.Withheld {
		if w.Processes != "all" {
			w.Value += " (process " + w.Processes + ")"
		}
		l.addAlarm("withheld", "%s", w.Value)
	}
	l.addLosses(s)
	l.addCounts("oddities", s.Oddities)
	if text := networkText(s.Network); text != "" {
		l.addLine("network", "%s", text)
	}
	if text := kernelsText(s.CUPTI, s.CUPTIStates); text != "" {
		l.addLine("kernels", "%s", text)
	}
	l.addPaused(s)
	l.addHidden(s)
	if !s.Complete {
		l.addAlarm("complete", "no: parts of the communication are missing")
	}
	return l.all
}

// summaryLines collects lines of the summary.
type summaryLines struct{ all []Line }

func (l *summaryLines) addLine(name, format string, args ...any) {
	l.all = append(l.all, Line{Name: name, Text: fmt.Sprintf(format, args...)})
}

// timingWords describe the times of each timing source.
var timingWords = map[string]string{
	facts.SourceGPU.String(): "GPU stamps", facts.SourceNetwork.String(): "network transfers",
	facts.SourceEnqueue.String():  "enqueueing (when, not how long)",
	facts.SourceDuration.String(): "imported data (how long, not when)",
}

// addTiming adds the number of operations by timing source.
func (l *summaryLines) addTiming(counts map[string]uint64) {
	var all uint64
	for _, n := range counts {
		all += n
	}
	var parts []string
	for _, source := range slices.Backward(slices.Sorted(maps.Keys(counts))) {
		if n := counts[source]; n > 0 {
			words := cmp.Or(timingWords[strings.ToLower(source)], source)
			parts = append(parts, fmt.Sprintf("%s: %d of %d", words, n, all))
		}
	}
	if len(parts) > 0 {
		l.addLine("times from", "%s", strings.Join(parts, "; "))
	}
}

// addEnds adds the number of operations whose end NCCL reports when only a part of them has ended.
func (l *summaryLines) addEnds(n map[string]uint64) {
	early, moved := n[property.EarlyEnds], n[property.MovedEnds]
	if early == 0 {
		return
	}
	text := fmt.Sprintf("for %s, NCCL stamps the end of only a part (trees, NVLS, several messages)",
		units.Plural(early, "operation"))
	if moved > 0 {
		text += fmt.Sprintf("; %d ended later according to other ranks' stamps", moved)
	}
	l.addLine("ends", "%s", text)
}

// addAlarm adds a warning.
func (l *summaryLines) addAlarm(name, format string, args ...any) {
	l.all = append(l.all, Line{Name: name, Text: fmt.Sprintf(format, args...), Alarm: true})
}

// addCounts adds counts of unexpected events: a warning if there are any.
func (l *summaryLines) addCounts(name string, counts map[string]uint64) {
	add := l.addLine
	if len(counts) > 0 {
		add = l.addAlarm
	}
	add(name, "%s", selfreport.CountersText(counts))
}

// addLosses adds the losses by process, and the processes whose losses are not known.
func (l *summaryLines) addLosses(s *operations.Summary) {
	name := "losses"
	switch {
	case len(s.Lost) > 0:
		l.addAlarm(name, "%s", lossesByProcess(s))
		name = ""
	case len(s.LostUncounted) == 0:
		l.addCounts(name, nil)
	}
	for _, text := range s.LostUncounted {
		l.addAlarm(name, "an unknown number: %s", text)
		name = ""
	}
}

// lossesByProcess states the losses by reason, and names the processes that lost events.
func lossesByProcess(s *operations.Summary) string {
	names := make(map[uint64][]string)
	var order []uint64
	for _, p := range s.LostByProcess {
		if names[p.Lost] == nil {
			order = append(order, p.Lost)
		}
		names[p.Lost] = append(names[p.Lost], p.Process)
	}
	var parts []string
	for _, n := range order {
		each := ""
		if len(names[n]) > 1 {
			each = " each"
		}
		parts = append(parts, fmt.Sprintf("%d%s of %s", n, each, units.NameList(names[n])))
	}
	text := selfreport.CountersText(s.Lost)
	if more := len(parts) - maxLosers; more > 0 {
		parts = append(parts[:maxLosers], "others")
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// maxLosers is the number of groups of processes with equal losses that the line names.
const maxLosers = 4

// addProcesses adds the number of processes, and how many of them crashed or left no data.
func (l *summaryLines) addProcesses(s *operations.Summary) {
	processes := units.Count(s.Processes, "process", "processes") + " on " + units.Count(s.Hosts, "host", "hosts")
	for _, state := range []struct {
		n    uint64
		text string
	}{{s.Missing, "without data"}, {s.Running, "still running"}, {s.Crashed, "ended before their data was complete"}} {
		if state.n > 0 {
			processes += fmt.Sprintf(", %d %s", state.n, state.text)
		}
	}
	add := l.addLine
	if s.Missing+s.Running+s.Crashed > 0 {
		add = l.addAlarm
	}
	add("processes", "%s", processes)
	if s.NotRecorded != nil {
		l.addAlarm("", "%s", s.NotRecorded.Text())
	}
	for i, died := range s.Died {
		name := ""
		if i == 0 {
			name = "died"
		}
		l.addAlarm(name, "%s", died)
	}
	if s.Silent != "" {
		l.addAlarm("silent", "%s", s.Silent)
	}
}

// addOperations adds the number of operations, and those whose members disagree.
func (l *summaryLines) addOperations(s *operations.Summary) {
	l.addLine("operations", "%d in %d calls, %s", s.Operations, s.Calls, units.Bytes(s.Bytes))
	if s.Open > 0 {
		l.addAlarm("", "%d of them had not ended when the recording did", s.Open)
	}
	if s.Alone > 0 {
		of := "of one rank"
		if s.Oddities["UNKNOWN_COMM_SIZE"] > 0 {
			of = "whose size is not known, or of one rank,"
		}
		l.addLine("", "%d on communicators %s are not in the table", s.Alone, of)
	}
	if s.Unfinished > 0 {
		how := "ended"
		if len(s.Lost) > 0 {
			how = "ended, or recorded,"
		}
		l.addAlarm("", "%s not %s by all members", units.Count(int(s.Unfinished), "collective", "collectives"), how)
	}
	if s.LeftOut > 0 {
		l.addAlarm("", "%d calls left out: their members did not record the same operations", s.LeftOut)
	}
	for i := range s.Deviations {
		l.addAlarm("", "%s", deviationText(&s.Deviations[i]))
	}
	if more := int(s.Differences) - len(s.Deviations); more > 0 && len(s.Deviations) > 0 {
		l.addLine("", "%d more such stretches", more)
	}
}

func deviationText(d *operations.Deviation) string {
	s := property.Stretch{Function: d.Function, First: d.First, Last: d.Last, Name: d.Communicator, Detail: d.Detail}
	return s.String()
}

// addHidden adds what the NCCL library does not report.
func (l *summaryLines) addHidden(s *operations.Summary) {
	head := "not recorded"
	for _, t := range s.Hidden {
		if t.Grave {
			l.addAlarm(head, "%s", t)
			head = ""
		}
	}
	if used := hidden.Used(s.Hidden); used != "" {
		l.addLine(head, "%s", used)
	}
}

// maxGaps is the number of gaps that the text names.
const maxGaps = 8

// addPaused adds what was not recorded on request.
func (l *summaryLines) addPaused(s *operations.Summary) {
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
		l.addLine(head, "%s: %s of %s", why, what, units.OrDash(g.Communicator))
		head = ""
	}
	if n := s.GapCount; n > maxGaps {
		l.addLine(head, "on request: %s more", units.Count(int(n)-maxGaps, "stretch", "stretches"))
		head = ""
	}
	onRequest := maps.Clone(s.Paused)
	if n := onRequest[selfreport.ByRAS]; n > 0 {
		l.addLine(head, "paused by RAS: %s", units.Count(
			int(n), "operation that NCCL ran without reporting it", "operations that NCCL ran without reporting them"))
		head = ""
		delete(onRequest, selfreport.ByRAS)
	}
	if text := selfreport.CountersText(onRequest); text != "none" {
		l.addLine(head, "on request: %s events of NCCL", text)
	}
}

// networkText summarizes the network traffic in one line, "" if nothing is known.
func networkText(n map[string]uint64) string {
	var parts []string
	add := func(known bool, format string, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	events := func(key, noun string) string { return units.Plural(n[key], noun) }
	bytes := func(key string) string { return units.Bytes(n[key]) }
	add(n[regions.NetPuts] > 0, "%s sent, %s", events(regions.NetPuts, "transfer"), bytes(regions.NetPutBytes))
	add(n[regions.NetRecvBytes] > 0, "%s received", bytes(regions.NetRecvBytes))
	add(n[regions.NetEmpty] > 0, "%s", events(regions.NetEmpty, "empty transfer"))
	add(n[regions.NetIBEvents] > 0, "%s of InfiniBand, %s sent", events(regions.NetIBEvents, "event"),
		bytes(regions.NetIBBytes))
	add(n[regions.NetSocket] > 0, "%s of sockets, %s", events(regions.NetSocket, "event"),
		bytes(regions.NetSocketBytes))
	add(n[regions.NetOther] > 0, "%s of other networks", events(regions.NetOther, "event"))
	return strings.Join(parts, "; ")
}

// kernelsText summarizes in one line the kernels that CUPTI recorded, and the processes where it could not record; ""
// if CUPTI was not requested.
func kernelsText(n map[string]uint64, states []selfreport.Value) string {
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
	if n[cuda.CountRecords] == 0 {
		return strings.Join(without, "; ")
	}
	parts := []string{
		fmt.Sprintf("%d recorded, %d of them linked with their launches", n[cuda.CountKernels], n[cuda.CountLinked]),
		fmt.Sprintf("%d of NCCL's not linked", n[cuda.CountUnlinked]),
	}
	add := func(n uint64, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	if replayed := n[cuda.CountGraphLinked]; replayed > 0 {
		parts[0] += fmt.Sprintf(", %d with replayed operations", replayed)
	}
	add(n[cuda.CountUndecided], "%d still undecided")
	add(n[cuda.CountNoTimes]+n[cuda.CountNoClock]+n[cuda.CountNoDevice]+n[cuda.CountNoRow]+n[cuda.CountUndrawn],
		"%d records not drawn")
	return strings.Join(append(parts, without...), "; ")
}

// operationColumns returns the columns of the operations, by size or by class of sizes. Columns without any value are
// not shown in text.
func operationColumns(rows []operations.Row) []column[operations.Row] {
	type row = operations.Row
	some := func(of func(*row) bool) bool {
		return slices.ContainsFunc(rows, func(o row) bool { return of(&o) })
	}
	head := func(shown bool, text string) string {
		if shown {
			return text
		}
		return ""
	}
	columns := []column[row]{
		label("communicator", "communicator", func(o *row) string { return o.Communicator }),
		number("comm", "", func(o *row) uint64 { return uint64(o.Comm) }),
		shown("role", "<likely role", units.OrDash, func(o *row) string { return o.Role }),
		number("ranks", "ranks", func(o *row) uint64 { return uint64(o.Ranks) }),
		{"operation", "<operation", markedName, func(o *row) any { return o.Operation }},
		{"grouped", "", nil, func(o *row) any { return o.Grouped }},
		{"device", "", nil, func(o *row) any { return o.Device }},
		optional("root", head(some(func(o *row) bool { return o.Root != nil }), "root"), "–",
			func(root int) string { return fmt.Sprint(root) }, func(o *row) *int { return o.Root }),
		{"in_place", head(some(func(o *row) bool { return o.InPlace != nil }), "<buffers"), buffersText,
			func(o *row) any { return valueOrNil(o.InPlace) }},
		{"launched_together", "", nil, func(o *row) any { return o.Equal }},
		shown("replayed", head(some(func(o *row) bool { return o.Replayed }), "<launched"), launchedText,
			func(o *row) bool { return o.Replayed }),
		{"type", "<type", func(o *row) string { return strings.TrimPrefix(o.Datatype, "nccl") },
			func(o *row) any { return o.Datatype }},
	}
	size := "size"
	if some(func(o *row) bool { return o.Class != nil }) {
		size = "mean size"
		columns = append(columns, label("size_class", "sizes", func(o *row) string { return o.Class.String() }))
	}
	late := some(func(o *row) bool { return o.Transfer != nil })
	return append(columns, []column[row]{
		{"size", size, func(o *row) string { return units.Bytes(o.Size) }, func(o *row) any { return o.Size }},
		{"elements", "", nil, func(o *row) any { return o.Elements }},
		{"count", "count", countText, func(o *row) any { return o.Count }},
		number("timed", "", func(o *row) uint64 { return o.Timed }),
		number("start_up", "", func(o *row) uint64 { return o.StartUp }),
		number("mixed_sources", "", func(o *row) uint64 { return o.Mixed }),
		number("calls", "", func(o *row) uint64 { return o.Calls }),
		{"min_calls_per_rank", "", nil, func(o *row) any { return o.MinCallsPerRank }},
		{"max_calls_per_rank", "calls/rank",
			func(o *row) string { return rangeText(o.MinCallsPerRank, o.MaxCallsPerRank) },
			func(o *row) any { return o.MaxCallsPerRank }},
		timedColumn("p50_ns", "median", func(o *row) float64 { return o.Time.P50 }, true),
		timedColumn("avg_ns", "avg", func(o *row) float64 { return o.Time.Avg }, false),
		timedColumn("min_ns", "min", func(o *row) float64 { return o.Time.Min }, false),
		timedColumn("p99_ns", "p99", func(o *row) float64 { return o.Time.P99 }, true),
		timedColumn("max_ns", "max", func(o *row) float64 { return o.Time.Max }, false),
		knownBandwidth("algbw", "algbw GB/s", func(o *row) float64 { return o.AlgBW }),
		knownBandwidth("busbw", "busbw GB/s", func(o *row) float64 { return o.BusBW }),
		{"transfer_p50_ns", head(late, "without waiting"), transferText,
			func(o *row) any { return knownOrNil(transferOf(o)) }},
		{"algbw_nobody_late", "", nil, func(o *row) any { return knownOrNil(o.AlgBWNobodyLate) }},
		knownBandwidth("busbw_nobody_late", head(late, "busbw without waiting GB/s"),
			func(o *row) float64 { return o.BusBWNobodyLate }),
		shown("algorithms", "<algorithm", units.OrDash, func(o *row) string { return strings.Join(o.Algorithms, ",") }),
		shown("protocols", "<protocol", units.OrDash, func(o *row) string { return strings.Join(o.Protocols, ",") }),
		{"variants", "", nil, func(o *row) any { return strings.Join(o.Variants, ",") }},
		{"min_channels", "", nil, func(o *row) any { return o.MinChannels }},
		{"max_channels", "channels",
			func(o *row) string { return rangeText(uint64(o.MinChannels), uint64(o.MaxChannels)) },
			func(o *row) any { return o.MaxChannels }},
		shown("timing_source", "<timing source", units.OrDash, func(o *row) string { return o.TimingSource }),
	}...)
}

// markedName returns the name of the operation with the marks that the lines below the table explain.
func markedName(o *operations.Row) string {
	name := o.Operation
	if o.Device {
		name = "*" + name
	}
	switch {
	case o.Equal > 0:
		name += fmt.Sprintf("/%d", o.Equal)
	case o.Grouped:
		name += "*"
	}
	return name
}

func buffersText(o *operations.Row) string {
	switch {
	case o.InPlace == nil:
		return "–"
	case *o.InPlace:
		return "in place"
	}
	return "out of place"
}

func launchedText(replayed bool) string {
	if replayed {
		return "graph"
	}
	return "call"
}

// countText formats the number of operations, and how many of them have times, if not all do.
func countText(o *operations.Row) string {
	if o.Timed < o.Count {
		return fmt.Sprintf("%d of %d", o.Timed, o.Count)
	}
	return fmt.Sprint(o.Count)
}

func transferOf(o *operations.Row) float64 {
	if o.Transfer == nil {
		return 0
	}
	return o.Transfer.P50
}

func transferText(o *operations.Row) string {
	if o.Transfer == nil {
		return "–"
	}
	return percentile(o, o.Transfer.P50)
}

// timedColumn returns a column of times, which are not known for rows without a timed operation.
func timedColumn(field, head string, of func(*operations.Row) float64, approximate bool) column[operations.Row] {
	return column[operations.Row]{field, head, func(o *operations.Row) string {
		switch {
		case o.Timed == 0:
			return "–"
		case approximate:
			return percentile(o, of(o))
		}
		return timeText(o, of(o))
	}, func(o *operations.Row) any {
		if o.Timed == 0 {
			return nil
		}
		return of(o)
	}}
}

// valueOrNil returns the value that a pointer refers to, nil for a nil pointer.
func valueOrNil[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// knownOrNil returns a value, nil if it is 0, which means not known.
func knownOrNil[N int | float64](v N) any {
	if v == 0 {
		return nil
	}
	return v
}

func percentile(o *operations.Row, ns float64) string {
	if o.Approximate && !onlyEnqueued(o) {
		return "~" + timeText(o, ns)
	}
	return timeText(o, ns)
}

// operationMarks are the marks in the table of operations, and their meanings.
var operationMarks = []struct {
	shown func(*operations.Row) bool
	text  string
}{
	{func(o *operations.Row) bool { return o.Device },
		"* before the name: a buffer is in GPU memory, or memory that it shares (managed)"},
	{func(o *operations.Row) bool { return o.Grouped && o.Equal == 0 },
		"* launched together with others: the times are those of the whole launch"},
	{func(o *operations.Row) bool { return o.Equal > 0 },
		"/n: n equal ones launched together: the times are those of the launch, divided by n"},
	{func(o *operations.Row) bool { return o.Approximate }, "~ accurate to 2 %"},
	{func(o *operations.Row) bool { return o.StartUp > 0 },
		"n of m: times leave out the first launch of each communicator (start-up; --first includes it)"},
	{func(o *operations.Row) bool { return o.Mixed > 0 },
		"n of m: times leave out operations whose members have times from different sources"},
	{func(o *operations.Row) bool { return o.Transfer != nil }, "without waiting: from the last arrival to the end"},
}

func operationSheet(r *operations.Report) sheet {
	s := sheetOf("operations", "Operations", r.Operations, operationColumns(r.Operations))
	for _, m := range operationMarks {
		if slices.ContainsFunc(r.Operations, func(o operations.Row) bool { return m.shown(&o) }) {
			s.more = append(s.more, m.text)
		}
	}
	if slices.ContainsFunc(r.Operations, func(o operations.Row) bool { return onlyEnqueued(&o) }) {
		s.more = append(s.more, "enqueue: it is known when these operations were launched, but not how long they ran")
	}
	s.sortBy("the time", func(i int) float64 {
		if o := &r.Operations[i]; !onlyEnqueued(o) {
			return o.Time.Total
		}
		return 0
	})
	s.optional = []string{"likely role", "protocol", "channels", "calls/rank", "min", "busbw without waiting GB/s",
		"algorithm", "type", "p99", "avg", "algbw GB/s", "timing source", "max", "without waiting", "buffers",
		"launched"}
	return s
}

// onlyEnqueued reports whether the times of a row are those of launches, not of operations.
func onlyEnqueued(o *operations.Row) bool { return o.TimingSource == facts.SourceEnqueue.String() }

// timeText formats a time of a row's operations, which is not known if only launches are.
func timeText(o *operations.Row, ns float64) string {
	if onlyEnqueued(o) {
		return "–"
	}
	return units.Time(ns)
}

func writeOperations(r *operations.Report, w io.Writer, style Style) {
	s := operationSheet(r)
	if len(s.text) == 0 {
		printable.Fprintln(w, "No operations.")
		return
	}
	s.more = append(s.more, timesRemark)
	s.write(w, style)
}

// timesRemark states that operations are counted, and not their members as in other tools.
const timesRemark = "count and times are those of operations; a collective's time is the mean over its members, and " +
	"bandwidths are those of the median time. Per-rank times: nccl-otf2 profile."

// Operations returns the report as tables; WriteStyled writes more.
func Operations(r *operations.Report) *Document {
	d := &Document{title: r.Summary.Archive}
	var b strings.Builder
	writeSummary(&r.Summary, &b, Style{})
	for _, line := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n")[1:] {
		d.addIntro("%s", strings.TrimSpace(line))
	}
	for _, p := range r.Problems {
		d.addIntro("problem: %s", p)
	}
	d.sheets = []sheet{operationSheet(r), phaseSheet(r.Phases), waitsSheet(&r.Waits),
		communicatorSheet(r.Communicators)}
	d.sheets[2].more = waitsRemark(&r.Waits)
	d.sheets[0].more = append(d.sheets[0].more, timesRemark)
	return d
}

func rangeText(low, high uint64) string {
	switch {
	case high == 0:
		return "–"
	case low == high:
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d–%d", low, high)
}

// bandwidthText formats a bandwidth with three significant digits.
func bandwidthText(v float64) string {
	if v == 0 {
		return "–"
	}
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

var waitsColumns = func(total uint64) []column[waits.Rank] {
	return []column[waits.Rank]{
		label("rank", "rank", func(r *waits.Rank) string { return r.Rank }),
		label("host", "host", func(r *waits.Rank) string { return r.Host }),
		number("collectives", "collectives", func(r *waits.Rank) uint64 { return r.Collectives }),
		duration("time_ns", "time", func(r *waits.Rank) uint64 { return r.Time }),
		duration("waited_ns", "waited", func(r *waits.Rank) uint64 { return r.Waited }),
		percent("share", func(r *waits.Rank) (float64, float64) { return float64(r.Waited), float64(r.Time) }),
		duration("caused_ns", "wait caused", func(r *waits.Rank) uint64 { return r.Caused }),
		percent("of waited", func(r *waits.Rank) (float64, float64) { return float64(r.Caused), float64(total) }),
		number("last", "late arrivals", func(r *waits.Rank) uint64 { return r.Last }),
		duration("max_caused_ns", "longest", func(r *waits.Rank) uint64 { return r.MaxCaused }),
		{"worst_at", "", nil, func(r *waits.Rank) any { return uint64(r.WorstAt) }},
	}
}

func waitsSheet(ws *waits.ByRank) sheet {
	title := fmt.Sprintf("Waiting at the start of collectives: %d examined", ws.Collectives)
	if ws.LeftOut > 0 {
		title += fmt.Sprintf(", %d left out (no comparable times on two ranks, or not ended by all)", ws.LeftOut)
	}
	rows := withData(ws.Ranks, func(r waits.Rank) bool { return r.NoData })
	s := sheetOf("waits", title, rows, waitsColumns(ws.Total))
	if ws.Collectives == 0 {
		s.text = nil
		return s
	}
	s.sortBy("the waiting caused", func(i int) float64 { return float64(rows[i].Caused) })
	s.optional = []string{"collectives", "longest", "time", "share"}
	return s
}

// waitsRemark states what is not counted, and how well clocks compare.
func waitsRemark(ws *waits.ByRank) []string {
	if ws.Collectives == 0 {
		return nil
	}
	var lines []string
	if text := firstCollectives(&ws.StartUp); text != "" {
		lines = append(lines, text)
	}
	if ws.Hosts > 1 {
		lines = append(lines, clocksRemark(ws.Hosts, ws.Clocks, false))
	}
	return lines
}

// withData returns the rows that have data.
func withData[T any](rows []T, absent func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(rows), absent)
}

func communicatorSheet(rows []operations.CommunicatorRow) sheet {
	s := sheetOf("communicators", "Communicators", rows, communicatorColumns(rows))
	s.sortBy("the memberships", func(i int) float64 { return float64(rows[i].Ranks) })
	s.order.bound, s.order.fixed = maxFlows, true
	s.optional = []string{"id", "hosts", "judged by", "made of"}
	return s
}

// communicatorColumns returns the columns of the communicators. The parent is shown in text only if there is any.
func communicatorColumns(rows []operations.CommunicatorRow) []column[operations.CommunicatorRow] {
	from := ""
	if slices.ContainsFunc(rows, func(c operations.CommunicatorRow) bool { return c.Parent != nil }) {
		from = "<made of"
	}
	return []column[operations.CommunicatorRow]{
		label("communicator", "communicator", func(c *operations.CommunicatorRow) string { return c.Communicator }),
		number("comm", "id", func(c *operations.CommunicatorRow) uint64 { return uint64(c.Comm) }),
		{"ranks", "ranks", nil, func(c *operations.CommunicatorRow) any { return c.Ranks }},
		{"hosts", "hosts", nil, func(c *operations.CommunicatorRow) any { return c.Hosts }},
		label("members", "members", func(c *operations.CommunicatorRow) string { return c.Members }),
		shown("parent", from, units.OrDash, func(c *operations.CommunicatorRow) string { return c.Parent.String() }),
		shown("role", "<likely role", units.OrDash, func(c *operations.CommunicatorRow) string { return c.Role }),
		shown("role_basis", "<judged by", units.OrDash, func(c *operations.CommunicatorRow) string { return c.Basis }),
	}
}
