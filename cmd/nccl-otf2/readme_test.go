// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ncclotf2/config"
)

var update = flag.Bool("update", false, "write generated texts anew")

const readme = "../../README.md"

// inREADME compares the text between two marks of the README with what it should be, or writes it there.
func inREADME(t *testing.T, name, want string) {
	t.Helper()
	begin, end := "<!-- "+name+": made by `make generate` -->\n", "<!-- "+name+" end -->"
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the %s, between %q and %q", readme, name, begin, end)
	}
	if *update {
		if err := os.WriteFile(readme, []byte(before+begin+want+end+after), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the %s in %s are not as they should be; run make generate (-want +got):\n%s", name, readme, d)
	}
}

// TestREADMEHasTheSettings keeps the settings table of the README equal to package config's.
func TestREADMEHasTheSettings(t *testing.T) { inREADME(t, "settings", config.Markdown()) }

// TestREADMEHasTheDemo keeps the example in the README equal to what the demo prints.
func TestREADMEHasTheDemo(t *testing.T) {
	tool := toolWithParts(t)
	dir := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.Command(tool, "replay", "../../testdata/nccl-callbacks/09-straggler-4p", "--clock", "recorded", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("replay: %v\n%s", err, out)
	}
	out, err := exec.Command(tool, "report", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(out), dir, "build/demo")
	text = hostHead.ReplaceAllString(text, "rank    host   collectives")
	text = hostRow.ReplaceAllStringFunc(text, func(row string) string {
		m := hostRow.FindStringSubmatch(row)
		return fmt.Sprintf("%s  node1  %11s", m[1], m[2])
	})
	if host, err := os.Hostname(); err == nil {
		text = strings.ReplaceAll(text, " on "+host+" ", " on node1 ")
	}
	inREADME(t, "demo", "```\n"+text+"```\n")
}

// The host's name, and with it the width of its column, is this machine's.
var (
	hostHead = regexp.MustCompile(`(?m)^rank +host +collectives`)
	hostRow  = regexp.MustCompile(`(?m)^(Rank \d)  \S+ +(\d+)`)
)

// TestREADMENamesEveryCommand keeps the list of commands complete.
func TestREADMENamesEveryCommand(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	root := rootCommand()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		if !strings.Contains(string(text), "`"+c.Name()) {
			t.Errorf("%s does not name the command %q", readme, c.Name())
		}
		if c.Example == "" && c.Name() != "completion" {
			t.Errorf("%s has no example", c.CommandPath())
		}
	}
}
