// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Page is how the findings of a benchmark are shown.
type Page struct {
	Heading string
	Tables  []Table
	Notes   []string
}

// Table is a part of a page.
type Table struct {
	Title   string // may be empty
	Columns []string
	Figures bool // all columns but the first are figures, set to the right in Markdown
	Rows    [][]string
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
