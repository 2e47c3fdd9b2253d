// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"io"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

// markdown writes tables and paragraphs as Markdown. A buffered writer keeps its error for Flush.
type markdown struct {
	*bufio.Writer
	escape *strings.Replacer
}

func newMarkdown(w io.Writer) markdown {
	return markdown{bufio.NewWriter(w), strings.NewReplacer("|", `\|`, "\n", " ", "*", `\*`)}
}

func (m markdown) paragraphs(all ...string) {
	for _, text := range all {
		printable.Fprintf(m, "\n%s\n", m.escape.Replace(strings.TrimSpace(text)))
	}
}

// table writes a table below its title; heads are those of newTable: of columns that begin at the left "<" is in front.
func (m markdown) table(title string, heads []string, rows [][]string) {
	printable.Fprintf(m, "\n## %s\n\n", m.escape.Replace(title))
	names, rule := make([]string, len(heads)), make([]string, len(heads))
	for i, h := range heads {
		text, left := strings.CutPrefix(h, "<")
		names[i], rule[i] = text, "--:"
		if left {
			rule[i] = "---"
		}
	}
	m.row(names)
	printable.Fprintf(m, "| %s |\n", strings.Join(rule, " | "))
	for _, row := range rows {
		m.row(row)
	}
}

func (m markdown) row(cells []string) {
	escaped := make([]string, len(cells))
	for i, c := range cells {
		escaped[i] = m.escape.Replace(c)
	}
	printable.Fprintf(m, "| %s |\n", strings.Join(escaped, " | "))
}
