// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Style is the layout of text. It does not change the contents; the zero value shows everything.
type Style struct {
	Width int // columns of the terminal; 0: not limited
	Top   int // rows of a table, those with the largest weights; 0: the table's default; negative: all

	Absolute bool // points in time are times of day, not times since the begin of the run
	Color    bool // highlights the answer, and warnings
}

// textColor is the parameter of the terminal's escape sequence for a text attribute.
type textColor string

const (
	answerColor textColor = "1"  // bold
	alarmColor  textColor = "33" // yellow
)

// colorText highlights a text if colors are enabled.
func (s Style) colorText(with textColor, text string) printable.Raw {
	shown := printable.Raw(printable.Name(text))
	if !s.Color {
		return shown
	}
	return printable.Raw("\x1b["+string(with)+"m") + shown + "\x1b[0m"
}

// Clock formats points in time.
type Clock struct {
	Begin    uint64 // of the run, ns on the archive's clock
	Absolute bool   // as times of day, in UTC, not since the begin
}

// oldest is the least timestamp that is taken as a time since 1970: archives of other tools may have another origin.
const oldest = 1_000_000_000_000_000_000

// formatTime formats a point in time, given in ns on the archive's clock.
func (c Clock) formatTime(t uint64) string {
	switch {
	case !c.Absolute && t < c.Begin:
		return fmt.Sprintf("-%.6f s", float64(c.Begin-t)/1e9)
	case !c.Absolute:
		return fmt.Sprintf("%.6f s", float64(t-c.Begin)/1e9)
	case t < oldest:
		return fmt.Sprintf("%.6f s", float64(t)/1e9)
	}
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02 15:04:05.000000")
}

// order defines how a table's rows are sorted and limited.
type order struct {
	what    string // name of the weights: "the time"
	weights []float64
	bound   int  // default number of rows; 0: all
	fixed   bool // rows keep their order, because it shows their nesting
}

// sortBy sorts the rows in text by a weight, the largest first. CSV and JSON keep the order of the archive.
func (s *sheet) sortBy(what string, weight func(row int) float64) {
	s.order = order{what: what, weights: make([]float64, len(s.text))}
	for i := range s.text {
		s.order.weights[i] = weight(i)
	}
}

// topRows returns the rows to show, and a line about the omitted ones, "" if there are none.
func (s *sheet) topRows(most int) (rows [][]string, rest string) {
	if len(s.order.weights) != len(s.text) { // not sorted
		return s.text, ""
	}
	most = cmp.Or(most, s.order.bound)
	index := make([]int, len(s.text))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int { return cmp.Compare(s.order.weights[b], s.order.weights[a]) })
	all, left := 0.0, 0.0
	for n, i := range index {
		all += s.order.weights[i]
		if most > 0 && n >= most {
			left += s.order.weights[i]
		}
	}
	if most > 0 {
		index = index[:min(most, len(index))]
	}
	if s.order.fixed {
		slices.Sort(index)
	}
	for _, i := range index {
		rows = append(rows, s.text[i])
	}
	if n := len(s.text) - len(rows); n > 0 {
		rest = fmt.Sprintf("… and %s with %s of %s (--top all)", units.Count(n, "more row", "more rows"),
			strings.TrimSpace(units.Percent(left, all)), s.order.what)
	}
	return rows, rest
}

// narrow holds the widths to which fitWidth cuts texts, one after the other.
var narrow = []int{32, 20}

// fitWidth makes a table fit a width: it shortens texts, then omits columns, the optional ones first. It returns the
// heads of the omitted columns.
func (t *table) fitWidth(width int, optional []string) (left []string) {
	if width <= 0 {
		return nil
	}
	for _, most := range narrow {
		if t.width() <= width {
			return nil
		}
		t.shortenTexts(most)
	}
	for _, head := range optional {
		if t.width() <= width {
			return left
		}
		if i := slices.Index(t.heads, head); i > 0 {
			t.dropColumn(i)
			left = append(left, head)
		}
	}
	for t.width() > width && len(t.heads) > 2 {
		last := len(t.heads) - 1
		left = append(left, t.heads[last])
		t.dropColumn(last)
	}
	return left
}

// width returns the width of the table in columns of the terminal.
func (t *table) width() int {
	sum := 2 * (len(t.heads) - 1)
	for _, w := range t.widths() {
		sum += w
	}
	return sum
}

// widths returns the widths of the table's columns.
func (t *table) widths() []int {
	widths := make([]int, len(t.heads))
	for i, h := range t.heads {
		widths[i] = utf8.RuneCountInString(h)
	}
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	return widths
}

// shortenTexts cuts the texts of left-aligned columns to a number of characters.
func (t *table) shortenTexts(most int) {
	for _, row := range t.rows {
		for i, c := range row {
			if r := []rune(c); t.left[i] && len(r) > most {
				row[i] = string(r[:most-1]) + "…"
			}
		}
	}
}

// dropColumn removes a column.
func (t *table) dropColumn(at int) {
	t.heads, t.left = slices.Delete(t.heads, at, at+1), slices.Delete(t.left, at, at+1)
	for i, row := range t.rows {
		t.rows[i] = slices.Delete(row, at, at+1)
	}
}
