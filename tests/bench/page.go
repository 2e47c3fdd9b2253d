// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
)

// Page is how the findings of a part are shown.
type Page struct {
	Heading string
	Tables  []*Table
	Notes   []string
}

// Table is a part of a page.
type Table struct {
	Title   string // may be empty
	Columns []string
	Figures bool // all columns but the first are figures, set to the right in Markdown
	Rows    [][]string
}

// column is a column of a table that has a row for the runs of each case.
type column[T any] struct {
	title string
	cell  func(runs []*T) string
}

// medians makes a column of medians, written by write.
func medians[T any](title string, write func(float64) string, get func(*T) float64) column[T] {
	return column[T]{title, func(runs []*T) string { return write(median(runs, get)) }}
}

// newTable makes a table without rows.
func newTable[T any](title string, columns []column[T]) *Table {
	t := &Table{Title: title, Figures: true, Columns: []string{"plugin"}}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.title)
	}
	return t
}

// add adds a row for the runs of a case.
func add[T any](t *Table, name string, columns []column[T], runs []*T) {
	row := []string{name}
	for _, c := range columns {
		row = append(row, c.cell(runs))
	}
	t.Rows = append(t.Rows, row)
}

// median is the median of a figure of runs.
func median[T any](runs []*T, get func(*T) float64) float64 {
	var v []float64
	for _, r := range runs {
		v = append(v, get(r))
	}
	return stats.Median(v)
}

// extreme is the most of a figure of runs, or the least.
func extreme[T any](of func(float64, float64) float64, runs []*T, get func(*T) float64) float64 {
	v := get(runs[0])
	for _, r := range runs {
		v = of(v, get(r))
	}
	return v
}

// digits writes three significant digits, and no fewer than those before the point.
func digits(v float64) string {
	switch {
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

const none = "–"

// some writes a figure that not every row has: 0 is none.
func some(v float64) string {
	if v == 0 {
		return none
	}
	return digits(v)
}

// someRatio writes a ratio likewise.
func someRatio(v float64) string {
	if v == 0 {
		return none
	}
	return fmt.Sprintf("%.3f", v)
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// verdict compares a value with the most that is aimed at.
func verdict(v, most float64) string {
	if v <= most {
		return "met"
	}
	return fmt.Sprintf("missed by %.0f %%", 100*(v/most-1))
}

// machine describes the machine and how busy it is.
func machine() string {
	model, load := "unknown processor", "unknown"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(text), "model name\t: ")
		if line, _, ok := strings.Cut(rest, "\n"); ok {
			model = line
		}
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	return fmt.Sprintf("%d × %s, %s, load average at the beginning %s", runtime.NumCPU(), model, runtime.GOARCH, load)
}

// splice returns the text of a page with what stands between the lines <!-- NAME:begin --> and <!-- NAME:end -->
// replaced.
func splice(path, name, table string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	begin, end := "<!-- "+name+":begin -->", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("%s has no lines %s and %s", path, begin, end)
	}
	return before + begin + "\n" + strings.TrimSpace(table) + "\n" + end + after, nil
}

// Text writes the page for a terminal.
func (p *Page) Text() string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Heading)
	for _, t := range p.Tables {
		b.WriteByte('\n')
		if t.Title != "" {
			fmt.Fprintln(&b, t.Title)
		}
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{t.Columns}, t.Rows...) {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		_ = w.Flush() // into memory
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	return b.String()
}

// Markdown writes the page in Markdown.
func (p *Page) Markdown() string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Heading)
	for _, t := range p.Tables {
		b.WriteByte('\n')
		if t.Title != "" {
			fmt.Fprintf(&b, "**%s**\n\n", t.Title)
		}
		others := "---|"
		if t.Figures {
			others = "--:|"
		}
		fmt.Fprintf(&b, "| %s |\n|---|%s\n", strings.Join(t.Columns, " | "), strings.Repeat(others, len(t.Columns)-1))
		for _, row := range t.Rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "\n%s.\n", n)
	}
	return b.String()
}
