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

func (m markdown) writeParagraphs(all ...string) {
	for _, text := range all {
		printable.Fprintf(m, "\n%s\n", m.escape.Replace(strings.TrimSpace(text)))
	}
}

// writeTable writes a table below its title; the heads have the form that newTable defines.
func (m markdown) writeTable(title string, heads []string, rows [][]string) {
	printable.Fprintf(m, "\n## %s\n\n", m.escape.Replace(title))
	names, rule := make([]string, len(heads)), make([]string, len(heads))
	for i, h := range heads {
		text, left := strings.CutPrefix(h, "<")
		names[i], rule[i] = text, "--:"
		if left {
			rule[i] = "---"
		}
	}
	m.writeRow(names)
	printable.Fprintf(m, "| %s |\n", strings.Join(rule, " | "))
	for _, row := range rows {
		m.writeRow(row)
	}
}

func (m markdown) writeRow(cells []string) {
	escaped := make([]string, len(cells))
	for i, c := range cells {
		escaped[i] = m.escape.Replace(c)
	}
	printable.Fprintf(m, "| %s |\n", strings.Join(escaped, " | "))
}
