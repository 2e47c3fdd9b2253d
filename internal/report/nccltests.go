// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// The recorded operations in the output format of nccl-tests: its columns, its lines before and after the tables, its
// number formats (see its README.md and doc/PERFORMANCE.md). Lines that are not rows begin with "#", as in nccl-tests,
// so that its parsers can read this output.

// NCCLTests is the input of a report in that format.
type NCCLTests struct {
	Archive string `json:"archive"`
	// Selection describes the selected part of the archive; nil: everything.
	Selection *selection.Description `json:"selection,omitempty"`
	Devices   []placement.Device     `json:"devices"`
	Tests     []bandwidth.Test       `json:"tests"`
}

// Averages are the values of --average: which time of an operation is shown, as with nccl-tests' -a 1, 0, 2 and 3.
var Averages = []string{"avg", "rank0", "min", "max"}

// averages describes each of them.
var averages = map[string]struct {
	figure  func(*bandwidth.Side) *bandwidth.Figure
	average func(*bandwidth.Averages) *float64
	text    string
}{
	"avg": {func(s *bandwidth.Side) *bandwidth.Figure { return s.Avg },
		func(a *bandwidth.Averages) *float64 { return a.Avg }, "mean over ranks"},
	"rank0": {func(s *bandwidth.Side) *bandwidth.Figure { return s.Rank0 },
		func(a *bandwidth.Averages) *float64 { return a.Rank0 }, "on rank 0"},
	"min": {func(s *bandwidth.Side) *bandwidth.Figure { return s.Min },
		func(a *bandwidth.Averages) *float64 { return a.Min }, "on the fastest rank"},
	"max": {func(s *bandwidth.Side) *bandwidth.Figure { return s.Max },
		func(a *bandwidth.Averages) *float64 { return a.Max }, "on the slowest rank"},
}

// testTypes are the names of types in nccl-tests that are not NCCL's names in lower case.
var testTypes = map[string]string{"Float16": "half", "Float32": "float", "Float64": "double"}

// valueOr formats the value that a pointer refers to, if there is one.
func valueOr[T any](p *T, none string) string {
	if p == nil {
		return none
	}
	return fmt.Sprint(*p)
}

func testType(datatype string) string {
	name := strings.TrimPrefix(datatype, "nccl")
	return cmp.Or(testTypes[name], strings.ToLower(name), "?")
}

// testColumn is a column of nccl-tests: a head of two lines below the name of its half, and right-aligned numbers.
type testColumn struct {
	half, head, unit string
	width            int
	text             func(*bandwidth.TestRow) string
}

const notKnown = "N/A"

