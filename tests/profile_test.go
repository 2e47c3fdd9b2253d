// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex/cubextest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Profiles of all recordings' archives are sound, and their sums are those of the reports. That profile mode gives the
// same is tested with the tool (cmd/nccl-otf2/testdata/script/profile.txt).
func TestProfilesOfRecordings(t *testing.T) {
	t.Parallel()
	for _, rec := range recordings(t) {
		t.Run(rec.Name, func(t *testing.T) {
			t.Parallel()
			dir, _ := play(t, rec)
			a := openArchive(t, filepath.Join(dir, "traces.otf2"))
			p, report, err := cubex.FromArchive(a)
			testkit.Must(t, err)
			file := filepath.Join(dir, "profile.cubex")
			testkit.Must(t, p.Write(file, false))
			made := cubextest.Load(t, file)
			made.Sound(t)
			made.Agrees(t, report, tally.Read(a, nil))
			if n := made.Sum("visits", func(c int) bool { return made.Tree(c) != "program" }); n == 0 {
				t.Error("there are no operations")
			}
		})
	}
}
