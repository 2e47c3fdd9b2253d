// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"container/list"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mostOpenFiles is how many event files of a shard are open at a time; a quarter of the process's descriptors if these
// are few.
const mostOpenFiles = 64

// eventFiles are the event files of a shard being written: any number of them, of which the most recently written are
// open.
type eventFiles struct {
	root *os.Root
	most int
	open *list.List // *eventFile, the most recently used one in front

	opened uint64       // how often a file has been opened
	bytes  uint64       // in all of them
	before func() error // called before a write to any of them; may be nil
}

func newEventFiles(root *os.Root) *eventFiles {
	most := mostOpenFiles
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		most = int(max(1, min(uint64(most), limit.Cur/4)))
	}
	return &eventFiles{root: root, most: most, open: list.New()}
}

// create makes an event file, which must not exist, not even as a symbolic link. A patient one need not be made at
// once: every use of it retries what failed before.
func (s *eventFiles) create(name string, patient bool) (*eventFile, error) {
	f := &eventFile{of: s, name: name, patient: patient}
	if err := f.openAs(os.O_CREATE | os.O_EXCL); errors.Is(err, os.ErrExist) || err != nil && !patient {
		return nil, err
	}
	return f, nil
}

// eventFile is an otf2.File that is open while it is used.
type eventFile struct {
	of      *eventFiles
	name    string
	file    *os.File // nil: closed
	made    bool
	patient bool // an error is not final
	place   *list.Element
	broken  error // error of a close meanwhile: data may be lost
	begun   bool  // the empty file has been written
	size    int64
}

// openAs opens the file, closing the least recently used ones for it. Where other files share the descriptors it closes
// more.
func (f *eventFile) openAs(flags int) error {
	s := f.of
	for {
		for s.open.Len() >= s.most {
			s.closeOldest()
		}
		file, err := s.root.OpenFile(f.name, os.O_WRONLY|syscall.O_NOFOLLOW|flags, 0o644)
		if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && s.open.Len() > 0 {
			s.closeOldest()
			continue
		}
		if err != nil {
			return err
		}
		s.opened++
		f.made = true
		f.file, f.place = file, s.open.PushFront(f)
		return nil
	}
}

func (s *eventFiles) closeOldest() {
	oldest := s.open.Back().Value.(*eventFile)
	oldest.broken = oldest.closeFile()
}

func (f *eventFile) closeFile() error {
	f.of.open.Remove(f.place)
	err := f.file.Close()
	f.file, f.place = nil, nil
	return err
}

// ensureOpen makes the file ready to be used.
func (f *eventFile) ensureOpen() error {
	switch {
	case f.broken != nil:
		err := f.broken
		if f.patient { // its size decides
			f.broken = nil
		}
		return err
	case f.file == nil && !f.made:
		return f.openAs(os.O_CREATE) // a failed attempt may have made it
	case f.file == nil:
		return f.openAs(0)
	}
	f.of.open.MoveToFront(f.place)
	return nil
}

func (f *eventFile) WriteAt(b []byte, off int64) (int, error) {
	if f.begun && f.of.before != nil {
		if err := f.of.before(); err != nil {
			return 0, err
		}
	}
	if err := f.ensureOpen(); err != nil {
		return 0, err
	}
	f.begun = true
	n, err := f.file.WriteAt(b, off)
	if err != nil && f.patient {
		_ = f.closeFile() // the descriptor is useless, as on a remounted file system (ESTALE)
	}
	if end := off + int64(n); end > f.size {
		f.of.bytes += uint64(end - f.size)
		f.size = end
	}
	return n, err
}

func (f *eventFile) Truncate(size int64) error {
	if err := f.ensureOpen(); err != nil {
		return err
	}
	err := f.file.Truncate(size)
	if err == nil && size < f.size {
		f.of.bytes -= uint64(f.size - size)
		f.size = size
	}
	return err
}

func (f *eventFile) Sync() error {
	if err := f.ensureOpen(); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f *eventFile) Close() error {
	if f.file == nil {
		return f.broken
	}
	return f.closeFile()
}
