// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
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
	// BacklogFile holds records that the shard's collector has put off, as raw files do, until it or another makes
	// events of them.
	BacklogFile = "backlog" + SpoolSuffix
)

// What is in a shard, and what steers the recording, is its owner's. The archive made of it is a result, see
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

// Create makes the shard <experiment>/shards/<uuid> and locks it. The experiment directory is made if
// it is not there. In it nothing that somebody else has put there is followed or overwritten: if the
// shards folder is a symbolic link, or the shard is there already, the error tells so.
func Create(directory, uuid string) (*Store, error) {
	s := &Store{path: filepath.Join(directory, Folder, uuid), above: foldersAbove(directory)}
	for tries := 3; ; tries-- {
		var err error
		if s.root, err = createFolder(directory, uuid); err == nil {
			break
		}
		// Somebody may have tried whether the directory can be made, and removed it again.
		if tries == 0 || !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	s.files = newEventFiles(s.root)
	lock, err := s.createNew(lockFile)
	if err == nil {
		s.lock = lock
		err = takeLock(int(lock.Fd()))
		none := NoLocks(err)
		if err == nil || none {
			sign(lock, !none) // for readers whom the lock does not tell
			err = nil
		}
	}
	if err != nil {
		s.Remove()
		return nil, fmt.Errorf("lock of shard %s: %w", s.path, err)
	}
	return s, nil
}

// reopen holds a finished shard, whose writer is gone, to replace a file of it.
func reopen(path string) (*Store, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Store{path: path, root: root, above: []string{filepath.Dir(path)}}, nil
}

// createFolder makes the shard's folder and holds it open: from here on no name that somebody puts in its place
// matters.
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

// openShards holds the folder of an experiment directory's shards open, and makes what is not there of it.
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

// createNew makes a file that is not there yet, not even as a symbolic link to somewhere.
func (s *Store) createNew(name string) (*os.File, error) {
	return s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR|syscall.O_NOFOLLOW, FileMode)
}

// MaxDescription is what a shard.json, and what is written beside it, has at most (bytes): 65536 communicator ranks and
// as many rows of the timeline come to a quarter.
const MaxDescription = 256 << 20

// takeLock waits for those who look at the very moment whether the shard has a writer (lookAt).
func takeLock(fd int) error {
	for tries := 100; ; tries-- {
		err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		if tries == 0 || !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Backlog makes the file of what is put off, which is not there yet.
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

// BeforeEvents has a function called before anything is written to an event file: what events refer to must be on disk
// first. An error of it is one of that file.
func (s *Store) BeforeEvents(f func() error) { s.files.before = f }

// FilesOpened is how often an event file has been opened so far; at most FilesOpenAtOnce are open at one time.
func (s *Store) FilesOpened() uint64 { return s.files.opened }

// EventBytes is how many bytes there are in event files.
func (s *Store) EventBytes() uint64 { return s.files.bytes }

// FilesOpenAtOnce is how many event files are open at one time, at most, with those that are being brought to the disk.
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

// inPlace tells that the shard's name still leads to the folder that was made: nobody has moved it away, or put another
// or a link in its place.
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

// Gone tells that the shard's folder is lost for good: it has been removed, or another is in its place.
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
func (s *Store) Write(p *Process) error {
	p.Serial++
	text, err := p.text()
	if err != nil {
		return err
	}
	s.described = len(text)
	return s.replace(ProcessFile, text, atomicfile.Volatile)
}

// Described is how many bytes shard.json has.
func (s *Store) Described() int { return s.described }

// rewrite replaces shard.json of a finished shard.
func (s *Store) rewrite(p *Process) error {
	p.Serial++
	text, err := p.text()
	if err != nil {
		return err
	}
	return s.replace(ProcessFile, text, atomicfile.Durable)
}

// PrepareDescriptions does what only the first description takes: finding out how its parts are written.
func PrepareDescriptions() { _, _ = new(Process).text() }

// text is the description as a file has it.
func (p *Process) text() ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("description of a shard: %w", err)
	}
	return append(text, '\n'), nil
}

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
	err := Unlock(s.lock)
	s.lock = nil
	return err
}

// Remove deletes the shard, for a writer that could not begin.
func (s *Store) Remove() error {
	s.Close()
	return os.RemoveAll(s.path)
}

// Remove deletes a shard of an experiment directory, which may not be there. Nobody may be writing it.
func Remove(directory, uuid string) error {
	root, err := os.OpenRoot(filepath.Join(directory, Folder))
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(uuid)
}

// LockLike makes the lock of another file the shard's own: it is taken for being written as long as that file is
// locked. The shard must be closed.
func (s *Store) LockLike(file string) error {
	lock := filepath.Join(s.path, lockFile)
	if err := os.Link(file, lock+".new"); err != nil {
		return err
	}
	return os.Rename(lock+".new", lock)
}
