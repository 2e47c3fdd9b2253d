// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// FuzzCheck: whatever stands in an archive's definitions and in one location's events, the checks come to an end.
func FuzzCheck(f *testing.F) {
	from := filepath.Join("..", "..", "tests", "jobtest", "testdata", "scalasca-min")
	var files [2][]byte
	names := [2]string{"traces.def", filepath.Join("traces", "1.evt")}
	for i, name := range names {
		b := testkit.Read(f, filepath.Join(from, name))
		files[i] = b
	}
	f.Add(files[0], files[1])
	for _, n := range []int{0, 9, 60, 100} {
		f.Add(files[0][:n], files[1])
		f.Add(files[0], files[1][:n])
	}
	f.Fuzz(func(t *testing.T, defs, events []byte) {
		dir := t.TempDir()
		testkit.Must(t, os.CopyFS(dir, os.DirFS(from)))
		for i, b := range [][]byte{defs, events} {
			path := filepath.Join(dir, names[i])
			testkit.Must(t, os.Remove(path))
			testkit.Write(t, path, b)
		}
		_, _ = check.Archive(filepath.Join(dir, "traces.otf2"), nil) // an error is an answer, too
	})
}
