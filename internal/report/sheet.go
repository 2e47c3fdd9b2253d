// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/folding"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Document is a part of the report in a form that can be written as text, comma-separated values or Markdown.
type Document struct {
	title  string
	intro  []string // lines above the tables
	sheets []sheet
	notes  []string // lines below them
	// text, if set, writes the text output instead of the tables.
	text func(w io.Writer, style Style) error
}

func (d *Document) addIntro(format string, args ...any) {
	d.intro = append(d.intro, fmt.Sprintf(format, args...))
}

// DescribeSelection adds a line above the tables that describes the selected part of the archive.
func (d *Document) DescribeSelection(s *selection.Description) {
	if s != nil && d.text == nil {
		d.intro = slices.Insert(d.intro, 0, "selection: "+s.Text)
	}
}

func (d *Document) addNote(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// sheet is one table.
type sheet struct {
	name, title string
	heads       []string // in text, in the form that newTable defines
	text        [][]string
	fields      []string // in CSV, where values are plain numbers
	values      [][]string
	more        []string // lines below it
	order       order    // of the rows in text
	optional    []string // heads of columns to omit on narrow terminals, the least informative first
}

// column is one column of a table of T: its name in CSV, its head in text ("<": left-aligned; "": not in text), its
// cell in text (nil: the value) and its value.
type column[T any] struct {
	field, head string
	text        func(*T) string
	value       func(*T) any
}

func sheetOf[T any](name, title string, rows []T, columns []column[T]) sheet {
	s := sheet{name: name, title: title}
	for _, c := range columns {
		if c.field != "" {
			s.fields = append(s.fields, c.field)
		}
		if c.head != "" {
			s.heads = append(s.heads, c.head)
		}
	}
	for i := range rows {
		r := &rows[i]
		var text, values []string
		for _, c := range columns {
			var plain string
			if c.value != nil {
				plain = units.Plain(c.value(r))
			}
			if c.field != "" {
				values = append(values, printable.Cell(plain))
			}
			switch {
			case c.head == "":
			case c.text != nil:
				text = append(text, c.text(r))
			default:
				text = append(text, plain)
			}
		}
		s.text, s.values = append(s.text, text), append(s.values, values)
	}
	return s
}

// WriteText writes tables in aligned columns, with all rows.
func (d *Document) WriteText(w io.Writer) error { return d.WriteStyled(w, Style{}) }

// WriteStyled writes tables in aligned columns.
func (d *Document) WriteStyled(w io.Writer, style Style) error {
	if d.text != nil {
		return d.text(w, style)
	}
	lines := folding.NewWriter(w, style.Width)
	b := bufio.NewWriter(lines)
	printable.Fprintln(b, d.title)
	for _, line := range d.intro {
		printable.Fprintln(b, line)
	}
	for _, s := range d.sheets {
		if len(s.text) == 0 {
			continue
		}
		printable.Fprintf(b, "\n%s\n", s.title)
		s.write(b, style)
	}
	if len(d.notes) > 0 {
		printable.Fprintln(b)
	}
	for _, line := range d.notes {
		printable.Fprintln(b, line)
	}
	return cmp.Or(b.Flush(), lines.Flush())
}

// write writes the sheet's rows and the lines below them. The writer is buffered and keeps its error.
func (s *sheet) write(w io.Writer, style Style) {
	rows, rest := s.topRows(style.Top)
	t := newTable(s.heads...)
	for _, row := range rows {
		t.rows = append(t.rows, slices.Clone(row)) // fitWidth shortens them
	}
	left := t.fitWidth(style.Width, s.optional)
	_ = t.write(w)
	if rest != "" {
		printable.Fprintln(w, rest)
	}
	if len(left) > 0 {
		printable.Fprintf(w, "terminal too narrow for: %s\n", strings.Join(left, ", "))
	}
	for _, line := range s.more {
		if !slices.ContainsFunc(left, func(head string) bool {
			return strings.HasPrefix(line, head+":")
		}) { // it explains a column that was omitted
			printable.Fprintln(w, line)
		}
	}
}

// WriteMarkdown writes Markdown with a heading for each table.
func (d *Document) WriteMarkdown(w io.Writer) error {
	m := newMarkdown(w)
	printable.Fprintf(m, "# %s\n", m.escape.Replace(d.title))
	m.writeParagraphs(d.intro...)
	for _, s := range d.sheets {
		if len(s.text) == 0 {
			continue
		}
		rows, rest := s.topRows(0)
		m.writeTable(s.title, s.heads, rows)
		if rest != "" {
			m.writeParagraphs(rest)
		}
		if len(s.more) > 0 {
			m.writeParagraphs(strings.Join(s.more, " "))
		}
	}
	m.writeParagraphs(d.notes...)
	return m.Flush()
}

// WriteCSV writes each table with a header line, and an empty line between tables. The first field of each row is the
// table's name. Tables without rows are written, too.
func (d *Document) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	for i, s := range d.sheets {
		if s.fields == nil { // only in text
			continue
		}
		if i > 0 {
			c.Flush()
			if _, err := printable.Fprintln(w); err != nil {
				return err
			}
		}
		_ = c.Write(append([]string{"table"}, s.fields...)) // the writer keeps its error
		for _, row := range s.values {
			_ = c.Write(append([]string{s.name}, row...))
		}
	}
	c.Flush()
	return c.Error()
}

// Helpers for columns.

func number[T any](field, head string, of func(*T) uint64) column[T] {
	return column[T]{field, head, nil, func(r *T) any { return of(r) }}
}

// shown is a column whose cells in text a function makes of the value.
func shown[T, V any](field, head string, text func(V) string, of func(*T) V) column[T] {
	return column[T]{field, head, func(r *T) string { return text(of(r)) }, func(r *T) any { return of(r) }}
}

// optional is shown for values that may be missing; none stands for those in text.
func optional[T, V any](field, head, none string, text func(V) string, of func(*T) *V) column[T] {
	return column[T]{field, head, func(r *T) string {
		if v := of(r); v != nil {
			return text(*v)
		}
		return none
	}, func(r *T) any { return valueOrNil(of(r)) }}
}

// numberOrUnknown formats a number; those below 0 are not known.
func numberOrUnknown(n int) string {
	if n < 0 {
		return units.Unknown
	}
	return fmt.Sprint(n)
}

func duration[T any](field, head string, of func(*T) uint64) column[T] {
	return shown(field, head, durationText, of)
}

func durationText(ns uint64) string { return units.Time(float64(ns)) }

func meanTime[T any](field, head string, of func(*T) float64) column[T] {
	return shown(field, head, units.Time, of)
}

// knownBandwidth is a column of bandwidths in GB/s; 0 is one that is not known.
func knownBandwidth[T any](field, head string, of func(*T) float64) column[T] {
	return column[T]{field, head, func(r *T) string { return bandwidthText(of(r)) },
		func(r *T) any { return knownOrNil(of(r)) }}
}

func label[T any](field, head string, of func(*T) string) column[T] {
	if head != "" {
		head = "<" + head
	}
	return column[T]{field, head, nil, func(r *T) any { return of(r) }}
}

func percent[T any](head string, of func(*T) (part, whole float64)) column[T] {
	return column[T]{"", head, func(r *T) string { return units.Percent(of(r)) }, nil}
}
