// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

var (
	usedAction   = regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`)
	pinnedAction = regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	makeTargets  = regexp.MustCompile(`(?m)^        target: \[(.*)\]$`)
)

// A forge runs what .ci/run does. The programs of others that it runs are pinned by their commits, as tags can be moved, and the
// targets that it makes exist.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%q, %v", files, err)
	}
	ran := false
	for _, file := range files {
		text := testkit.Read(t, file)
		uses := usedAction.FindAllSubmatch(text, -1)
		if len(uses) == 0 {
			t.Errorf("%s: nothing is checked out", file)
		}
		for _, m := range uses {
			if !pinnedAction.Match(m[1]) {
				t.Errorf("%s: not pinned by its commit: %s", file, m[1])
			}
		}
		ran = ran || bytes.Contains(text, []byte("\n          .ci/run\n"))
		for _, m := range makeTargets.FindAllSubmatch(text, -1) {
			for _, target := range strings.Split(string(m[1]), ", ") {
				if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).Match(testkit.Read(t, "../Makefile")) {
					t.Errorf("%s: make has no target %s", file, target)
				}
			}
		}
	}
	if !ran {
		t.Error("no workflow runs .ci/run")
	}
}
