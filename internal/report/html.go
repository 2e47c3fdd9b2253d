// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/efficiency"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overtime"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// The report as a self-contained page, without scripts and without anything from a network, to pass on or to print. Its
// numbers are those of the report.

//go:embed html.tmpl
var pageText string

var pageTemplate = template.Must(template.New("report").Parse(pageText))

// pageColumns is the width of tables, in characters.
const pageColumns = 150

// HTML holds the options of a page.
type HTML struct {
	Style   Style  // Width is not used: a page has a fixed one
	Version string // of the program that writes it
}

// page is the data of the template.
type page struct {
	Title, Version string
	Verdict        *verdict.Verdict
	Culprits       []culprit
	Path           []string
	Tiles          []Line
	Summary        []Line
	Problems       []string
	Where          []Line
	OverTime       template.HTML
	Efficiency     []pageBar
	NotKnown       string
	Curves         template.HTML
	Tables         []pageTable
	Next           string
}

// culprit is a culprit of the verdict, as the template shows it.
type culprit struct {
	Who, Kind, Evidence string
	Facts               []Line
}

// pageBar is a share that is drawn as a bar.
type pageBar struct {
	Name, Text string
	Percent    float64 // of the full bar
	Indent     bool    // it is a factor of the share above
}

// pageTable is a table with its remarks.
type pageTable struct {
	ID, Title string
	Heads     []pageHead
	Rows      [][]string
	Notes     []string
}

type pageHead struct {
	Text string
	Left bool
}

// WriteHTML writes the report as a page.
func WriteHTML(r *operations.Report, out io.Writer, how HTML) error {
	clock := Clock{Begin: uint64(r.Summary.Begin), Absolute: how.Style.Absolute}
	p := &page{
		Title: printable.Name(r.Summary.Archive), Version: how.Version, Verdict: r.Verdict,
		Path:    pathLines(r.CriticalPath),
		Summary: SummaryLines(&r.Summary), Problems: r.Problems, Next: nextStep(r), Tiles: summaryTiles(r),
	}
	if r.Verdict != nil {
		if s := r.Verdict.Set; s != nil {
			p.Culprits = append(p.Culprits, setOf(s, r.Summary.Duration))
		}
		for i := range r.Verdict.Culprits {
			p.Culprits = append(p.Culprits, culpritOf(&r.Verdict.Culprits[i], clock))
		}
	}
	if s := r.WaitStates; s.Total.Parts > 0 {
		p.Where = whereLines(s, clock)
		// The efficiencies are drawn, and come last.
		if at := slices.IndexFunc(p.Where, func(l Line) bool { return l.Name == lineEfficiency }); at >= 0 {
			p.Where = p.Where[:at]
		}
		p.OverTime = overTimePicture(s.OverTime, clock)
		p.Efficiency, p.NotKnown = efficiencyBars(s.Efficiency)
	} else {
		p.NotKnown = "where the waiting went: no operation has comparable times on two ranks"
	}
	if curves := bandwidth.Curves(r.Operations); NewPlot(curves, maxTicks).HasLine() {
		var b strings.Builder
		if err := WriteCurves(&b, "medians", curves); err != nil {
			return err
		}
		p.Curves = template.HTML(b.String()) // WriteCurves escapes the names
	}
	p.addTables(r, clock, how.Style)
	b := bufio.NewWriter(out)
	if err := pageTemplate.Execute(b, p); err != nil {
		return err
	}
	return b.Flush()
}

// summaryTiles returns the few numbers at the top of the page.
func summaryTiles(r *operations.Report) (all []Line) {
	s, w := &r.Summary, r.WaitStates
	all = append(all, Line{Name: "duration", Text: units.Time(float64(s.Duration))},
		Line{Name: "ranks", Text: fmt.Sprintf("%d on %s", s.Ranks, units.Count(s.Hosts, "host", "hosts"))},
		Line{Name: "operations", Text: fmt.Sprintf("%d, %s", s.Operations, units.Bytes(s.Bytes))})
	if w.Total.Parts > 0 {
		all = append(all, Line{Name: "waited, of the time in operations",
			Text: fmt.Sprintf("%s, %s", units.Time(float64(w.Total.Waited)),
				units.Percent(float64(w.Total.Waited), float64(w.Total.Time)))})
	}
	if e := r.Efficiency; e != nil && e.Ranks != nil {
		all = append(all, Line{Name: "parallel efficiency", Text: units.Percent(e.Ranks.Parallel, 1)})
	}
	return all
}

