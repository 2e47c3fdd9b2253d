// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/scorep/files"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// failing makes the n-th rename that puts an archive in place fail, and so many in all, from there on. It returns how
// many there were.
func failing(t *testing.T, n, times int) (count *int) {
	t.Helper()
	count = new(int)
	files.Rename = func(from, to string) error {
		if *count++; *count >= n && *count < n+times {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EIO}
		}
		return os.Rename(from, to)
	}
	t.Cleanup(func() { files.Rename = os.Rename })
	return count
}

// files are the paths below a folder, without those of shards.
func filesBelow(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "/shards/") {
			all = append(all, path)
		}
		return err
	})
	testkit.Must(t, err)
	return all
}

// Whatever rename of the last ones fails, and some of those that take back what was done: the archive that was there is
// there, as it was; or, where it cannot be brought back at all, none, and every file is there yet. Unify makes it anew
// from there.
func TestADiskThatFailsLeavesAnArchive(t *testing.T) {
	files.UndoPause = time.Microsecond
	t.Cleanup(func() { files.UndoPause = files.FirstUndoPause })
	for _, times := range []int{1, 2, 5, math.MaxInt32} {
		forever := times == math.MaxInt32
		n := 1
		for ; ; n++ {
			dir := t.TempDir()
			procs := job(t, dir, 2, 1, nil)
			for _, p := range procs {
				p.Flush()
			}
			old := unify(t, dir, nil).Runs[0] // with markers
			finish(procs)
			anchor := filepath.Join(dir, "traces.otf2")
			before := len(filesBelow(t, dir))

			count := failing(t, n, times)
			res, err := Unify(dir, nil)
			files.Rename = os.Rename
			if err == nil {
				testkit.Require(t, *count < n && res.Runs[0].Complete, "no error of %d renames: %+v", *count, res)
				break
			}
			_, missing := os.Stat(anchor)
			switch said := err.Error(); {
			case strings.Contains(said, "the earlier archive is in its place, as it was"):
				accept(t, anchor)
				events := uint64(0)
				a := open(t, anchor)
				for _, l := range a.Defs.Locations {
					for _, err := range a.EventsOf(l.Self) {
						testkit.Check(t, err == nil, "%v", err)
						events++
					}
				}
				testkit.Check(t, events == old.Events && (!forever || n <= 1),
					"rename %d, %d times: %d events, of %d before", n, times, events, old.Events)
				testkit.Equal(t, len(filesBelow(t, dir)), before, "rename %d: files", n)
			case strings.Contains(said, "there is no archive now"):
				testkit.Check(t, forever && missing != nil, "rename %d: %v, anchor: %v", n, err, missing)
				if got := len(filesBelow(t, dir)); got < 2*before-2 { // shards/unify.lock is no part of an archive
					t.Errorf("rename %d: %d files, %d before", n, got, before)
				}
			default:
				t.Errorf("rename %d: %v", n, err)
			}
			res = unify(t, dir, nil)
			testkit.Check(t, res.Runs[0].Complete, "rename %d: made anew: %+v", n, res)
			accept(t, anchor)
			_, err = os.Stat(filepath.Join(dir, files.NewDir))
			testkit.Check(t, err != nil, "rename %d: %s is left behind", n, files.NewDir)
		}
		testkit.Check(t, n >= 6, "only %d renames", n-1)
	}
}
