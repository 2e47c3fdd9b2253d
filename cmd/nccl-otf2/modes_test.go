// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Results can be read by whom the umask lets; what steers a recording, and the shards, are their owner's alone.
func TestModes(t *testing.T) {
	dir := wholeJob(t)
	tool(t, "timeline", dir)
	umask := fs.FileMode(unix.Umask(0o022))
	unix.Umask(int(umask))
	for name, want := range map[string]fs.FileMode{
		"traces.otf2": 0o644, "traces.def": 0o644, "traces": 0o755, "traces/0.def": 0o644, "profile.cubex": 0o644,
		"timeline.html": 0o644,
		"shards":        0o700, "shards/p0/shard.json": 0o600, "shards/unify.lock": 0o600,
	} {
		st := testkit.Value(os.Stat(filepath.Join(dir, name)))(t)
		testkit.Equal(t, st.Mode().Perm(), want&^umask, "%s", name)
	}
}

// What somebody else has locked away is not called missing.
func TestPermissionDenied(t *testing.T) {
	need.Root(t, "become somebody else")
	dir := wholeJob(t)
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		testkit.Must(t, os.Chmod(d, 0o755))
	}
	testkit.Must(t, os.Chmod(dir, 0o700))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	testkit.Must(t, unix.Setfsuid(65534))
	_, err := anchorPath(dir)
	testkit.Must(t, unix.Setfsuid(0))
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "permission denied") &&
		!strings.Contains(err.Error(), "no archive"), "%v", err)
}