// kindNames describe how a culprit delayed the others.
var kindNames = map[verdict.Kind]string{
	verdict.HostLate: "its host called late", verdict.GPULate: "its GPU began late or worked slowly",
	verdict.Late: "it began late; when it called is not known", verdict.SlowTransfer: "slow transfers",
	verdict.Missing: "it never came", verdict.Order: "another order of calls", verdict.Mismatch: "other arguments",
}

// setOf describes ranks that held the others up together, of a run of so many ns.
func setOf(s *verdict.Set, run uint64) culprit {
	out := culprit{Who: s.Name, Kind: "together"}
	if s.Host != "" {
		out.Who += " on " + s.Host
	}
	out.Facts = []Line{{Name: "of all waiting", Text: units.Percent(s.Share, 1)},
		{Name: "of the run's time", Text: units.Percent(float64(s.Gain), float64(run))}}
	return out
}

func culpritOf(c *verdict.Culprit, clock Clock) culprit {
	out := culprit{Who: units.RankName(c.Rank) + " on " + units.OrDash(c.Host), Kind: kindNames[c.Kind],
		Evidence: c.Evidence}
	if c.GPU != "" {
		out.Who += ", " + c.GPU
	}
	if c.Peer != nil {
		out.Who += fmt.Sprintf(", to rank %d", *c.Peer)
	}
	fact := func(name, text string) { out.Facts = append(out.Facts, Line{Name: name, Text: text}) }
	if !c.Stops() {
		fact("of all waiting", units.Percent(c.Caused, 1))
		if c.Limited() {
			fact("explained by its longer work", units.Percent(c.Share, 1))
		}
		fact("of the run's time", units.Percent(c.TimeShare, 1))
		fact("confidence", confidenceText(c.Confidence))
	}
	if c.Pattern != "" {
		fact("when", c.Pattern)
	}
	if w := c.Worst; w != nil {
		text := fmt.Sprintf("%s at %s, %s late", w.Function, clock.formatTime(uint64(w.At)),
			units.Time(float64(w.Late)))
		if w.Phase != "" {
			text += ", in " + w.Phase
		}
		fact("the costliest time", text)
	}
	return out
}

// confidenceText formats a confidence; it never states 100 %.
func confidenceText(v float64) string {
	if v > 0.999 {
		return "over 99.9 %"
	}
	return units.Percent(v, 1)
}

// efficiencyBars returns the efficiencies, each followed by its factors.
func efficiencyBars(e *efficiency.Result) (all []pageBar, notKnown string) {
	if e == nil {
		return nil, ""
	}
	add := func(name string, v float64, indent bool) {
		all = append(all, pageBar{name, units.Percent(v, 1), 100 * min(max(v, 0), 1), indent})
	}
	if f := e.Ranks; f != nil {
		add("parallel efficiency of ranks", f.Parallel, false)
		add("load balance", f.LoadBalance, true)
		if f.Transfer != nil && f.Serialization != nil {
			add("serialization", *f.Serialization, true)
			add("transfer", *f.Transfer, true)
		} else {
			add("communication", f.Communication, true)
		}
	}
	if g := e.GPUs; g != nil {
		add("parallel efficiency of GPUs", g.Parallel, false)
		add("load balance", g.LoadBalance, true)
		add("communication", g.Communication, true)
		add("orchestration", g.Orchestration, true)
	}
	return all, e.NotKnown
}

