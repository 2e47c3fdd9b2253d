// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

// table writes rows in aligned columns, numbers to the right.
type table struct {
	heads []string
	left  []bool // aligned to the left
	rows  [][]string
}

// newTable makes a table; a head that begins with "<" belongs to a column aligned to the left.
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

// formatBytes writes a size in binary units, exact ones without decimals: "512 B", "4 MiB".
func formatBytes(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return formatNumber(v, i == 0) + " " + units[i]
}

// formatTime writes nanoseconds in the unit that suits them: "820 ns", "12.5 µs", "3.2 s".
func formatTime(ns float64) string {
	units := []string{"ns", "µs", "ms", "s"}
	v, i := ns, 0
	for v >= 1000 && i < len(units)-1 {
		v /= 1000
		i++
	}
	return formatNumber(v, i == 0) + " " + units[i]
}

// formatNumber writes three significant digits, none of them after a point if the number is whole.
func formatNumber(v float64, whole bool) string {
	switch {
	case whole || v == float64(int64(v)) || v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func formatPercent(part, whole float64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}
