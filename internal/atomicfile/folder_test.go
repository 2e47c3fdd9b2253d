// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A folder for results is made, reused, or refused where others could exchange what is written there.
func TestFoldersOfResults(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "a", "b")
	for range 2 {
		testkit.Must(t, MakeFolder(folder))
	}
	for mode, allowed := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o777: false, 0o775: false,
		0o777 | os.ModeSticky: true} {
		testkit.Must(t, os.Chmod(folder, mode))
		err := MakeFolder(folder)
		testkit.Check(t, allowed == (err == nil) &&
			(err == nil || strings.Contains(err.Error(), "can be written by others")), "%v: %v", mode, err)
	}
	testkit.Must(t, errors.Join(os.Chmod(folder, 0o755), os.Symlink(folder, filepath.Join(dir, "link")),
		os.Symlink("nowhere", filepath.Join(dir, "dangling")),
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)))
	err := MakeFolder(filepath.Join(dir, "link"))
	testkit.Check(t, err == nil, "a link of this user: %v", err)
	for _, name := range []string{"file", "dangling"} {
		testkit.Check(t, MakeFolder(filepath.Join(dir, name)) != nil, "%s is taken for a folder", name)
	}
	t.Run("another user's", func(t *testing.T) {
		need.Root(t, "give folders and links away")
		testkit.Must(t, os.Lchown(filepath.Join(dir, "link"), 65534, 65534))
		err := MakeFolder(filepath.Join(dir, "link"))
		testkit.Check(t, err != nil && strings.Contains(err.Error(), "a symbolic link of user 65534"), "a link: %v",
			err)
		testkit.Must(t, os.Chown(folder, 65534, 65534))
		err = MakeFolder(folder)
		testkit.Check(t, err != nil && strings.Contains(err.Error(), "belongs to user 65534"), "a folder: %v", err)
		testkit.Must(t, os.Symlink(folder, filepath.Join(dir, "mine")))
		err = MakeFolder(filepath.Join(dir, "mine"))
		testkit.Check(t, err != nil && strings.Contains(err.Error(), "belongs to user 65534"),
			"a folder that an own link leads to: %v", err)
	})
}
