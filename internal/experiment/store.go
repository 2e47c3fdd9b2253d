// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/flock"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Names of files in an experiment directory and in a shard.
const (
	Folder      = "shards"     // in the experiment directory
	ProcessFile = "shard.json" // in a shard: what is known of the process
	lockFile    = "lock"
	doneFile    = "done"
	UnifyLock   = "unify.lock" // in Folder
	SpoolSuffix = ".spool"     // raw files in Folder
	eventSuffix = ".evt"
	// BacklogFile holds records that the shard's collector has put off, in the format of raw files, until it or another
	// converts them.
	BacklogFile = "backlog" + SpoolSuffix
)

// Shards and control files are readable by their owner only. The archive made of them is a result, see
// regular.Readable.
const (
	FolderMode = 0o700
	FileMode   = 0o600
)

// Store is a shard being written. It is locked while it is open.
type Store struct {
	path    string
	root    *os.Root // the folder itself, wherever its name leads
	lock    *os.File
	above   []string         // folders whose names were changed when it was made
	secured bool             // and these are on the disk
	there   map[string]int64 // event files that are on the disk, with the sizes that they had
	files   *eventFiles

	described int // bytes of shard.json
}

// Create makes the shard <experiment>/shards/<uuid> and locks it. The experiment directory is made if necessary.
// Foreign files in it are neither followed nor overwritten: if the shards folder is a symbolic link, or the shard
// exists, Create fails.
func Create(directory, uuid string) (*Store, error) {
	s := &Store{path: filepath.Join(directory, Folder, uuid), above: foldersAbove(directory)}
	for tries := 3; ; tries-- {
		var err error
		if s.root, err = createFolder(directory, uuid); err == nil {
			break
		}
		// Another process may have tested whether the directory can be made, and removed it again.
		if tries == 0 || !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	s.files = newEventFiles(s.root)
	lock, err := s.createNew(lockFile)
	if err == nil {
		s.lock = lock
		err = takeLock(int(lock.Fd()))
		none := flock.IsUnsupported(err)
		if err == nil || none {
			signLock(lock, !none) // for readers for which the lock is no evidence
			err = nil
		}
	}
	if err != nil {
		s.Remove()
		return nil, fmt.Errorf("lock of shard %s: %w", s.path, err)
	}
	return s, nil
}

// reopen opens a finished shard, whose writer is gone, to replace a file of it.
func reopen(path string) (*Store, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Store{path: path, root: root, above: []string{filepath.Dir(path)}}, nil
}

// createFolder makes the shard's folder and holds it open: later replacements of its name have no effect.
func createFolder(directory, uuid string) (*os.Root, error) {
	shards, err := openShards(directory)
	if err != nil {
		return nil, err
	}
	defer shards.Close()
	if err := shards.Mkdir(uuid, FolderMode); err != nil {
		return nil, err
	}
	return shards.OpenRoot(uuid)
}

// openShards opens the folder of an experiment directory's shards, making missing parts.
func openShards(directory string) (*os.Root, error) {
	if err := os.MkdirAll(directory, regular.Folder); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := root.Mkdir(Folder, FolderMode); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err := root.Lstat(Folder)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s is not a directory itself, but %s", filepath.Join(directory, Folder),
				atomicfile.KindOf(info.Mode()))
		}
	}
	shards, err := root.OpenRoot(Folder)
	if err != nil {
		return nil, err
	}
	info, err := shards.Stat(".")
	if err != nil {
		return nil, errors.Join(err, shards.Close())
	}
	if why := atomicfile.Foreign(info); why != "" {
		return nil,
			errors.Join(fmt.Errorf("%s %s: somebody else could redirect what is written there; name another directory",
				filepath.Join(directory, Folder), why), shards.Close())
	}
	return shards, nil
}

// createNew makes a file that must not exist, not even as a symbolic link.
func (s *Store) createNew(name string) (*os.File, error) {
	return s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR|syscall.O_NOFOLLOW, FileMode)
}

// MaxDescription bounds a shard.json and the files beside it (bytes): 65536 communicator ranks and as many rows of the
// timeline need a quarter.
const MaxDescription = 256 << 20

