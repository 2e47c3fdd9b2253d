// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// british are spellings that docs/glossary.md rules out. OTF2's own names of records (MPI_REQUEST_CANCELLED) are not ours to spell.
var british = regexp.MustCompile(`(?i)(behav|col|hon|fav|neighb)our|\banalys(ed?|er|ing)\b|\butilis|synchronis|recognis|serialis|initialis|\bfinalis|normalis|summaris|organis|` +
	`labell(ed|ing)|signalled|travell(ed|ing)|\blearnt\b|\blicence|judgement\b`)

// The project is written in American English: documents, help, comments and names.
func TestSpelling(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z", "..").Output()
	need.NoError(t, "a checkout with git", err)
	looked := 0
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		switch filepath.Ext(name) {
		case ".go", ".c", ".h", ".md", ".ts", ".py", ".sh", ".sql", ".mk":
		default:
			continue
		}
		if strings.Contains(name, "testdata/") || name == "spelling_test.go" {
			continue
		}
		if _, err := os.Stat(name); err != nil {
			continue // removed and not yet committed
		}
		looked++
		for i, line := range bytes.Split(testkit.Read(t, name), []byte("\n")) {
			if word := british.Find(line); word != nil && !bytes.Contains(line, []byte(`json:"colour"`)) {
				t.Errorf("%s:%d: %s", name, i+1, word)
			}
		}
	}
	if looked < 500 {
		t.Errorf("looked at %d files", looked)
	}
}
