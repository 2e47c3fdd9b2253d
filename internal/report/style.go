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

// Style is how text is laid out: for whom it is, not what it says. The zero value shows everything.
type Style struct {
	Width int // columns of the terminal; 0: not limited
	Top   int // rows of a table, those that weigh the most; 0: as many as the table has by itself, below: all

	Absolute bool // points in time are times of day, and not since the begin of the run
	Color    bool // the answer stands out, and what is missing or strange
}

// ink is what sets a text apart on a terminal, as its codes have it.
type ink string

const (
	answerInk ink = "1"  // bold
	alarmInk  ink = "33" // yellow
)

// inked sets a text apart if there are colors.
func (s Style) inked(with ink, text string) printable.Raw {
	shown := printable.Raw(printable.Name(text))
	if !s.Color {
		return shown
	}
	return printable.Raw("\x1b["+string(with)+"m") + shown + "\x1b[0m"
}

// Clock is how points in time are shown.
type Clock struct {
	Begin    uint64 // of the run, ns on the archive's clock
	Absolute bool   // as times of day, in UTC, and not since the begin
}

// oldest is where times since 1970 begin: archives of others count from where they like.
const oldest = 1_000_000_000_000_000_000

// at writes a point in time, ns on the archive's clock.
func (c Clock) at(t uint64) string {
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

// order is what a table's rows are sorted and shortened by.
type order struct {
	what    string // that the weights are of: "the time"
	weights []float64
	bound   int  // rows where nobody says how many; 0: all
	fixed   bool // rows keep their order, as it says what is inside what
}

// by sorts the rows for people by a weight, the heaviest first. CSV and JSON keep the order of the archive.
func (s *sheet) by(what string, weight func(row int) float64) {
	s.order = order{what: what, weights: make([]float64, len(s.text))}
	for i := range s.text {
		s.order.weights[i] = weight(i)
	}
}

// top gives the rows to show, and a line on those that are not, "" if there are none.
func (s *sheet) top(most int) (rows [][]string, rest string) {
	if len(s.order.weights) != len(s.text) { // it has no order but its own
		return s.text, ""
	}
	if most == 0 {
		most = s.order.bound
	}
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

// narrow are the widths that texts are cut to where a table is too wide, one after the other.
var narrow = []int{32, 20}

// fit makes a table fit into a width: texts are shortened, then columns left out, the sheet's optional ones first. It
// gives the heads of those.
func (t *table) fit(width int, optional []string) (left []string) {
	if width <= 0 {
		return nil
	}
	for _, most := range narrow {
		if t.width() <= width {
			return nil
		}
		t.shorten(most)
	}
	for _, head := range optional {
		if t.width() <= width {
			return left
		}
		if i := slices.Index(t.heads, head); i > 0 {
			t.drop(i)
			left = append(left, head)
		}
	}
	for t.width() > width && len(t.heads) > 2 {
		last := len(t.heads) - 1
		left = append(left, t.heads[last])
		t.drop(last)
	}
	return left
}

// width is how many columns of a terminal the table takes.
func (t *table) width() int {
	sum := 2 * (len(t.heads) - 1)
	for _, w := range t.widths() {
		sum += w
	}
	return sum
}

// widths are those of the table's columns.
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

// shorten cuts texts to a number of characters, in columns of text.
func (t *table) shorten(most int) {
	for _, row := range t.rows {
		for i, c := range row {
			if r := []rune(c); t.left[i] && len(r) > most {
				row[i] = string(r[:most-1]) + "…"
			}
		}
	}
}

// drop takes a column out.
func (t *table) drop(at int) {
	t.heads, t.left = slices.Delete(t.heads, at, at+1), slices.Delete(t.left, at, at+1)
	for i, row := range t.rows {
		t.rows[i] = slices.Delete(row, at, at+1)
	}
}
