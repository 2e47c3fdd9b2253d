// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// read is what stands in a page: tables by the ids of their headings, and all other text.
type read struct {
	tables   map[string][][]string
	text     string
	pictures []string // what they are called
	bars     int
}

// readPage reads a page, which must be well-formed, have nothing from elsewhere and no script.
func readPage(t *testing.T, page []byte) *read {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	out := &read{tables: make(map[string][][]string)}
	var text strings.Builder
	var open []string
	id, cell := "", -1
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		testkit.Require(t, err == nil, "%v in\n%s", err, page)
		switch e := token.(type) {
		case xml.StartElement:
			open = append(open, e.Name.Local)
			for _, a := range e.Attr {
				switch {
				case a.Name.Local == "id":
					id = a.Value
				case a.Name.Local == "src", a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#"),
					strings.HasPrefix(a.Name.Local, "on"):
					t.Errorf("%s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
				case a.Name.Local == "class" && e.Name.Local == "svg":
					out.pictures = append(out.pictures, a.Value)
				case a.Name.Local == "class" && strings.HasPrefix(a.Value, "bar"):
					out.bars++
				}
			}
			switch e.Name.Local {
			case "script", "link", "img", "iframe", "object":
				t.Errorf("the page has a %s", e.Name.Local)
			case "tr":
				out.tables[id] = append(out.tables[id], nil)
			case "td", "th":
				cell = text.Len()
			}
		case xml.EndElement:
			n := len(open)
			testkit.Require(t, n != 0 && open[n-1] == e.Name.Local, "</%s> in %q", e.Name.Local, open)
			open = open[:len(open)-1]
			if name := e.Name.Local; name == "td" || name == "th" {
				rows := out.tables[id]
				rows[len(rows)-1] = append(rows[len(rows)-1], text.String()[cell:])
			}
		case xml.CharData:
			if !slices.Contains(open, "style") {
				text.Write(e)
			}
		}
	}
	out.text = text.String()
	return out
}

// same are the rows of a sheet, as a page of unlimited width has them.
func same(s sheet, top int) [][]string {
	rows, _ := s.topRows(top)
	t := newTable(s.heads...)
	for _, row := range rows {
		t.rows = append(t.rows, slices.Clone(row))
	}
	t.fitWidth(pageColumns, s.optional)
	return append([][]string{t.heads}, t.rows...)
}

// A page has the answer, the rows and the pictures of what the report has, with the same numbers.
func TestPageSaysWhatTheReportSays(t *testing.T) {
	r := jobtest.Operations(t, jobtest.WithWaits(t))
	var page bytes.Buffer
	testkit.Must(t, WriteHTML(r, &page, HTML{Version: "1.2.3"}))
	got := readPage(t, page.Bytes())
	w := r.WaitStates
	for _, want := range []string{
		r.Verdict.Text, r.Summary.Archive, "nccl-otf2 1.2.3", units.Time(float64(w.Total.Waited)),
		units.Percent(float64(w.Total.Waited), float64(w.Total.Time)),
		units.Time(float64(r.Summary.Duration)),
	} {
		testkit.Check(t, strings.Contains(got.text, want), "the page does not say %q", want)
	}
	for _, line := range slices.Concat(SummaryLines(&r.Summary), whereLines(w, Clock{Begin: uint64(r.Summary.Begin)})) {
		if line.Name == lineEfficiency {
			break // they are drawn, and come last
		}
		testkit.Check(t, strings.Contains(got.text, line.Text), "the page does not say %q", line.Text)
	}
	worst := w.Worst[:min(mostWorst, len(w.Worst))]
	for id, s := range map[string]sheet{
		"ranks": whereRanks(w), "operations": operationSheet(r),
		"worst": sheetOf("worst", "", worst, worstColumns(Clock{Begin: uint64(r.Summary.Begin)}, worst)),
	} {
		want := same(s, 0)
		testkit.Check(t, len(want) >= 2 && slices.EqualFunc(got.tables[id], want, slices.Equal),
			"table %s:\n%q\nwant\n%q", id, got.tables[id], want)
	}
	waiting := 0
	for _, window := range w.OverTime {
		if window.Share > 0 {
			waiting++
		}
	}
	testkit.Check(t, slices.Contains(got.pictures, "overtime") && got.bars >= waiting && waiting != 0,
		"pictures %q with %d bars, waiting in %d windows", got.pictures, got.bars, waiting)
}

// Names are texts, whatever is in them.
func TestPageOfHostileNames(t *testing.T) {
	const hostile = `</style></svg><script>alert(1)</script>"'&`
	r := jobtest.Operations(t, jobtest.WithWaits(t))
	r.Summary.Archive = hostile
	r.Verdict.Text = hostile
	for i := range r.Operations {
		r.Operations[i].Communicator, r.Operations[i].Algorithms = hostile, []string{hostile}
	}
	for i := range r.WaitStates.OverTime {
		r.WaitStates.OverTime[i].Name, r.WaitStates.OverTime[i].Rank, r.WaitStates.OverTime[i].GoesBack = hostile, 0,
			float64(r.WaitStates.OverTime[i].Waited)
	}
	var page bytes.Buffer
	testkit.Must(t, WriteHTML(r, &page, HTML{}))
	got := readPage(t, page.Bytes())
	testkit.Check(t, strings.Count(got.text, hostile) >= 3, "the names are missing in %q", got.text)
}

// What an archive does not tell is not made up.
func TestPageOfNothing(t *testing.T) {
	r := jobtest.Operations(t, jobtest.Typical(t, nil))
	empty := &operations.Report{Summary: r.Summary, WaitStates: r.WaitStates}
	empty.WaitStates.Total.Parts = 0
	var page bytes.Buffer
	testkit.Must(t, WriteHTML(empty, &page, HTML{}))
	got := readPage(t, page.Bytes())
	testkit.Check(t, len(got.tables) == 0 && len(got.pictures) == 0 &&
		strings.Contains(got.text, "no operation has comparable times on two ranks"), "tables %v, pictures %q, text %q",
		got.tables, got.pictures, got.text)
}
