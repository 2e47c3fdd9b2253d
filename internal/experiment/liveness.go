// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/flock"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// This file decides for all users (unify, top, ctl, report --hang, run, collectors) whether a shard is still being
// written. In this order:
//
//  1. `done` is there: the shard is finished.
//  2. The lock is held: somebody writes it. (flock's lock goes with its holder, however that ends.)
// 3. There is no telling by locks, because the writer could not lock the file, or the reader cannot ask: the writer's
// number
// tells, which stands in the lock file, if it is of this machine and of the reader's namespace; else the process's, if
// that
//     lives; else the age of the shard.
// 4. The lock is free: nobody writes it, but where the writer is on another host, whose locks are not always seen:
// there
//     the age of the shard tells.

// State is the liveness of a shard.
type State int

// States of a shard.
const (
	Starting State = iota // its writer has not described it yet
	Writing               // its writer lives
	Dead                  // not finished and not being written; perhaps not even described
	Done                  // complete
)

// YoungFor is how long an unfinished shard counts as being written after its last change, if its age is the only
// evidence. A collector flushes at least every 2 s while it has data.
const YoungFor = 60 * time.Second

// startTime is the longest time from a writer's creation of its folder to its first description.
const startTime = 10 * time.Second

// Entry is a shard found in an experiment directory.
type Entry struct {
	Path  string
	State State
	Guess bool // the state is derived from the shard's age only
	// Process is nil while the shard is starting, and if its description cannot be read. Err is the reason, or a
	// problem with the lock.
	Process *description.Process
	Err     error
}

// List finds the shards of an experiment directory, in the order of their names. A missing
// directory has none.
func List(directory string) ([]Entry, error) {
	names, err := Names(directory)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, name := range names {
		entries = append(entries, Find(directory, name))
	}
	return entries, nil
}

