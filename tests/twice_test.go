// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// ids are what differs between processes that make the same calls: their own numbers, and those made of these.
var ids = regexp.MustCompile(`"(EVENT_ID|PARENT_ID)" <\d+>; UINT64; \d+`)

// What is played twice at the recorded times gives the same events, whenever the collectors came to look at the
// records: families of communicators, and meshes, whose processes start each other up.
func TestRecordedTimesGiveOneArchive(t *testing.T) {
	for name, times := range map[string]int{"c12-lineage-6p": 4, "c02-mesh-row-late-6p": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playedTwice(t, name, times)
		})
	}
}

func playedTwice(t *testing.T, name string, times int) {
	rec := testkit.Value(replay.Load("../testdata/nccl-causes/" + name))(t)
	var first []string
	for n := range times {
		dir, _ := play(t, rec)
		out := testkit.Value(exec.Command(need.Reference(t, "otf2-print"), filepath.Join(dir,
			"traces.otf2")).Output())(t)
		lines := strings.Split(ids.ReplaceAllString(string(out), "$1"), "\n")
		if n == 0 {
			first = lines
			continue
		}
		differ := 0
		for i := range min(len(lines), len(first)) {
			if lines[i] != first[i] {
				if differ++; differ <= 3 {
					t.Errorf("time %d, line %d:\n%s\n, at first\n%s", n+1, i+1, lines[i], first[i])
				}
			}
		}
		testkit.Require(t, differ <= 0 && len(lines) == len(first),
			"%d of %d lines differ; there were %d", differ, len(lines), len(first))
	}
}