// addTables adds the tables of the text report, in the same order.
func (p *page) addTables(r *operations.Report, clock Clock, style Style) {
	add := func(id, title string, s sheet, more ...string) {
		if len(s.text) > 0 {
			p.Tables = append(p.Tables, s.pageTable(id, title, style.Top, more))
		}
	}
	if s := r.WaitStates; s.Total.Parts > 0 {
		worst := s.Worst[:min(mostWorst, len(s.Worst))]
		add("worst", "What cost the most", sheetOf("worst", "", worst, worstColumns(clock, worst)))
		add("ranks", "Who waited, and for whom", whereRanks(s), startUpRemark(s)...)
	}
	add("operations", "Operations", operationSheet(r), timesRemark)
	if len(r.Phases) > 0 {
		add("phases", "Phases of the application", phaseSheet(r.Phases), phaseRemarks(r.Phases)...)
	}
	if len(r.Communicators) > 1 {
		add("communicators", "Communicators and their likely roles", communicatorSheet(r.Communicators))
	}
}

// mostWorst is the number of most expensive operations on a page.
const mostWorst = 20

// pageTable returns a sheet as a table that fits a page.
func (s *sheet) pageTable(id, title string, top int, more []string) pageTable {
	rows, rest := s.topRows(top)
	t := newTable(s.heads...)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = printable.Name(c)
		}
		t.rows = append(t.rows, cells)
	}
	left := t.fitWidth(pageColumns, s.optional)
	out := pageTable{ID: id, Title: title, Rows: t.rows}
	for i, head := range t.heads {
		out.Heads = append(out.Heads, pageHead{head, t.left[i]})
	}
	notes := []string{strings.Replace(rest, " (--top all)", "", 1)}
	for _, note := range slices.Concat(notes, s.more, more) {
		if note != "" && !slices.ContainsFunc(left,
			func(head string) bool { return strings.HasPrefix(note, head+":") }) {
			out.Notes = append(out.Notes, note)
		}
	}
	return out
}

// Size of the picture of waiting over time, px.
const (
	timeWidth, timeHeight = 960, 190
	timeLeft, timeRight   = 64, 944
	timeTop, timeBottom   = 14, 150
)

// overTimePicture draws the part of the ranks' time that was waiting, with the worst window in another color; "" if
// nobody waited.
func overTimePicture(windows []overtime.Window, clock Clock) template.HTML {
	worst := overtime.Worst(windows)
	if worst == nil || len(windows) < 2 {
		return ""
	}
	begin, end := windows[0].Begin, windows[len(windows)-1].End
	top := 1.0
	for _, nice := range []float64{0.5, 0.2, 0.1, 0.05, 0.02, 0.01} {
		if worst.Share <= nice {
			top = nice
		}
	}
	x := func(share float64) float64 { return timeLeft + share*(timeRight-timeLeft) }
	y := func(share float64) float64 { return timeBottom - share/top*(timeBottom-timeTop) }
	var b strings.Builder
	w := bufio.NewWriter(&b)
	fmt.Fprintf(
		w, `<svg class="overtime" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Waiting over time">`+"\n", timeWidth, timeHeight, timeWidth, timeHeight)
	for _, share := range []float64{0, top / 2, top} {
		fmt.Fprintf(w, `<path class="grid" d="M%d %sH%d"/>`, timeLeft, px(y(share)), timeRight)
		svgLabel(w, "dim", timeLeft-8, y(share)+4, "end", units.Percent(share, 1))
	}
	whole := float64(end - begin)
	for i := range windows {
		v := &windows[i]
		if v.Share <= 0 {
			continue
		}
		class := "bar"
		if v.Begin == worst.Begin {
			class = "bar worst"
		}
		from, to := x(float64(v.Begin-begin)/whole), x(float64(v.End-begin)/whole)
		fmt.Fprintf(w, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`+"\n", class,
			px(from), px(y(v.Share)), px(max(to-from-1, 1)), px(timeBottom-y(v.Share)),
			template.HTMLEscapeString(worstWindow(v, clock)))
	}
	for _, at := range []struct {
		share  float64
		anchor string
	}{{0, "start"}, {0.5, "middle"}, {1, "end"}} {
		svgLabel(w, "dim", x(at.share), timeBottom+22, at.anchor,
			clock.formatTime(uint64(begin)+uint64(at.share*whole)))
	}
	fmt.Fprintln(w, "</svg>")
	_ = w.Flush() // a Builder has no errors
	return template.HTML(b.String())
}
