// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Of many that ask at one time one is the first, of each job.
func TestFirstToAnnounce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "experiment")
	for _, job := range []string{"12.0", "12.0.1"} {
		var asking sync.WaitGroup
		var first atomic.Int32
		for range 16 {
			asking.Go(func() {
				if FirstToAnnounce(dir, job) {
					first.Add(1)
				}
			})
		}
		asking.Wait()
		testkit.Check(t, first.Load() == 1, "%s: %d are the first", job, first.Load())
	}
	list, err := List(dir)
	testkit.Check(t, err == nil && len(list) == 0, "shards: %v, %v", list, err)
	// What somebody has put there is not followed.
	target, unharmed := victim(t)
	link(t, target, filepath.Join(dir, Folder, "13.0"+announcedSuffix))
	testkit.Check(t, !FirstToAnnounce(dir, "13.0"), "the first behind a link")
	unharmed()
	testkit.Must(t, os.RemoveAll(dir))
	link(t, filepath.Dir(target), dir)
	testkit.Must(t, os.Symlink(".", filepath.Join(dir, Folder)))
	testkit.Check(t, !FirstToAnnounce(dir, "12.0"), "the first in a folder behind a link")
}
