// SPDX-License-Identifier: Apache-2.0

// Package walk does what a tutorial says: it runs the blocks of commands of a page, in order, in one shell, and
// compares what they print with what the page shows.
package walk

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Block is a fenced block of a page: commands (sh), what these print (text), or a program (python).
type Block struct {
	Line           int // of its fence
	Language, Text string
}

// First is a block's first line.
func (b Block) First() string {
	first, _, _ := strings.Cut(b.Text, "\n")
	return first
}

// fence opens or closes a block.
var fence = regexp.MustCompile("^```(.*)$")

// Blocks are the blocks of a page that is walked as a whole. One in another language would be one that nothing runs, and an error, as is a
// page without commands and a text that belongs to none.
func Blocks(page string) ([]Block, error) { return blocksOf(page, false) }

// Commands are the blocks of a page that can be walked, of others beside them: those in sh and python, and text behind sh in the same section.
func Commands(page string) ([]Block, error) { return blocksOf(page, true) }

// Fences are all blocks of a page, with what stands behind their fences as the language.
func Fences(page string) (blocks []Block) {
	inside := false
	for i, line := range strings.Split(page, "\n") {
		switch m := fence.FindStringSubmatch(strings.TrimLeft(line, " ")); {
		case m == nil && inside:
			blocks[len(blocks)-1].Text += line + "\n"
		case m == nil:
		case inside:
			inside = false
		default:
			inside = true
			blocks = append(blocks, Block{Line: i + 1, Language: m[1]})
		}
	}
	return blocks
}

func blocksOf(page string, others bool) (blocks []Block, err error) {
	var b *Block
	commands, last := false, "" // last: the language of the block before
	for i, line := range strings.Split(page, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m == nil && b != nil:
			b.Text += line + "\n"
		case m == nil && strings.HasPrefix(line, "#"):
			last = "" // what another section shows is of other commands
		case m == nil:
		case b != nil:
			if b.Language != "" {
				blocks = append(blocks, *b)
			}
			b = nil
		case m[1] == "sh" || m[1] == "python" || m[1] == "text" && last == "sh":
			b = &Block{Line: i + 1, Language: m[1]}
			commands, last = commands || m[1] == "sh", m[1]
		case others:
			b, last = new(Block), m[1]
		default:
			return nil, fmt.Errorf("line %d: a block %q: only sh, python, and text behind sh are run or compared", i+1,
				m[1])
		}
	}
	if b != nil {
		return nil, fmt.Errorf("line %d: the block does not end", b.Line)
	}
	if !commands {
		return nil, fmt.Errorf("no commands")
	}
	return blocks, nil
}

const marker = "@@ walk: block at line "

// Script is one shell script that does all that the blocks say, and marks in its output where each begins.
func Script(blocks []Block) string {
	var s strings.Builder
	for _, b := range blocks {
		switch b.Language {
		case "sh":
			fmt.Fprintf(&s, "echo; echo '%s%d'\n%s", marker, b.Line, b.Text)
		case "python":
			fmt.Fprintf(&s, "echo; echo '%s%d'\npython3 - <<'END OF WALK'\n%sEND OF WALK\n", marker, b.Line, b.Text)
		}
	}
	return s.String()
}

// Missing names what a page shows and its commands did not print. Lines are compared without regard to the width of columns; "…"
// stands for anything. replace are pairs as of strings.NewReplacer, done to the output.
func Missing(blocks []Block, output string, replace ...string) (missing []string) {
	parts := make(map[string][]string)
	at := ""
	for line := range strings.Lines(strings.NewReplacer(replace...).Replace(output)) {
		if number, ok := strings.CutPrefix(strings.TrimSpace(line), marker); ok {
			at = number
			parts[at] = []string{}
			continue
		}
		parts[at] = append(parts[at], squeeze(line))
	}
	for i, b := range blocks {
		if b.Language != "text" {
			if parts[fmt.Sprint(b.Line)] == nil {
				missing = append(missing, fmt.Sprintf("line %d: was not reached", b.Line))
			}
			continue
		}
		left := parts[fmt.Sprint(blocks[i-1].Line)]
		for line := range strings.Lines(b.Text) {
			want := squeeze(line)
			k := slices.IndexFunc(left, func(got string) bool { return has(got, strings.Split(want, "…")) })
			if k < 0 {
				missing = append(missing, fmt.Sprintf("line %d: shown and not printed there: %s", b.Line, want))
				continue
			}
			if want != "…" {
				left = left[k+1:]
			}
		}
	}
	return missing
}

// has reports whether a line has all parts, in this order.
func has(line string, parts []string) bool {
	for _, part := range parts {
		_, rest, found := strings.Cut(line, part)
		if !found {
			return false
		}
		line = rest
	}
	return true
}

// squeeze makes every run of blanks one.
func squeeze(line string) string { return strings.Join(strings.Fields(line), " ") }

// Page walks a page as a whole: run executes a script as a shell with -e and pipefail, and gives all that it printed.
func Page(t testing.TB, path string, run func(script string) (output string, err error), replace ...string) {
	t.Helper()
	blocks, err := Blocks(string(testkit.Read(t, path)))
	testkit.Require(t, err == nil, "%s: %v", path, err)
	through(t, path, blocks, run, replace...)
}

// Through walks what Commands finds on a page.
func Through(t testing.TB, path string, run func(script string) (output string, err error)) {
	t.Helper()
	blocks, err := Commands(string(testkit.Read(t, path)))
	testkit.Require(t, err == nil, "%s: %v", path, err)
	through(t, path, blocks, run)
}

func through(t testing.TB, path string, blocks []Block, run func(script string) (output string, err error),
	replace ...string) {
	t.Helper()
	output, err := run(Script(blocks))
	missing := Missing(blocks, output, replace...)
	testkit.Check(t, err == nil, "%s: %v", path, err)
	for _, m := range missing {
		t.Errorf("%s: %s", path, m)
	}
	if t.Failed() {
		t.Logf("%s", output)
	}
}
