// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// pageWidth is how many characters a line of prose has at most.
const pageWidth = 120

var (
	listItem  = regexp.MustCompile(`^( *)([-*+]|\d+\.) +`)
	codeSpan  = regexp.MustCompile("`[^`]+`")
	newBlock  = regexp.MustCompile(`^([-*+#>|]|\d+\.)`) // what would begin a block at the begin of a line
	generated = regexp.MustCompile(`^<!-- (.*): made by `)
)

// Lines of prose end at pageWidth, so that changes to pages can be read line by line; with -update they are wrapped. Tables, code,
// headings and what tests write into pages stay as they are.
func TestPagesAreWrapped(t *testing.T) {
	for _, page := range append(docPages(t), "../CHANGELOG.md") {
		text := testkit.Read(t, page)
		got := wrapPage(string(text))
		switch {
		case got == string(text):
		case golden.Updating():
			testkit.Write(t, page, []byte(got))
		default:
			t.Errorf("%s has lines of prose above %d characters: go test ./tests -run TestPagesAreWrapped -update wraps them", page, pageWidth)
		}
	}
}

func TestWrapPage(t *testing.T) {
	long := strings.Repeat("word ", 30) + "end"
	for name, c := range map[string]struct{ page, want string }{
		"short lines stay": {"a\nb\n", "a\nb\n"},
		"a paragraph":      {long + "\nmore\n", strings.Repeat("word ", 23) + "word\n" + strings.Repeat("word ", 6) + "end more\n"},
		"a list":           {"- " + long + "\n- b\n", "- " + strings.Repeat("word ", 22) + "word\n  " + strings.Repeat("word ", 7) + "end\n- b\n"},
		"code":             {"```\n" + long + "\n```\n", "```\n" + long + "\n```\n"},
		"a table":          {"| " + long + " |\n", "| " + long + " |\n"},
		"made by a test":   {"<!-- x: made by `y` -->\n" + long + "\n<!-- x end -->\n", "<!-- x: made by `y` -->\n" + long + "\n<!-- x end -->\n"},
		"no code span is broken, no dash begins a line": {strings.Repeat("word ", 23) + "`a b c d` more - text\n",
			strings.Repeat("word ", 22) + "word\n`a b c d` more - text\n"},
	} {
		if got := wrapPage(c.page); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}

// wrapPage wraps those paragraphs and list items of a page that have a line above pageWidth.
func wrapPage(text string) string {
	lines := strings.Split(text, "\n")
	var out []string
	for i := 0; i < len(lines); {
		n := blockLength(lines[i:])
		block := lines[i : i+n]
		if isProse(block[0]) && slices.ContainsFunc(block, func(l string) bool { return utf8.RuneCountInString(l) > pageWidth }) {
			block = wrap(block)
		}
		out = append(out, block...)
		i += n
	}
	return strings.Join(out, "\n")
}

// isProse says whether a block that begins with a line may be wrapped.
func isProse(line string) bool {
	s := strings.TrimSpace(line)
	return s != "" && !strings.ContainsAny(s[:1], "|#<>") && !strings.HasPrefix(s, "```") &&
		!strings.HasPrefix(s, "[![") && (!strings.HasPrefix(line, "    ") || listItem.MatchString(line))
}

// blockLength is the number of lines of the block that begins with the first: code, what a test wrote, a paragraph or a list item.
func blockLength(lines []string) int {
	until := func(end string) int {
		if n := slices.IndexFunc(lines[1:], func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), end) }); n >= 0 {
			return n + 2
		}
		return len(lines)
	}
	first := strings.TrimSpace(lines[0])
	if strings.HasPrefix(first, "```") {
		return until("```")
	}
	if m := generated.FindStringSubmatch(first); m != nil {
		return until("<!-- " + m[1] + " end -->")
	}
	if !isProse(lines[0]) {
		return 1
	}
	n := 1
	for n < len(lines) && isContinuation(lines[n]) {
		n++
	}
	return n
}

func isContinuation(line string) bool {
	s := strings.TrimSpace(line)
	return s != "" && !listItem.MatchString(line) && !strings.HasPrefix(s, "|") && !strings.HasPrefix(s, "#") && !strings.HasPrefix(s, "<!--") && !strings.HasPrefix(s, "```")
}

// wrap sets the words of a block anew. Lines after the first are indented as the second is, or as a list item asks for.
func wrap(block []string) []string {
	indent := block[0][:len(block[0])-len(strings.TrimLeft(block[0], " "))]
	rest := indent
	if m := listItem.FindString(block[0]); m != "" {
		rest = strings.Repeat(" ", len(m))
	}
	if len(block) > 1 {
		rest = block[1][:len(block[1])-len(strings.TrimLeft(block[1], " "))]
	}
	var out []string
	line, lead := indent, true // lead: nothing but the indentation is on the line
	for _, w := range words(block) {
		if !lead && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) > pageWidth {
			out = append(out, line)
			line, lead = rest, true
		}
		if !lead {
			line += " "
		}
		line, lead = line+w, false
	}
	return append(out, line)
}

// words of a block: code spans are one, and what would begin a block of its own stays with the word before.
func words(block []string) []string {
	text := strings.Join(block, "\n")
	text = strings.Join(strings.Fields(codeSpan.ReplaceAllStringFunc(text, func(s string) string {
		return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), " ", "\x00")
	})), " ")
	var out []string
	for i, w := range strings.Fields(text) {
		w = strings.ReplaceAll(w, "\x00", " ")
		if i > 1 && newBlock.MatchString(w) {
			out[len(out)-1] += " " + w
		} else {
			out = append(out, w)
		}
	}
	return out
}
