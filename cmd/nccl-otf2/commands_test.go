// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/walk"
)

var (
	// span is a piece of code in a sentence.
	span = regexp.MustCompile("`([^`]+)`")
	// word is one of a line of shell, or what ends a command.
	word = regexp.MustCompile(`'[^']*'|"[^"]*"|\$\([^)]*\)|&&|\|\||[|;&()]|#.*|[^\s|;&()'"]+`)
	ends = []string{"&&", "||", "|", ";", "&", "(", ")"}
	// target begins a rule of a makefile.
	target = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*(?: [a-z][a-z0-9-]*)*):`)
)

// commandsOf are the commands of a line of shell that call a program: their arguments.
func commandsOf(line, program string) (commands [][]string) {
	var of []string
	in := false
	for _, w := range append(word.FindAllString(line, -1), ";") {
		switch {
		case strings.HasPrefix(w, "#") || slices.Contains(ends, w):
			if in {
				commands = append(commands, of)
			}
			of, in = nil, false
		case !in && (w == program || strings.HasSuffix(w, "/"+program)):
			in = true
		case in:
			of = append(of, w)
		}
	}
	return commands
}

func TestCommandsOfALine(t *testing.T) {
	got := commandsOf(
		"A=1 build/nccl-otf2 run --dir 'a b' -- x & nccl-otf2 report exp | grep x && srun nccl-otf2 doctor # "+
			"nccl-otf2 no", "nccl-otf2")
	want := [][]string{{"run", "--dir", "'a b'", "--", "x"}, {"report", "exp"}, {"doctor"}}
	testkit.Check(t, len(got) == len(want) && slices.EqualFunc(got, want, slices.Equal[[]string]), "%q", got)
}

// unknown says what a command of the tool names that it has not; "" if nothing.
func unknown(root *cobra.Command, args []string) string {
	if len(args) == 0 || !regexp.MustCompile(`^[a-z]+$`).MatchString(args[0]) { // "nccl-otf2 …", or a sentence about it
		return ""
	}
	cmd, rest, err := root.Find(args)
	if err != nil || cmd == root {
		return args[0]
	}
	for _, arg := range rest {
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return ""
		case strings.HasPrefix(name, "--"):
			if name != "--help" && cmd.Flags().Lookup(name[2:]) == nil {
				return name
			}
		case len(name) == 2 && name[0] == '-':
			if name != "-h" && cmd.Flags().ShorthandLookup(name[1:]) == nil {
				return name
			}
		}
	}
	return ""
}

// What pages tell people to call is there: commands of the tool with their flags, targets of make, and scripts; in blocks and in sentences.
func TestPagesCallWhatIsThere(t *testing.T) {
	root := rootCommand()
	root.InitDefaultCompletionCmd()
	targets := map[string]bool{}
	for _, file := range []string{"Makefile", "plugin/plugin.mk", "internal/replay/host/host.mk",
		"tests/faults/inject/inject.mk", "tests/realnccl/realnccl.mk"} {
		for _, m := range target.FindAllStringSubmatch(string(testkit.Read(t, "../../"+file)), -1) {
			for name := range strings.FieldsSeq(m[1]) {
				targets[name] = true
			}
		}
	}
	seen := map[string]int{}
	line := func(page, text string, inside bool) {
		for _, args := range commandsOf(text, "nccl-otf2") {
			seen["commands"]++
			testkit.Equal(t, unknown(root, args), "", "%s: %q: there is no", page, text)
		}
		if !inside || strings.HasPrefix(text, "make ") {
			for _, args := range commandsOf(text, "make") {
				for _, arg := range args {
					if regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(arg) {
						seen["targets"]++
						testkit.Check(t, targets[arg], "%s: %q: make has no target %s", page, text, arg)
					}
				}
			}
		}
		for _, name := range regexp.MustCompile(
			`(?:^|\s)(?:\./)?((?:scripts|packaging|python|tests)/[\w/.-]+\.(?:sh|py))`).FindAllStringSubmatch(
			text, -1) {
			seen["scripts"]++
			_, err := os.Stat(filepath.Join("../..", name[1]))
			testkit.Check(t, err == nil, "%s: %v", page, err)
		}
	}
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "packaging/*.md"} {
		more := testkit.Value(filepath.Glob("../../" + pattern))(t)
		pages = append(pages, more...)
	}
	for _, page := range pages {
		if filepath.Base(page) == "CHANGELOG.md" { // what it tells of may be gone
			continue
		}
		text := string(testkit.Read(t, page))
		for _, b := range walk.Fences(text) {
			if b.Language == "sh" || b.Language == "bash" {
				for text := range strings.Lines(strings.ReplaceAll(b.Text, "\\\n", " ")) {
					line(page, strings.TrimSpace(text), false)
				}
			}
			text = strings.Replace(text, "\n"+b.Text, "\n", 1)
		}
		for _, m := range span.FindAllStringSubmatch(strings.ReplaceAll(text, "```", ""), -1) {
			line(page, strings.Join(strings.Fields(m[1]), " "), true)
		}
	}
	testkit.Check(t, seen["commands"] >= 150 && seen["targets"] >= 60 && seen["scripts"] >= 5,
		"only %v were found: does the search see them?", seen)
}

// Of processes that were killed it is said how old what they left is.
func TestAgesOfLastFlushes(t *testing.T) {
	now := time.Now()
	early, late := now.Add(-90*time.Second), now.Add(-60*time.Second)
	for _, c := range []struct {
		at   []time.Time
		want string
	}{
		{nil, "^$"},
		{[]time.Time{late}, `^ \(last flushed ` + late.Format(time.DateTime) + `, 1m\ds ago\)$`},
		{[]time.Time{late, early}, `^ \(last flushed between ` + early.Format(time.DateTime) + " and " +
			late.Format(time.DateTime) + `, 1m\ds ago\)$`},
	} {
		got := lastFlushes(c.at)
		testkit.Check(t, regexp.MustCompile(c.want).MatchString(got), "%v: %q", c.at, got)
	}
}
