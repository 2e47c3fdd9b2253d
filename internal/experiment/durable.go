// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
)

// Files beside shard.json that describe the shard at an earlier time.
const (
	// CheckpointFile is the description at the last flush: all files that it describes had been handed to the system.
	CheckpointFile = "checkpoint.json"
	// durableFile is the description at a moment when all files that it describes were on the disk, and so is it. At
	// the end it equals shard.json.
	durableFile = "durable.json"
)

// Checkpoint is a shard's description at a moment when all files that it describes had been handed to the system.
type Checkpoint struct {
	store *Store
	text  []byte
	// Sizes are the event files' sizes at that time (bytes), by number.
	Sizes map[uint32]int64
}

// Describe makes a checkpoint of a description, without a file.
func (s *Store) Describe(p *description.Process) (*Checkpoint, error) {
	text, err := p.Encode()
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{store: s, text: text, Sizes: make(map[uint32]int64, len(p.Locations))}
	for i := range p.Locations {
		c.Sizes[p.Locations[i].Number] = p.Locations[i].Bytes
	}
	return c, nil
}

// Checkpoint replaces checkpoint.json.
func (s *Store) Checkpoint(p *description.Process) (*Checkpoint, error) {
	c, err := s.Describe(p)
	if err != nil {
		return nil, err
	}
	return c, s.replace(CheckpointFile, c.text, atomicfile.Volatile)
}

// Secure syncs the files that the checkpoint describes, then the checkpoint: after it the shard survives a power cut in
// this state. Event files whose sizes equal those in before are synced already; others are files elsewhere that belong
// to the shard; profile is the shard's profile in profile mode (nil: none). It may run beside the shard's writer, in
// one goroutine at a time.
func (c *Checkpoint) Secure(before map[uint32]int64, profile []byte, others ...string) error {
	s := c.store
	if err := s.inPlace(); err != nil {
		return err
	}
	var names []string
	for number, size := range c.Sizes {
		if size > 0 && size != before[number] {
			names = append(names, eventFileName(number))
		}
	}
	if profile != nil {
		names = nil // no names
		if err := s.replace(durableProfile, profile, atomicfile.Durable); err != nil {
			return err
		}
	}
	if err := atomicfile.SyncFiles(s.root, names); err != nil {
		return err
	}
	for _, other := range others {
		if err := atomicfile.SyncFile(other); err != nil {
			return err
		}
	}
	if err := s.secureNames(); err != nil {
		return err
	}
	if err := s.replace(durableFile, c.text, atomicfile.Durable); err != nil {
		return err
	}
	s.there = make(map[string]int64, len(c.Sizes))
	for number, size := range c.Sizes {
		s.there[eventFileName(number)] = size
	}
	return nil
}

// secureNames syncs the names in the shard and, once, those of the folders that lead to it.
func (s *Store) secureNames() error {
	if err := atomicfile.SyncRoot(s.root); err != nil {
		return err
	}
	if s.secured {
		return nil
	}
	own, err := s.root.Stat(".")
	if err != nil {
		return err
	}
	for _, folder := range s.above {
		if info, err := os.Stat(folder); err == nil && deviceOf(info) != deviceOf(own) {
			break // a mount point existed before
		}
		// A folder that may be passed and not be read cannot be brought to the disk; it was there before.
		if err := atomicfile.SyncFolder(folder); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	s.secured = true
	return nil
}

func deviceOf(info fs.FileInfo) uint64 {
	st, _ := info.Sys().(*syscall.Stat_t)
	return uint64(st.Dev)
}

// foldersAbove returns the folders whose entries change when a shard of an experiment directory is made: all parents up
// to the mount point, because another process may just have made any of them.
func foldersAbove(directory string) []string {
	folders := []string{filepath.Join(directory, Folder), directory}
	for path := directory; path != filepath.Dir(path); {
		path = filepath.Dir(path)
		folders = append(folders, path)
	}
	return folders
}

// Finish syncs everything in the shard that no checkpoint has synced, and puts the done marker in place. Nothing may be
// written afterwards.
func (s *Store) Finish() error {
	if err := s.inPlace(); err != nil {
		return err
	}
	if err := s.sync(); err != nil {
		return err
	}
	return s.replace(doneFile, nil, atomicfile.Durable)
}

func (s *Store) sync() error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		switch name := e.Name(); {
		case !e.Type().IsRegular():
		case name == ProcessFile || name == profileFile:
			names = append(names, name)
		case filepath.Ext(name) == eventSuffix:
			if info, err := e.Info(); err != nil || info.Size() != s.there[name] {
				names = append(names, name)
			}
		}
	}
	return errors.Join(atomicfile.SyncFiles(s.root, names), s.secureNames())
}

// Rewind makes a checkpoint the description of a shard that is not written any more.
func Rewind(path string, p *description.Process) error {
	s, err := reopen(path)
	if err != nil {
		return err
	}
	defer s.root.Close()
	text, err := p.Encode()
	if err != nil {
		return err
	}
	return s.replace(ProcessFile, text, atomicfile.Volatile)
}

// Sync syncs a shard in its current state. It must not be written meanwhile.
func Sync(path string) error {
	s, err := reopen(path)
	if err != nil {
		return err
	}
	defer s.root.Close()
	err = s.sync()
	if _, missing := s.root.Lstat(BacklogFile); missing == nil {
		err = errors.Join(err, atomicfile.SyncFiles(s.root, []string{BacklogFile}))
	}
	return err
}
