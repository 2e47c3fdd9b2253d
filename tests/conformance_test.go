// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What docs/conformance.md says is there is there: the files and tests that it names exist; what is not there has a reason.
func TestConformance(t *testing.T) {
	text, err := os.ReadFile("../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`([^` ]+)`")
	lines := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.TrimSpace(cells[0]) == "asked for" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		lines++
		where, named := cells[2], 0
		for _, m := range name.FindAllStringSubmatch(where, -1) {
			switch {
			case strings.HasPrefix(m[1], "Test"):
				named++
				if exec.Command("git", "-C", "..", "grep", "-q", "^func "+m[1]+"(", "--", "*_test.go").Run() != nil {
					t.Errorf("there is no %s: %s", m[1], line)
				}
			case strings.Contains(m[1], "/"):
				named++
				if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
					t.Errorf("%v: %s", err, line)
				}
			}
		}
		switch there := strings.TrimSpace(cells[1]); {
		case there == "yes" && named == 0:
			t.Errorf("nothing says where it is: %s", line)
		case there == "no" && len(strings.TrimSpace(where)) < 40:
			t.Errorf("nothing says why: %s", line)
		case there != "yes" && there != "no":
			t.Errorf("%q is neither yes nor no: %s", there, line)
		}
	}
	if lines < 50 {
		t.Errorf("%d lines", lines)
	}
}
