// SPDX-License-Identifier: Apache-2.0

package rawfiles

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Directories of jobs may have brackets in their names, as arrays of jobs do: their raw files are found all the same.
func TestRawFilesOfADirectoryWithBrackets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "job[7]")
	shards := filepath.Join(dir, experiment.Folder)
	testkit.Must(t, os.MkdirAll(shards, experiment.FolderMode))
	want := []string{filepath.Join(shards, "a"+experiment.SpoolSuffix), filepath.Join(shards, "b"+experiment.SpoolSuffix)}
	for _, path := range want {
		testkit.Write(t, path, nil)
	}
	testkit.Write(t, filepath.Join(shards, "c"+experiment.SpoolSuffix+".done"), nil)
	testkit.Write(t, experiment.EventFile(shards, 12), nil)
	got := Find(dir)
	testkit.Check(t, slices.Equal(got, want), "raw files %q, want %q", got, want)
	got = experiment.EventFiles(shards)
	testkit.Check(t, slices.Equal(got, []string{filepath.Join(shards, "12.evt")}), "event files %q", got)
}
