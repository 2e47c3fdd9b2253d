// SPDX-License-Identifier: Apache-2.0

package regular

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A folder may be called as patterns are: "[1]" is no set of one digit, and what another folder holds that the pattern
// would match is not its.
func TestMatchesTakesTheFolderAsItIsCalled(t *testing.T) {
	for _, name := range []string{"plain", "job[1]", "a*b?", `back\slash`} {
		folder := filepath.Join(t.TempDir(), name)
		for _, dir := range []string{folder, filepath.Join(folder, "run-2"),
			filepath.Join(filepath.Dir(folder), "job1"), filepath.Join(filepath.Dir(folder), "aXbY")} {
			testkit.Must(t, os.MkdirAll(dir, Folder))
			testkit.Write(t, filepath.Join(dir, "x.spool"), nil)
		}
		got, want := Matches(folder, "*.spool"), []string{filepath.Join(folder, "x.spool")}
		testkit.Check(t, slices.Equal(got, want), "%s: %q, want %q", name, got, want)
		got, want = Matches(folder, "run-*/x.*"), []string{filepath.Join(folder, "run-2", "x.spool")}
		testkit.Check(t, slices.Equal(got, want), "%s: %q, want %q", name, got, want)
	}
	got := Matches(filepath.Join(t.TempDir(), "nowhere"), "*")
	testkit.Check(t, len(got) == 0, "of no folder: %q", got)
}
