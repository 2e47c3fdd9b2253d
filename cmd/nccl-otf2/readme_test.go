// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

const readme = "../../README.md"

// TestREADMEHasTheDemo keeps the excerpt in the README equal to what the demo prints, and the answer at its top equal
// to that of the excerpt.
func TestREADMEHasTheDemo(t *testing.T) {
	tool := toolWithParts(t)
	dir := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.Command(tool, "replay", "../../testdata/nccl-callbacks/09-straggler-4p", "--clock", "recorded",
		"--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("replay: %v\n%s", err, out)
	}
	out := testkit.Value(exec.Command(tool, "report", dir).Output())(t)
	text := strings.ReplaceAll(string(out), dir, "build/demo")
	text = hostHead.ReplaceAllString(text, "rank    host   operations")
	text = hostRow.ReplaceAllStringFunc(text, func(row string) string {
		m := hostRow.FindStringSubmatch(row)
		return fmt.Sprintf("%s  node1  %10s", m[1], m[2])
	})
	if host, err := os.Hostname(); err == nil {
		text = strings.ReplaceAll(text, " on "+host+" ", " on node1 ")
	}
	paragraphs := strings.Split(text, "\n\n")
	excerpt := strings.Join(append(paragraphs[:4:4], "[…]", paragraphs[len(paragraphs)-1]), "\n\n")
	golden.Section(t, readme, "demo", "```text\n"+excerpt+"```\n")
	who, path := paragraphs[1], strings.Split(paragraphs[2], "\n")
	golden.Section(t, readme, "answer", "> **"+who+"** "+path[len(path)-1]+"\n")
}

// The host's name, and with it the width of its column, is this machine's.
var (
	hostHead = regexp.MustCompile(`(?m)^rank +host +operations`)
	hostRow  = regexp.MustCompile(`(?m)^(Rank \d)  \S+ +(\d+)`)
)
