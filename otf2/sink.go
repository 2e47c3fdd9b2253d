// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"io"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// File is what an event writer needs of its file. It need not be open all the time.
type File interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// memoryFile is a File in memory.
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

// atomicFile is written under a temporary name and appears under its own when it is complete, so that a reader
// sees the old file or the new one, and an older file that is linked elsewhere stays as it is. Whoever makes an archive
// brings its files to the disk, all at once.
type atomicFile struct {
	*atomicfile.File
	path string
}

func createAtomic(path string) (*atomicFile, error) {
	f, err := atomicfile.Create(path, regular.File)
	if err != nil {
		return nil, err
	}
	return &atomicFile{f, path}, nil
}

// createInPlace creates a file in a folder without readers, or overwrites an existing one.
func createInPlace(path string) (*atomicFile, error) {
	f, err := atomicfile.InPlace(path, regular.File)
	if err != nil {
		return nil, err
	}
	return &atomicFile{f, path}, nil
}

// commit closes the file and gives it its name; after an error nothing is left behind.
func (f *atomicFile) commit() error { return f.Commit(atomicfile.Volatile) }

// abandon removes what was written and returns err.
func (f *atomicFile) abandon(err error) error { return errors.Join(err, f.Abandon()) }
