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

// Output begins what a user asked to be written to a name, see the package. A mode that the umask is taken off is that
// of a new regular file.
func Output(path string, mode fs.FileMode) (*File, error) {
	target, through, err := destination(path, false)
	if err != nil {
		return nil, err
	}
	if !through {
		return Create(target, mode)
	}
	// What /dev/stdout leads to may be a file that has something in it already.
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_APPEND|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	return &File{File: f}, nil
}

// OutputFile is Output for profiles, which can only be written to a regular file: where the name stands for anything
// else nothing is written, and that stays as it is.
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

// mostLinks is how many links may lead from one to the next; the kernel follows as many.
const mostLinks = 40

// destination follows a user's name to the one that is to be written. through says that it stands for something that
// cannot be replaced: written to is what is there. Data is replaced by nothing, see refuseData.
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

// KindOf names what stands at a path, with its article: "a symbolic link", "a folder", "a file", "a special file".
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

// descriptors says that a folder is /proc's: the links in it are open files and what they read as need be no name of
// these.
func descriptors(dir string) bool {
	const procfs = 0x9fa0
	var st syscall.Statfs_t
	return syscall.Statfs(dir, &st) == nil && st.Type == procfs
}
