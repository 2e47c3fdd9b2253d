// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Output begins the output to a name from the user, see the package. A new regular file gets mode less the umask.
func Output(path string, mode fs.FileMode) (*File, error) {
	target, through, err := destination(path, false)
	if err != nil {
		return nil, err
	}
	if !through {
		return Create(target, mode)
	}
	// /dev/stdout may lead to a file with content.
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_APPEND|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	return &File{File: f}, nil
}

// OutputFile is Output for profiles, which need a regular file: for any other kind it returns an error and writes
// nothing.
func OutputFile(path string, mode fs.FileMode) (*File, error) {
	target, through, err := destination(path, true)
	if err != nil {
		return nil, err
	}
	if through {
		return nil, fmt.Errorf("%s is not a regular file, so it is not overwritten: name another file", target)
	}
	return Create(target, mode)
}

// mostLinks is the greatest number of links followed, as in the kernel.
const mostLinks = 40

// destination resolves a user's name to the file to write. through reports that it cannot be replaced and is written to
// in place. An error prevents that data is replaced, see refuseData.
func destination(path string, profile bool) (target string, through bool, err error) {
	named := path
	for range mostLinks {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode().IsRegular():
			return path, false, refuseData(path, profile)
		case err != nil:
			return "", false, err
		}
		if err := RefuseOthers(path, info); err != nil {
			return "", false, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return path, true, nil
		}
		dir, _ := filepath.Split(path)
		if dir, err = filepath.EvalSymlinks(filepath.Join(dir, ".")); err != nil {
			return "", false, err
		}
		if descriptors(dir) {
			return path, true, nil
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", false, err
		}
		if path = to; !filepath.IsAbs(to) {
			path = dir + "/" + to
		}
	}
	return "", false, &fs.PathError{Op: "open", Path: named, Err: syscall.ELOOP}
}

// KindOf names the kind of a file with its article: "a symbolic link", "a folder", "a file", "a special file".
func KindOf(m fs.FileMode) string {
	switch m.Type() {
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeDir:
		return "a folder"
	case 0:
		return "a file"
	}
	return "a special file"
}

// descriptors reports whether a folder is in /proc: the links there are open files, and their targets need not be names
// of these.
func descriptors(dir string) bool {
	const procfs = 0x9fa0
	var st syscall.Statfs_t
	return syscall.Statfs(dir, &st) == nil && st.Type == procfs
}
