// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The questions of docs/architecture.md are answered by one or two files each, which are there and name what is asked for.
func TestNewcomersFindTheFile(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## Where is …?\n")
	section, _, end := strings.Cut(rest, "\n## ")
	if !ok || !end {
		t.Fatal("docs/architecture.md has no such section")
	}
	// What the files say, by the number of the question.
	said := []string{"late|wait", "late", "path|would", "NCCL_OTF2_|EVENTS", "[eE]vent", "export", "[vV]7|7", "[Ss]ource", "ClockOffset", "busbw|[Bb]us|factor", "[Cc]urve", "[Bb]andwidth", "View is how", "hang|Hang", "slow|link", "world", "Unify|archive"}
	name := regexp.MustCompile("`([^`]+/[^`]+)`")
	var questions []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| question ") {
			questions = append(questions, line)
		}
	}
	if len(questions) != len(said) {
		t.Fatalf("%d questions, %d are to be", len(questions), len(said))
	}
	for i, q := range questions {
		files := name.FindAllStringSubmatch(q, -1)
		if len(files) < 1 || len(files) > 2 {
			t.Errorf("%d files answer: %s", len(files), q)
		}
		for _, f := range files {
			content, err := os.ReadFile(filepath.Join("..", f[1]))
			if err != nil {
				t.Errorf("%v: %s", err, q)
			} else if !regexp.MustCompile(said[i]).Match(content) {
				t.Errorf("%s says nothing of %s: %s", f[1], said[i], q)
			}
		}
	}
}
