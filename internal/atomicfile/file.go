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

// Lasting says what a file survives once it has its name.
type Lasting bool

const (
	// Volatile files survive the program; after a power cut the old file, the new one, or an empty one is there.
	Volatile Lasting = false
	// Durable files survive a power cut, too: they are on the disk before they have their names, and then the names
	// are.
	Durable Lasting = true
)

// File is being written. It is what it was opened as until Commit.
type File struct {
	*os.File
	root      *os.Root // the folder, held; nil: the file has its name already
	owned     bool     // root is closed with the file
	name      string
	temporary string
	forget    func()
	over      bool
}

// Create begins a file in a folder of ours, of a mode that the umask is taken off. Whatever has the name is replaced by
// Commit.
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

// createIn is Create in a folder that is held open, wherever its name leads by now.
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

// InPlace begins a file that has its name from the beginning, or writes over the one that has it, which others that are
// linked to it see. It is for folders in which nobody looks yet: that is cheaper than a temporary name, where there are
// many files.
func InPlace(path string, mode fs.FileMode) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return nil, err
	}
	return &File{File: f}, nil
}

// Temporaries is the pattern (filepath.Match) of what files that are not whole yet are called.
const Temporaries = ".*.????????????????.tmp"

// temporaryName is hidden, so that patterns for the files of an archive do not match it, and leaves room in what a file
// system allows for a name. Recovery of archives knows it.
func temporaryName(name string) string {
	return fmt.Sprintf(".%.200s.%016x.tmp", name, rand.Uint64())
}

// Commit gives the file its name and closes it. After an error nothing is left behind, and what had the name before has
// it still; with one exception, that the folder cannot be brought to the disk: then the new file is there.
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

// Abandon removes what was written. It does nothing after Commit, so that it can be deferred.
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

// Write replaces a file as a whole, see [Create].
func Write(path string, mode fs.FileMode, content []byte, l Lasting) error {
	f, err := Create(path, mode)
	return f.writeAll(err, content, l)
}

// WriteIn is Write in a folder that is held open.
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
