// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
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
		"--events", "gpu", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("replay: %v\n%s", err, out)
	}
	out := testkit.Value(exec.Command(tool, "report", dir).Output())(t)
	text := strings.ReplaceAll(string(out), dir, "build/demo")
	paragraphs := strings.Split(text, "\n\n")
	excerpt := strings.Join(append(paragraphs[:4:4], "[…]", paragraphs[len(paragraphs)-1]), "\n\n")
	golden.Section(t, readme, "demo", "```text\n"+excerpt+"```\n")
	who, path := paragraphs[1], strings.Split(paragraphs[2], "\n")
	golden.Section(t, readme, "answer", "> **"+who+"** "+path[len(path)-1]+"\n")
}