// takeLock locks the shard, waiting for readers that are just checking for a writer (lookAt).
func takeLock(fd int) error {
	for tries := 100; ; tries-- {
		err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		if tries == 0 || !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Backlog makes the file of records that are put off, which must not exist.
func (s *Store) Backlog() (*os.File, error) {
	if err := s.inPlace(); err != nil {
		return nil, err
	}
	return s.createNew(BacklogFile)
}

// Path is the shard's folder.
func (s *Store) Path() string { return s.path }

// EventFile is the path of a location's event file.
func (s *Store) EventFile(number uint32) string {
	return EventFile(s.path, number)
}

// BeforeEvents sets a function that is called before every write to an event file: definitions must be on disk first.
// Its error becomes one of that file.
func (s *Store) BeforeEvents(f func() error) { s.files.before = f }

// FilesOpened returns how often an event file has been opened so far; at most FilesOpenAtOnce are open at one time.
func (s *Store) FilesOpened() uint64 { return s.files.opened }

// EventBytes returns the total size of the event files.
func (s *Store) EventBytes() uint64 { return s.files.bytes }

// FilesOpenAtOnce returns the largest number of event files that are open at one time, including those that are being
// synced.
func (s *Store) FilesOpenAtOnce() int { return s.files.most + atomicfile.Syncers }

// EventWriter creates a location's event file, which is open only while it is written. Its mode is that of results, as
// it becomes part of the archive under a second name; before that the shard's folder keeps others out.
//
// A patient writer's file is made in the shard's folder wherever it is by now.
func (s *Store) EventWriter(number uint32, opts *otf2.EventWriterOptions) (*otf2.EventWriter, error) {
	name := eventFileName(number)
	patient := opts != nil && opts.Patient != nil
	if err := s.inPlace(); err != nil && !patient {
		return nil, err
	}
	f, err := s.files.create(name, patient)
	if err != nil {
		return nil, err
	}
	w, err := otf2.NewEventWriter(f, opts)
	if err != nil {
		return nil, errors.Join(err, f.Close(), s.root.Remove(name))
	}
	return w, nil
}

func eventFileName(number uint32) string {
	return strconv.FormatUint(uint64(number), 10) + eventSuffix
}

// EventFile is the path of a location's event file in a shard's folder.
func EventFile(shard string, number uint32) string {
	return filepath.Join(shard, eventFileName(number))
}

// EventFiles are the paths of the files in a shard's folder that are named as event files are, also of locations that
// nothing describes.
func EventFiles(shard string) []string { return regular.Matches(shard, "*"+eventSuffix) }

// inPlace checks that the shard's name still leads to the folder that was made: it has not been moved or replaced.
func (s *Store) inPlace() error {
	named, err := os.Lstat(s.path)
	if err != nil {
		return err
	}
	held, err := s.root.Stat(".")
	if err == nil && !os.SameFile(named, held) {
		err = fmt.Errorf("%s is another folder than the one that was made", s.path)
	}
	return err
}

// Gone reports whether the shard's folder is lost for good: it has been removed or replaced.
func (s *Store) Gone() bool {
	held, err := s.root.Stat(".")
	if err != nil {
		return false
	}
	if st, ok := held.Sys().(*syscall.Stat_t); ok && st.Nlink == 0 {
		return true
	}
	named, err := os.Lstat(s.path)
	return err == nil && !os.SameFile(named, held)
}

// Write replaces shard.json as a whole: a reader finds the old or the new one.
func (s *Store) Write(p *description.Process) error {
	p.Serial++
	text, err := p.Encode()
	if err != nil {
		return err
	}
	s.described = len(text)
	return s.replace(ProcessFile, text, atomicfile.Volatile)
}

// Described returns the size of shard.json in bytes.
func (s *Store) Described() int { return s.described }

// rewrite replaces shard.json of a finished shard.
func (s *Store) rewrite(p *description.Process) error {
	p.Serial++
	text, err := p.Encode()
	if err != nil {
		return err
	}
	return s.replace(ProcessFile, text, atomicfile.Durable)
}

// PrepareDescriptions does the one-time work of the first description: analyzing how to encode its parts.
func PrepareDescriptions() { _, _ = new(description.Process).Encode() }

func (s *Store) replace(name string, content []byte, l atomicfile.Lasting) error {
	if err := s.inPlace(); err != nil {
		return err
	}
	return atomicfile.WriteIn(s.root, name, FileMode, content, l)
}

// Close releases the lock.
func (s *Store) Close() error {
	if s.lock == nil {
		return nil
	}
	err := flock.Unlock(s.lock)
	s.lock = nil
	return err
}

// Remove deletes the shard, for a writer that could not begin.
func (s *Store) Remove() error {
	s.Close()
	return os.RemoveAll(s.path)
}

// Remove deletes a shard of an experiment directory, if it exists. It must not be written meanwhile.
func Remove(directory, uuid string) error {
	root, err := os.OpenRoot(filepath.Join(directory, Folder))
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(uuid)
}

// LockLike makes the lock of another file the shard's own: the shard counts as being written while that file is locked.
// The shard must be closed.
func (s *Store) LockLike(file string) error {
	lock := filepath.Join(s.path, lockFile)
	if err := os.Link(file, lock+".new"); err != nil {
		return err
	}
	return os.Rename(lock+".new", lock)
}
