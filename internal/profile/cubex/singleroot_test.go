// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex/cubextest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// With a single root a profile has all call paths and values that it has without; the root's own are nothing, and its
// time that of the trees.
func TestSingleRoot(t *testing.T) {
	anchor := makeJob(t, 1)
	_, plain := profileArchive(t, anchor)
	p, _, err := FromArchive(jobtest.Open(t, anchor))
	testkit.Must(t, err)
	p.Creator = "test"
	p.SingleRoot()
	file := filepath.Join(t.TempDir(), "single.cubex")
	testkit.Must(t, p.Write(file, false))
	single := cubextest.Load(t, file)
	single.Sound(t)

	want := plain.ByPath()
	time := make(map[string]float64) // of the trees, by location
	for key, v := range want {
		if metric, path, _ := strings.Cut(key, " "); metric == "time" && strings.Count(path, "/") == 1 {
			location, _, _ := strings.Cut(path, "/")
			time["time "+location+"/job"] += v
		}
	}
	for key, v := range time {
		want[key] = v
	}
	got := make(map[string]float64)
	for key, v := range single.ByPath() {
		got[strings.Replace(key, "/job/", "/", 1)] = v
	}
	roots := 0
	for _, c := range single.Cnodes {
		if c.Parent == cube.None {
			roots++
		}
	}
	diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12))
	testkit.Check(t, diff == "" && len(time) >= 3 && roots == 1,
		"%d roots, times on %d locations; without (−) and with (+) a single root: %s", roots, len(time), diff)
}
