// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Temporary files go when nobody has written them for long, wherever writers make them, and nothing else goes.
func TestTidy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with [brackets]")
	mkdir(t, dir)
	mkdir(t, filepath.Join(dir, Folder))
	mkdir(t, filepath.Join(dir, Folder, "one"))
	const young = ".young.0123456789abcdef.tmp"
	names := map[string]bool{ // whether it stays
		".profile.json.00000000000000aa.tmp": false, "shards/one/.shard.json.0123456789abcdef.tmp": false,
		"shards/.control.json.0123456789abcdef.tmp": false,
		"shards/one/shard.json":                     true, "shards/one/0.evt": true, "traces.otf2": true,
		"shards/one/" + young: true,
		"mine.tmp":            true, ".mine.tmp": true,
	}
	for name := range names {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, nil, FileMode))
		if old := time.Now().Add(-time.Hour); filepath.Base(name) != young {
			testkit.Must(t, os.Chtimes(path, old, old))
		}
	}
	Tidy(dir)
	for name, stays := range names {
		_, err := os.Lstat(filepath.Join(dir, name))
		testkit.Check(t, stays == (err == nil), "%s: %v", name, err)
	}
}
