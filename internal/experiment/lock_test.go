// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A lock that was given back is free, also while a child that is just being made still has the file.
func TestUnlockedIsFree(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(filepath.Join(dir, Folder), 0o700))
	hold := testkit.Value(Lock(dir))(t)
	child, err := unix.Dup(openedAs(t, filepath.Join(dir, Folder, UnifyLock))) // as a fork has it
	testkit.Must(t, err)
	defer unix.Close(child)
	_, err = Lock(dir)
	testkit.Require(t, err != nil, "two have the lock")
	hold.Release()
	hold = testkit.Value(Lock(dir))(t)
	hold.Release()
}

// openedAs is the descriptor of this process that has the file open.
func openedAs(t *testing.T, path string) int {
	t.Helper()
	all := testkit.Value(os.ReadDir("/proc/self/fd"))(t)
	for _, e := range all {
		if target, _ := os.Readlink("/proc/self/fd/" + e.Name()); target == path {
			fd := testkit.Value(strconv.Atoi(e.Name()))(t)
			return fd
		}
	}
	t.Fatalf("nobody has %s open", path)
	return -1
}
