// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"ncclotf2/regular"
)

// sink is what an event writer needs of a file.
type sink interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// memoryFile is a sink in memory.
type memoryFile struct{ data []byte }

func (m *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	end := int(off) + len(p)
	if end > len(m.data) {
		m.data = append(m.data, make([]byte, end-len(m.data))...)
	}
	return copy(m.data[off:], p), nil
}

func (m *memoryFile) Truncate(size int64) error {
	if size < int64(len(m.data)) {
		m.data = m.data[:size]
	}
	return nil
}

func (m *memoryFile) Sync() error  { return nil }
func (m *memoryFile) Close() error { return nil }

// patientFile is a sink whose file is made and opened when it is written to, again after each error: an open file can become
// useless for good, as on a file system that comes back from somewhere else (ESTALE).
type patientFile struct {
	path   string
	opener func(path string, flag int, mode fs.FileMode) (*os.File, error) // nil: os.OpenFile
	file   *os.File                                                        // nil: it is not open
	tried  bool                                                            // to make it
	made   bool
}

func (p *patientFile) open() error {
	if p.file != nil {
		return nil
	}
	// An attempt that failed may have made it all the same.
	flags := os.O_WRONLY | syscall.O_NOFOLLOW
	switch {
	case !p.tried:
		flags |= os.O_CREATE | os.O_EXCL
	case !p.made:
		flags |= os.O_CREATE
	}
	p.tried = true
	opener := p.opener
	if opener == nil {
		opener = os.OpenFile
	}
	file, err := opener(p.path, flags, 0o644)
	if err != nil {
		return err
	}
	p.file, p.made = file, true
	return nil
}

// done lets go of a file with which something is amiss.
func (p *patientFile) done(err error) error {
	if err != nil && p.file != nil {
		p.file.Close()
		p.file = nil
	}
	return err
}

func (p *patientFile) WriteAt(b []byte, off int64) (int, error) {
	if err := p.open(); err != nil {
		return 0, err
	}
	n, err := p.file.WriteAt(b, off)
	return n, p.done(err)
}

func (p *patientFile) Truncate(size int64) error {
	if err := p.open(); err != nil {
		return err
	}
	return p.done(p.file.Truncate(size))
}

func (p *patientFile) Sync() error {
	if err := p.open(); err != nil {
		return err
	}
	return p.done(p.file.Sync())
}

func (p *patientFile) rest() error {
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	return err
}

func (p *patientFile) Close() error { return p.rest() }

// atomicFile is written under a temporary name and appears under its own when it is complete, so that a reader
// sees the old file or the new one, and an older file that is linked elsewhere stays as it is.
type atomicFile struct {
	*os.File
	path string
}

func createAtomic(path string) (*atomicFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(regular.Readable()); err != nil { // CreateTemp's 0600 would lock the owner's colleagues out
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return &atomicFile{f, path}, nil
}

// commit closes the file and gives it its name; after an error nothing is left behind.
func (f *atomicFile) commit() error {
	err := f.Close()
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// abandon removes what was written and returns err.
func (f *atomicFile) abandon(err error) error {
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
