// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

// table writes rows in aligned columns, with numbers right-aligned.
type table struct {
	heads []string
	left  []bool // left-aligned
	rows  [][]string
}

// newTable returns a table; a column is left-aligned if its head begins with "<".
func newTable(heads ...string) *table {
	t := new(table)
	for _, h := range heads {
		text, left := strings.CutPrefix(h, "<")
		t.heads, t.left = append(t.heads, text), append(t.left, left)
	}
	return t
}

func (t *table) write(w io.Writer) error {
	widths := make([]int, len(t.heads))
	rows := [][]string{t.heads}
	for _, cells := range t.rows {
		row := make([]string, len(cells))
		for i, c := range cells {
			row[i] = printable.Name(c)
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i > 0 {
				b.WriteString("  ")
			}
			if t.left[i] {
				b.WriteString(c + pad)
			} else {
				b.WriteString(pad + c)
			}
		}
		if _, err := printable.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}
