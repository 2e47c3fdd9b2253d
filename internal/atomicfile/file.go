// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// Lasting is what a committed file survives.
type Lasting bool

const (
	// Volatile files survive the program; after a power failure the old, the new, or an empty file is there.
	Volatile Lasting = false
	// Durable files also survive a power failure: they are synced before they get their names, and so are then the
	// names.
	Durable Lasting = true
)

// File is a file being written. Until Commit its name keeps its old content.
type File struct {
	*os.File
	root      *os.Root // of the folder; nil: the file has its name already
	owned     bool     // root is closed with the file
	name      string
	temporary string
	forget    func()
	over      bool
}

// Create begins a file in one of the program's own folders, with mode less the umask. Commit replaces any file of that
// name.
func Create(path string, mode fs.FileMode) (*File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	f, err := createIn(root, filepath.Base(path), mode)
	if err != nil {
		root.Close()
		return nil, err
	}
	f.owned = true
	return f, nil
}

// createIn is Create in an open folder.
func createIn(root *os.Root, name string, mode fs.FileMode) (*File, error) {
	for tries := 10; ; tries-- {
		temporary := temporaryName(name)
		forget := remember(filepath.Join(root.Name(), temporary))
		f, err := root.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, mode)
		if err == nil {
			return &File{File: f, root: root, name: name, temporary: temporary, forget: forget}, nil
		}
		forget()
		if !errors.Is(err, fs.ErrExist) || tries == 0 {
			return nil, err
		}
	}
}

// InPlace begins a file under its final name, or overwrites the file of that name including its hard links. It is for
// folders without readers yet, where it is cheaper than a temporary name for many files.
func InPlace(path string, mode fs.FileMode) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return nil, err
	}
	return &File{File: f}, nil
}

// Temporaries is the pattern (filepath.Match) of temporary names.
const Temporaries = ".*.????????????????.tmp"

// temporaryName returns a hidden name, which patterns for the files of an archive do not match, within a file system's
// limit for names. The recovery of archives recognizes it.
func temporaryName(name string) string {
	return fmt.Sprintf(".%.200s.%016x.tmp", name, rand.Uint64())
}

// Commit gives the file its name and closes it. After an error no temporary file is left, and the name keeps its old
// content, with one exception: if syncing the folder fails, the new file is there.
func (f *File) Commit(l Lasting) error {
	if f.over {
		return fs.ErrClosed
	}
	if f.root == nil {
		f.over = true
		return f.File.Close()
	}
	var err error
	if l == Durable {
		err = synced(f.File.Sync())
	}
	if err = errors.Join(err, f.File.Close()); err == nil {
		err = f.root.Rename(f.temporary, f.name)
	}
	if err != nil {
		return errors.Join(err, f.Abandon())
	}
	if l == Durable {
		err = syncIn(f.root, ".")
	}
	f.end()
	return err
}

// Abandon removes the temporary file. After Commit it does nothing, so that it can be deferred.
func (f *File) Abandon() error {
	if f.over {
		return nil
	}
	err := f.File.Close()
	if errors.Is(err, fs.ErrClosed) {
		err = nil
	}
	if f.root != nil {
		err = errors.Join(err, f.root.Remove(f.temporary))
	}
	f.end()
	return err
}

func (f *File) end() {
	f.over = true
	if f.forget != nil {
		f.forget()
	}
	if f.owned {
		f.root.Close()
	}
}

// Write replaces a file atomically, see [Create].
func Write(path string, mode fs.FileMode, content []byte, l Lasting) error {
	f, err := Create(path, mode)
	return f.writeAll(err, content, l)
}

// WriteIn is Write in an open folder.
func WriteIn(root *os.Root, name string, mode fs.FileMode, content []byte, l Lasting) error {
	f, err := createIn(root, name, mode)
	return f.writeAll(err, content, l)
}

func (f *File) writeAll(err error, content []byte, l Lasting) error {
	if err != nil {
		return err
	}
	defer f.Abandon()
	if _, err := f.File.Write(content); err != nil {
		return err
	}
	return f.Commit(l)
}
