// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestSplice(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		testkit.Must(t, os.WriteFile(page, []byte(text), 0o644))
	}
	const other = "<!-- other:begin -->\nstays\n<!-- other:end -->\n"
	write("a\n" + other + "<!-- table:begin -->\nold\n<!-- table:end -->\nb\n")
	got, err := splice(page, "table", "new\n")
	if want := "a\n" + other + "<!-- table:begin -->\nnew\n<!-- table:end -->\nb\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	write("a\n<!-- table:end -->\n<!-- table:begin -->\n")
	if _, err := splice(page, "table", "new"); err == nil {
		t.Error("a page with markers in the wrong order was accepted")
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 9.994: "9.99", 12.34: "12.3", 123.4: "123", -45.67: "-45.7",
		1e6: "1000000"} {
		testkit.Equal(t, Digits(v), want, "%v", v)
	}
}

func TestPage(t *testing.T) {
	p := Page{Heading: "a machine", Notes: []string{"slow"}, Tables: []Table{
		{Columns: []string{"case", "ns"}, Rows: [][]string{{"write", "9.5"}}, Figures: true},
		{Columns: []string{"case", "aim"}, Rows: [][]string{{"start", "–"}}, Title: "Start"},
	}}
	const text = "a machine\n\ncase   ns\nwrite  9.5\n\nStart\ncase   aim\nstart  –\n\nnote: slow\n"
	if got := p.Text(); got != text {
		t.Errorf("text:\n%s\nwant:\n%s", got, text)
	}
	const markdown = "a machine\n\n| case | ns |\n|---|--:|\n| write | 9.5 |\n\n**Start**\n\n| case | aim " +
		"|\n|---|---|\n| start | – |\n\nslow.\n"
	if got := p.Markdown(); got != markdown {
		t.Errorf("Markdown:\n%s\nwant:\n%s", got, markdown)
	}
}