// ListIfEnded is List for a directory in which no shard is being written any more; otherwise ended is false, and there
// are no entries. It stops at the first live shard, in no particular order: when the processes of a large job end, many
// callers ask, and each finds one soon.
func ListIfEnded(directory string) (entries []Entry, ended bool, err error) {
	names, err := Names(directory)
	if err != nil {
		return nil, false, err
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		e := Find(directory, name)
		if e.State == Starting || e.State == Writing {
			return nil, false, nil
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, true, nil
}

// Names returns the names of the shards of an experiment directory, in order. A missing directory has none.
func Names(directory string) ([]string, error) {
	dirs, err := os.ReadDir(filepath.Join(directory, Folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, d := range dirs {
		if d.IsDir() {
			names = append(names, d.Name())
		}
	}
	return names, nil
}

// Find checks one shard of an experiment directory. A missing one is dead.
func Find(directory, uuid string) Entry {
	return At(filepath.Join(directory, Folder, uuid), time.Now())
}

// At checks the shard of a path; now is the time for its age.
func At(path string, now time.Time) Entry {
	e := Entry{Path: path}
	// The lock comes first: a writer that finishes in between has written more than the state says, not less.
	l, lockErr := readEvidence(path)
	e.Process, e.State, e.Guess, e.Err = read(path, l, now)
	if errors.Is(e.Err, fs.ErrNotExist) {
		e.Err = nil
		young := now.Sub(changeTime(path)) < startTime
		if e.State != Dead || young {
			e.State, e.Guess = Starting, e.Guess || e.State == Dead
		}
	}
	if e.Err == nil {
		e.Err = lockErr
	}
	return e
}

// LastFlush returns when the collector of a shard last flushed; the zero time if it never did.
func LastFlush(path string) time.Time { return changeTime(filepath.Join(path, CheckpointFile)) }

// changeTime returns when a file was changed; the zero time for a missing one.
func changeTime(path string) time.Time {
	st, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// writer identifies the writer of a shard, as its lock file states it.
type writer struct {
	Host   string `json:"host"`
	Place  place  `json:"place"` // where PID is valid
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // see shm.ProcessStart
	Locked bool   `json:"locked"`
}

// place is where process numbers are comparable: a boot of a machine, and a namespace.
type place struct {
	Boot      string `json:"boot"`
	Namespace string `json:"namespace"`
}

func currentPlace() place {
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return place{Boot: BootID(), Namespace: namespace}
}

// BootID identifies this boot of the machine; "" if it cannot be read.
func BootID() string { return bootID() }

var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

// isLocal reports whether a host is this machine: containers have names of their own, and a reboot changes the boot id.
func isLocal(host, boot string) bool {
	name, _ := os.Hostname()
	return host == name || boot != "" && boot == BootID()
}

// Lives reports whether a process, identified by machine, number and start time, runs on this machine and is visible
// here.
func Lives(bootID string, pid int, start uint64) bool {
	began, err := shm.ProcessStart(pid)
	return err == nil && bootID != "" && bootID == BootID() && (start == 0 || began == start)
}

// ProcessLives reports whether the job process of the shard runs on this machine.
func (e *Entry) ProcessLives() bool {
	return e.Process != nil && e.Process.PID > 0 && Lives(e.Process.BootID, e.Process.PID, e.Process.PIDStart)
}

// WriterLives reports whether the writer of the shard still runs, as far as its number is visible here. After the shard
// is done it may be making the job's archive.
func (e *Entry) WriterLives() bool {
	f, err := regular.OpenOwn(filepath.Join(e.Path, lockFile))
	if err != nil {
		return false
	}
	defer f.Close()
	w := writerOf(f)
	return w != nil && w.Place == currentPlace() && Lives(w.Place.Boot, w.PID, w.Start)
}

// writerOf returns the writer that a lock file names; nil if it names none.
func writerOf(lock *os.File) *writer {
	text, _ := io.ReadAll(io.NewSectionReader(lock, 0, maxWriter))
	w := new(writer)
	if json.Unmarshal(text, w) != nil {
		return nil
	}
	return w
}

// signLock writes the writer's identity into a lock file.
func signLock(lock *os.File, locked bool) {
	w := writer{Place: currentPlace(), PID: os.Getpid(), Locked: locked}
	w.Host, _ = os.Hostname()
	w.Start, _ = shm.ProcessStart(w.PID)
	if text, err := json.Marshal(w); err == nil {
		_, _ = lock.WriteAt(append(text, '\n'), 0) // readers can fall back to the process's number
	}
}

// evidence holds the evidence of a shard's folder about its writer.
type evidence struct {
	done, held bool
	noLocks    bool    // the lock is no evidence
	writer     *writer // nil: the lock file names none
}

// maxWriter bounds what is read of a lock file, which can be a raw file (LockLike).
const maxWriter = 4096

func readEvidence(path string) (l evidence, err error) {
	if _, err := os.Lstat(filepath.Join(path, doneFile)); err == nil {
		return evidence{done: true}, nil
	}
	f, err := regular.OpenOwn(filepath.Join(path, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return evidence{}, nil
	} else if err != nil {
		return evidence{}, fmt.Errorf("lock of the shard: %w", err)
	}
	defer f.Close()
	switch err := flock.TryShared(f); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		l.held = true
	case flock.IsUnsupported(err):
		l.noLocks = true
	}
	if w := writerOf(f); w != nil {
		l.writer = w
		l.noLocks = l.noLocks || !w.Locked
	}
	return l, nil
}

// decideState decides by the evidence, the process's description if there is one, and the age of its last change.
func (l *evidence) decideState(p *description.Process, age time.Duration) (s State, guess bool) {
	if l.done {
		return Done, false
	}
	byAge := Dead
	if age < YoungFor {
		byAge = Writing
	}
	elsewhere := false
	if l.writer != nil {
		elsewhere = !isLocal(l.writer.Host, l.writer.Place.Boot)
	} else if p != nil {
		elsewhere = !isLocal(p.Host, p.BootID)
	}
	switch {
	case l.held:
		return Writing, false
	case l.noLocks && l.writer != nil && l.writer.Place == currentPlace():
		if Lives(l.writer.Place.Boot, l.writer.PID, l.writer.Start) {
			return Writing, false
		}
		return Dead, false
	case l.noLocks && p != nil && Lives(p.BootID, p.PID, p.PIDStart):
		return Writing, false
	case l.noLocks || elsewhere:
		return byAge, true
	}
	return Dead, false
}