// testTime formats a time in µs with as many digits as nccl-tests.
func testTime(ns float64) string {
	us := ns / 1000
	switch {
	case us >= 10000:
		return fmt.Sprintf("%.0f", us)
	case us >= 100:
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.2f", us)
}

// halfColumns returns the columns of one kind of buffers.
func halfColumns(name, average string, of func(*bandwidth.TestRow) *bandwidth.Side) []testColumn {
	figure := func(text func(*bandwidth.Figure) string) func(*bandwidth.TestRow) string {
		return func(r *bandwidth.TestRow) string {
			if s := of(r); s != nil {
				if f := averages[average].figure(s); f != nil {
					return text(f)
				}
			}
			return notKnown
		}
	}
	speed := func(of func(*bandwidth.Figure) float64) func(*bandwidth.TestRow) string {
		return figure(func(f *bandwidth.Figure) string {
			if f.AlgBW == 0 {
				return notKnown
			}
			return fmt.Sprintf("%.2f", of(f))
		})
	}
	return []testColumn{
		{name, "time", "(us)", 7, figure(func(f *bandwidth.Figure) string { return testTime(f.Time) })},
		{name, "algbw", "(GB/s)", 6, speed(func(f *bandwidth.Figure) float64 { return f.AlgBW })},
		{name, "busbw", "(GB/s)", 6, speed(func(f *bandwidth.Figure) float64 { return f.BusBW })},
		{name, "#wrong", "", 6, func(*bandwidth.TestRow) string { return notKnown }}, // data is not checked
	}
}

// callColumns returns columns of one kind of buffers that nccl-tests shows only in other runs, or not at all.
func callColumns(name string, of func(*bandwidth.TestRow) *bandwidth.Side) []testColumn {
	return []testColumn{
		{name, "iters", "", 6, func(r *bandwidth.TestRow) string {
			if s := of(r); s != nil {
				return fmt.Sprint(s.Timed)
			}
			return "0"
		}},
		{name, "cputime", "(us)", 7, func(r *bandwidth.TestRow) string {
			if s := of(r); s != nil && s.CallTime != nil {
				return testTime(*s.CallTime)
			}
			return notKnown
		}},
	}
}

// outOfPlaceSide returns the operations of the left half, which include messages: they have one buffer.
func outOfPlaceSide(r *bandwidth.TestRow) *bandwidth.Side {
	if r.OutOfPlace == nil {
		return r.Unknown
	}
	return r.OutOfPlace
}

func inPlaceSide(r *bandwidth.TestRow) *bandwidth.Side { return r.InPlace }

func testColumns(average string) []testColumn {
	columns := []testColumn{
		{"", "size", "(B)", 10, func(r *bandwidth.TestRow) string { return fmt.Sprint(r.Size) }},
		{"", "count", "(elements)", 12, func(r *bandwidth.TestRow) string { return valueOr(r.Elements, notKnown) }},
		{"", "type", "", 8, func(r *bandwidth.TestRow) string { return testType(r.Datatype) }},
		{"", "redop", "", 6, func(r *bandwidth.TestRow) string { return valueOr(r.Reduction, "?") }},
		{"", "root", "", 6, func(r *bandwidth.TestRow) string { return valueOr(r.Root, "-1") }},
	}
	columns = append(columns, halfColumns("out-of-place", average, outOfPlaceSide)...)
	columns = append(columns, halfColumns("in-place", average, inPlaceSide)...)
	columns = append(columns, callColumns("out-of-place", outOfPlaceSide)...)
	columns = append(columns, callColumns("in-place", inPlaceSide)...)
	return append(columns,
		testColumn{"", "algo", "", 7, func(r *bandwidth.TestRow) string { return cmp.Or(r.Algorithm, r.Variant, "?") }},
		testColumn{"", "proto", "", 6, func(r *bandwidth.TestRow) string { return cmp.Or(r.Protocol, "?") }},
		testColumn{"", "chan", "", 5, func(r *bandwidth.TestRow) string {
			return cmp.Or(strings.Trim(rangeText(uint64(r.MinChannels), uint64(r.MaxChannels)), "–"), "?")
		}},
	)
}

// optionalTestColumns are the heads of columns to omit on narrow terminals, the least informative first.
var optionalTestColumns = []string{"chan", "proto", "algo", "iters", "cputime", "#wrong", "redop", "count", "type"}

// testLayout returns the columns of a table with the widths of their texts, and the heads of those that do not fit.
func testLayout(rows []bandwidth.TestRow, average string, width int) (columns []testColumn, left []string) {
	columns = testColumns(average)
	for i := range columns {
		for k := range rows {
			columns[i].width = max(columns[i].width, utf8.RuneCountInString(columns[i].text(&rows[k])))
		}
	}
	wide := func() (n int) {
		for _, c := range columns {
			n += 2 + c.width
		}
		return n
	}
	for _, head := range optionalTestColumns {
		if width <= 0 || wide() <= width {
			break
		}
		columns = slices.DeleteFunc(columns, func(c testColumn) bool { return c.head == head })
		left = append(left, head)
	}
	return columns, left
}

// writeTestLine writes a row of aligned cells behind a mark of one character.
func writeTestLine(w io.Writer, mark string, columns []testColumn, cell func(*testColumn) string) {
	var b strings.Builder
	for i := range columns {
		fmt.Fprintf(&b, "  %*s", columns[i].width, cell(&columns[i]))
	}
	printable.Fprintln(w, strings.TrimRight(mark+b.String()[len(mark):], " "))
}

// writeTestHalves writes the name of each half, centered above its columns.
func writeTestHalves(w io.Writer, columns []testColumn) {
	var b strings.Builder
	for i := 0; i < len(columns); {
		n, from := 0, i
		for ; i < len(columns) && columns[i].half == columns[from].half; i++ {
			n += 2 + columns[i].width
		}
		name := columns[from].half
		before := (n + 2 - len(name)) / 2
		fmt.Fprintf(&b, "%*s%s%*s", before, "", name, n-before-len(name), "")
	}
	printable.Fprintln(w, strings.TrimRight("#"+b.String()[1:], " "))
}

// testTitle returns the title of a table.
func testTitle(t *bandwidth.Test) string {
	how := "called"
	if t.Replayed {
		how = "replayed from a CUDA graph"
	}
	text := fmt.Sprintf("%s on %s, %s, %s", t.Operation, units.OrDash(t.Communicator),
		units.Count(t.Ranks, "rank", "ranks"), how)
	switch {
	case t.Equal > 0:
		text += fmt.Sprintf(", agg iters: %d (times are of a launch, divided by it)", t.Equal)
	case t.Grouped:
		text += ", launched together with others (times are of the whole launch)"
	}
	if t.Device {
		text += ", a buffer in GPU memory"
	}
	switch t.TimingSource {
	case facts.SourceEnqueue.String():
		text += "; it is known when they were launched, but not how long they ran"
	case "":
	default:
		text += "; times: " + t.TimingSource
	}
	return text
}

func writeTest(w io.Writer, t *bandwidth.Test, average string, style Style) {
	columns, left := testLayout(t.Rows, average, style.Width)
	line := func(format string, args ...any) { printable.Fprintln(w, "# "+fmt.Sprintf(format, args...)) }
	line("%s", testTitle(t))
	printable.Fprintln(w, "#")
	writeTestHalves(w, columns)
	writeTestLine(w, "#", columns, func(c *testColumn) string { return c.head })
	writeTestLine(w, "#", columns, func(c *testColumn) string { return c.unit })
	rows := t.Rows
	if style.Top > 0 {
		rows = rows[max(len(rows)-style.Top, 0):] // the largest
	}
	approximate, unknown := false, false
	for i := range rows {
		r := &rows[i]
		writeTestLine(w, "", columns, func(c *testColumn) string { return c.text(r) })
		unknown = unknown || r.Unknown != nil && !facts.IsMessage(t.Operation)
		for _, s := range []*bandwidth.Side{r.OutOfPlace, r.InPlace, r.Unknown} {
			approximate = approximate || s != nil && s.Approximate
		}
	}
	if n := len(t.Rows) - len(rows); n > 0 {
		line("%s of smaller sizes are not shown (--top all)", units.Count(n, "more row", "more rows"))
	}
	if len(left) > 0 {
		line("terminal too narrow for: %s", strings.Join(left, ", "))
	}
	if unknown {
		line("Unknown buffers are shown as out-of-place.")
	}
	if approximate {
		line("For more than 4096 operations, figures are accurate to 2 %%.")
	}
	if v := averages[average].average(&t.Average); v != nil {
		line("Avg bus bandwidth    : %.6g", *v)
	} else {
		line("Avg bus bandwidth    : N/A")
	}
}

func writeDevices(w io.Writer, devices []placement.Device, style Style) {
	printable.Fprintln(w, "# Using devices")
	shown := devices
	if style.Top > 0 {
		shown = shown[:min(style.Top, len(shown))]
	}
	host, gpu := 0, 0
	for _, d := range shown {
		host, gpu = max(host, len(d.Host)), max(gpu, len(d.GPU))
	}
	for _, d := range shown {
		pid := notKnown
		if d.PID > 0 {
			pid = fmt.Sprint(d.PID)
		}
		text := fmt.Sprintf("#  Rank %2d Pid %6s on %*s device %-*s [%s] %s", d.Rank, pid, max(host, 10), d.Host, gpu,
			cmp.Or(d.GPU, "?"), cmp.Or(d.PCI, "?"), d.Product)
		printable.Fprintln(w, strings.TrimRight(text, " "))
	}
	if n := len(devices) - len(shown); n > 0 {
		printable.Fprintf(w, "#  and %s (--top all)\n", units.Count(n, "more rank", "more ranks"))
	}
}

// NCCLTestsDocument returns the report as text in the format of nccl-tests, and as tables for CSV and Markdown. average
// is one of Averages.
func NCCLTestsDocument(r *NCCLTests, average string) *Document {
	d := &Document{title: r.Archive + ", as nccl-tests prints it"}
	d.text = func(out io.Writer, style Style) error {
		w := bufio.NewWriter(out)
		printable.Fprintf(w, "# %s\n# times: median of the operations, %s; start-up is left out unless --first\n#\n",
			r.Archive, averages[average].text)
		if r.Selection != nil {
			printable.Fprintf(w, "# selection: %s\n#\n", r.Selection.Text)
		}
		writeDevices(w, r.Devices, style)
		for i := range r.Tests {
			printable.Fprintln(w, "#")
			writeTest(w, &r.Tests[i], average, style)
		}
		if len(r.Tests) == 0 {
			printable.Fprintln(w, "#\n# There are no operations.")
		}
		return w.Flush()
	}
	d.sheets = []sheet{testSheet(r.Tests), deviceSheet(r.Devices)}
	return d
}

// testEntry is a table row for one kind of buffers.
type testEntry struct {
	test    *bandwidth.Test
	row     *bandwidth.TestRow
	side    *bandwidth.Side
	buffers string
}

func testSheet(tests []bandwidth.Test) sheet {
	var rows []testEntry
	for i := range tests {
		t := &tests[i]
		for k := range t.Rows {
			r := &t.Rows[k]
			for _, e := range []testEntry{{t, r, r.OutOfPlace, "out-of-place"}, {t, r, r.InPlace, "in-place"},
				{t, r, r.Unknown, "–"}} {
				if e.side != nil {
					rows = append(rows, e)
				}
			}
		}
	}
	columns := []column[testEntry]{
		label("communicator", "communicator", func(e *testEntry) string { return e.test.Communicator }),
		number("comm", "", func(e *testEntry) uint64 { return uint64(e.test.Comm) }),
		number("ranks", "ranks", func(e *testEntry) uint64 { return uint64(e.test.Ranks) }),
		label("operation", "operation", func(e *testEntry) string { return e.test.Operation }),
		shown("replayed", "<launched", launchedText, func(e *testEntry) bool { return e.test.Replayed }),
		{"launched_together", "", nil, func(e *testEntry) any { return e.test.Equal }},
		label("timing_source", "timing source", func(e *testEntry) string { return e.test.TimingSource }),
		number("size", "size", func(e *testEntry) uint64 { return e.row.Size }),
		{"elements", "count", nil, func(e *testEntry) any { return e.row.Elements }},
		label("datatype", "type", func(e *testEntry) string { return testType(e.row.Datatype) }),
		{"reduction", "redop", nil, func(e *testEntry) any { return valueOrNil(e.row.Reduction) }},
		{"root", "root", nil, func(e *testEntry) any { return valueOrNil(e.row.Root) }},
		label("algorithm", "algo", func(e *testEntry) string { return e.row.Algorithm }),
		label("protocol", "proto", func(e *testEntry) string { return e.row.Protocol }),
		label("buffers", "buffers", func(e *testEntry) string { return e.buffers }),
		number("timed", "iters", func(e *testEntry) uint64 { return e.side.Timed }),
	}
	for _, name := range Averages {
		columns = append(columns, figureColumns(name, averages[name].figure)...)
	}
	columns = append(columns, figureColumns("nobody_late",
		func(s *bandwidth.Side) *bandwidth.Figure { return s.NobodyLate })...)
	columns = append(columns,
		optional("call_time_ns", "cputime", "–", units.Time, func(e *testEntry) *float64 { return e.side.CallTime }))
	return sheetOf("nccl_tests", "Operations", rows, columns)
}

func figureColumns(name string, of func(*bandwidth.Side) *bandwidth.Figure) []column[testEntry] {
	value := func(of func(*bandwidth.Figure) float64, figure func(*bandwidth.Side) *bandwidth.Figure) func(
		*testEntry) any {
		return func(e *testEntry) any {
			f := figure(e.side)
			if f == nil {
				return nil
			}
			return knownOrNil(of(f))
		}
	}
	text := func(e *testEntry) string {
		if f := of(e.side); f != nil {
			return units.Time(f.Time)
		}
		return "–"
	}
	speed := func(e *testEntry) string {
		if f := of(e.side); f != nil {
			return bandwidthText(f.BusBW)
		}
		return "–"
	}
	words := strings.ReplaceAll(name, "_", " ")
	return []column[testEntry]{
		{name + "_ns", words, text, value(func(f *bandwidth.Figure) float64 { return f.Time }, of)},
		{name + "_algbw", "", nil, value(func(f *bandwidth.Figure) float64 { return f.AlgBW }, of)},
		{name + "_busbw", "its busbw GB/s", speed, value(func(f *bandwidth.Figure) float64 { return f.BusBW }, of)},
	}
}

func deviceSheet(devices []placement.Device) sheet {
	return sheetOf("devices", "Devices", devices, []column[placement.Device]{
		{"rank", "rank", nil, func(d *placement.Device) any { return d.Rank }},
		label("name", "name", func(d *placement.Device) string { return d.Name }),
		number("pid", "pid", func(d *placement.Device) uint64 { return d.PID }),
		label("host", "host", func(d *placement.Device) string { return d.Host }),
		label("gpu", "GPU", func(d *placement.Device) string { return d.GPU }),
		label("pci", "PCI", func(d *placement.Device) string { return d.PCI }),
		label("product", "product", func(d *placement.Device) string { return d.Product }),
	})
}
