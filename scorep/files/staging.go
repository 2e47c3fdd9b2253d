// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// Staging is a folder in which an archive is built before it replaces another one.
type Staging struct {
	Path string
	held *atomicfile.Pending
	keep bool // do not remove it: its content exists nowhere else
}

// NewStaging creates a staging folder with a unique name in dir.
func NewStaging(dir string) (*Staging, error) {
	path, err := os.MkdirTemp(dir, "."+ArchiveName+"-")
	if err != nil {
		return nil, err
	}
	return &Staging{Path: path, held: atomicfile.Temporary(path)}, nil
}

// stage creates a staging folder at path, and removes an abandoned one. The caller must have locked the directory.
func stage(path string) (*Staging, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	s := &Staging{Path: path, held: atomicfile.Temporary(path)}
	if err := os.Mkdir(path, regular.Folder); err != nil {
		s.held.Forget()
		return nil, err
	}
	return s, nil
}

// StageArchive creates a staging folder for the archive of dir, with a folder for event files.
func StageArchive(dir string) (s *Staging, events string, err error) {
	if s, err = stage(filepath.Join(dir, NewDir)); err != nil {
		return nil, "", err
	}
	events = filepath.Join(s.Path, ArchiveName)
	if err := os.Mkdir(events, regular.Folder); err != nil {
		s.Discard()
		return nil, "", err
	}
	return s, events, nil
}

// Discard removes the folder with its content. It may be called after Replace.
func (s *Staging) Discard() {
	if !s.keep {
		_ = os.RemoveAll(s.Path)
	}
	s.held.Forget()
}

// Parts lists the suffixes of an archive's files in the order in which they are moved into place. The anchor comes
// last: an archive exists once its anchor does.
var Parts = []string{"", ".def", ".marker", anchorSuffix}

const anchorSuffix = ".otf2"

// Replace syncs the complete archive in the folder to disk, and moves it into dir in place of the one there, if any.
// Both must be on the same file system. Meanwhile dir has no anchor, so that readers never see old definitions with new
// events.
//
// After an error either the old or the new archive is complete in its place, as the error states. The exception is a
// file system that refuses to undo moves: then there is no anchor, and no file has been removed.
func (s *Staging) Replace(dir string) error {
	if err := atomicfile.SyncTree(s.Path); err != nil {
		return fmt.Errorf("bring the archive to the disk: %w", err)
	}
	old := filepath.Join(s.Path, "old")
	if err := os.Mkdir(old, regular.Folder); err != nil {
		return err
	}
	return s.held.Uninterrupted(func() error { return s.exchange(old, dir) })
}

func (s *Staging) exchange(old, dir string) error {
	var done moves
	at := func(folder, suffix string) string { return filepath.Join(folder, ArchiveName+suffix) }
	_, none := os.Lstat(at(dir, anchorSuffix))
	had := none == nil
	err := done.move(at(dir, anchorSuffix), at(old, anchorSuffix))
	if err == nil && had {
		err = atomicfile.SyncFolder(dir) // a power failure must not leave the old anchor with new files
	}
	for _, suffix := range Parts {
		if err == nil && suffix != anchorSuffix {
			err = done.move(at(dir, suffix), at(old, suffix))
		}
		if err == nil && suffix == anchorSuffix {
			err = atomicfile.SyncFolder(dir)
		}
		if err == nil {
			err = done.move(at(s.Path, suffix), at(dir, suffix))
		}
	}
	if err == nil {
		if err = atomicfile.SyncFolder(dir); err != nil {
			err = fmt.Errorf("the new archive is in its place, but may not survive a power cut: %w", err)
		}
		return err
	}
	err = fmt.Errorf("put the archive in place: %w", err)
	if back := done.undo(); back != nil {
		s.keep = true
		return fmt.Errorf(
			"%w; putting the earlier one back failed, too: %w: there is no archive now; its files, old and new, are "+
				"in %s and %s", err, back, dir, s.Path)
	}
	_ = atomicfile.SyncFolder(dir)
	if had {
		return fmt.Errorf("%w; the earlier archive is in its place, as it was", err)
	}
	return fmt.Errorf("%w; there is no archive, as before", err)
}

// Rename is a variable so that tests can simulate a failing disk.
var Rename = os.Rename

// moves lists completed renames: old path, new path.
type moves [][2]string

// move renames a file if it exists.
func (m *moves) move(from, to string) error {
	err := Rename(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		*m = append(*m, [2]string{from, to})
	}
	return err
}

// undo retries for more than a second in all: a temporary error must not cost the archive.
const (
	FirstUndoPause = 10 * time.Millisecond
	undoTries      = 8 // each waits twice as long as the one before
)

// UndoPause is a variable so that tests can shorten it.
var UndoPause = FirstUndoPause

// undo reverts the moves, the last one first.
func (m moves) undo() error {
	tries, pause := undoTries, UndoPause
	for i := len(m) - 1; i >= 0; i-- {
		for err := Rename(m[i][1], m[i][0]); err != nil; err = Rename(m[i][1], m[i][0]) {
			if tries--; tries == 0 {
				return err
			}
			time.Sleep(pause)
			pause *= 2
		}
	}
	return nil
}
