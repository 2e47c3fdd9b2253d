// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// MakeFolder makes the folder for results, with its parents, or reuses an existing one. As with files, a symbolic link
// must belong to this user or root. A folder in which others could replace files (see Foreign) and a folder in data
// (see Output) are refused.
func MakeFolder(path string) error {
	if err := RefuseFolder(path); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(path, regular.Folder); err != nil {
			return err
		}
		info, err = os.Lstat(path) // another process may have made it meanwhile
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if err := RefuseOthers(path, info); err != nil {
			return err
		}
		if info, err = os.Stat(path); err != nil {
			return err
		}
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "use", Path: path, Err: syscall.ENOTDIR}
	}
	if why := Foreign(info); why != "" {
		return fmt.Errorf("%s %s, who could exchange what is written there: name another folder", path, why)
	}
	return nil
}

// Foreign returns why others can rename and remove files in a folder; "" if they cannot. In a sticky folder such as
// /tmp nobody can remove the files of others.
func Foreign(info fs.FileInfo) string {
	const othersWrite = 0o022
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return fmt.Sprintf("belongs to user %d", st.Uid)
	case info.Mode().Perm()&othersWrite != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Sprintf("can be written by others (mode %#o)", info.Mode().Perm())
	}
	return ""
}

// RefuseOthers returns an error if a link or a special file belongs neither to this user nor to root.
func RefuseOthers(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is %s of user %d, who could redirect it anywhere: give another file", path,
			KindOf(info.Mode()), st.Uid)
	}
	return nil
}
