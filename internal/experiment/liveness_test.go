// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Who lives is told by the marker, the lock, the writer's number, the process's, and the shard's age, in this order.
func TestWhoLives(t *testing.T) {
	ended := exec.Command("true")
	testkit.Must(t, ended.Run())
	host := testkit.Value(os.Hostname())(t)
	start := testkit.Value(shm.ProcessStart(os.Getpid()))(t)
	me := &writer{Host: host, Place: currentPlace(), PID: os.Getpid(), Start: start, Locked: true}
	with := func(change func(*writer)) *writer {
		w := *me
		change(&w)
		return &w
	}
	type bools struct{ done, held, noLocks bool }
	unlocked := with(func(w *writer) { w.Locked = false })
	gone := with(func(w *writer) { w.PID, w.Locked = ended.Process.Pid, false })
	another := with(func(w *writer) { w.Start, w.Locked = start+1, false })
	container := with(func(w *writer) { w.Place.Namespace, w.Host, w.Locked = "pid:[1]", "container", false })
	far := with(func(w *writer) { w.Host, w.Place.Boot = "far", "another boot" })
	lives := &description.Process{Host: host, BootID: BootID(), PID: os.Getpid(), PIDStart: start}
	died := &description.Process{Host: host, BootID: BootID(), PID: ended.Process.Pid, PIDStart: 1}
	farProcess := &description.Process{Host: "far", BootID: "another boot", PID: os.Getpid(), PIDStart: start}
	const young, old = time.Second, 2 * YoungFor
	for _, c := range []struct {
		name    string
		lock    bools
		writer  *writer
		process *description.Process
		age     time.Duration
		want    State
		guess   bool
	}{
		{"finished", bools{done: true}, gone, died, old, Done, false},
		{"finished, and held for a moment more", bools{done: true, held: true}, me, lives, young, Done, false},
		{"locked", bools{held: true}, me, lives, old, Writing, false},
		{"locked, before it described itself", bools{held: true}, me, nil, old, Writing, false},
		{"locked on another host", bools{held: true}, far, farProcess, old, Writing, false},
		{"locked, by an earlier version", bools{held: true}, nil, lives, old, Writing, false},
		{"free", bools{}, me, lives, young, Dead, false},
		{"free, by an earlier version", bools{}, nil, lives, young, Dead, false},
		{"free on another host, just written", bools{}, far, farProcess, young, Writing, true},
		{"free on another host, long ago", bools{}, far, farProcess, old, Dead, true},
		{"free on another host, by an earlier version", bools{}, nil, farProcess, young, Writing, true},
		{"no locks, the writer lives", bools{noLocks: true}, unlocked, lives, old, Writing, false},
		{"no locks, the writer lives on without its process", bools{noLocks: true}, unlocked, died, old, Writing,
			false},
		{"no locks, the writer was killed", bools{noLocks: true}, gone, lives, young, Dead, false},
		{"no locks, another has the writer's number", bools{noLocks: true}, another, lives, young, Dead, false},
		{"no locks, the writer is in a container, the process too", bools{noLocks: true}, container, died, young,
			Writing, true},
		{"no locks, the writer was in a container", bools{noLocks: true}, container, died, old, Dead, true},
		{"no locks, a raw file in the lock's place", bools{noLocks: true}, nil, lives, old, Writing, false},
		{"no locks, of a dead process's", bools{noLocks: true}, nil, died, old, Dead, true},
		{"no locks, on another host, just written", bools{noLocks: true}, far, farProcess, young, Writing, true},
		{"no locks, on another host, long ago", bools{noLocks: true}, far, farProcess, old, Dead, true},
	} {
		l := evidence{done: c.lock.done, held: c.lock.held, noLocks: c.lock.noLocks, writer: c.writer}
		if got, guess := l.decideState(c.process, c.age); got != c.want || guess != c.guess {
			t.Errorf("%s: %v (guessed: %v), want %v (%v)", c.name, got, guess, c.want, c.guess)
		}
	}
}

// A lock file says who took it, and whether it could be locked.
func TestLockNamesItsWriter(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Value(Create(dir, "a"))(t)
	defer s.Close()
	l, err := readEvidence(s.Path())
	testkit.Require(t, err == nil && l.held && !l.noLocks && l.writer != nil && l.writer.PID == os.Getpid() &&
		l.writer.Locked && l.writer.Place == currentPlace(), "%+v, %v", l, err)
	// As a file system without locks leaves it.
	l.writer.Locked = false
	text := testkit.Value(json.Marshal(l.writer))(t)
	s.Close()
	testkit.Must(t, os.WriteFile(filepath.Join(s.Path(), lockFile), text, FileMode))
	testkit.Equal(t, Find(dir, "a").State, Starting, "Find")
	testkit.Must(t, os.WriteFile(filepath.Join(s.Path(), lockFile), []byte("raw data"), FileMode))
	if l, err = readEvidence(s.Path()); err != nil || l.writer != nil || l.held {
		t.Errorf("of a raw file: %+v, %v", l, err)
	}
	testkit.Must(t, os.Remove(filepath.Join(s.Path(), lockFile)))
	testkit.Must(t, syscall.Mkfifo(filepath.Join(s.Path(), lockFile), 0o600))
	if _, err = readEvidence(s.Path()); err == nil {
		t.Error("a FIFO is taken for a lock")
	}
}

func TestLivingProcessIsKnownByItsStart(t *testing.T) {
	start, err := shm.ProcessStart(os.Getpid())
	testkit.Require(t, err == nil && start != 0, "start %d, %v", start, err)
	testkit.Check(t, Lives(BootID(), os.Getpid(), start), "this process is said to have ended")
	for name, lives := range map[string]bool{
		"another process under this id": Lives(BootID(), os.Getpid(), start+1),
		"a process of another machine":  Lives("another boot", os.Getpid(), start),
		"a process of an unknown boot":  Lives("", os.Getpid(), start),
	} {
		testkit.Check(t, !lives, "%s is taken for this one", name)
	}
}

// Shards are listed once nobody writes one, in the order of their names.
func TestListIfEnded(t *testing.T) {
	dir := t.TempDir()
	entries, ended, err := ListIfEnded(dir)
	testkit.Check(t, err == nil && ended && entries == nil, "of nothing: %v, %v, %v", entries, ended, err)
	var stores []*Store
	for _, name := range []string{"c", "a", "b", "d"} {
		s := testkit.Value(Create(dir, name))(t)
		testkit.Must(t, s.Write(&description.Process{Version: description.Version, UUID: name}))
		stores = append(stores, s)
	}
	for i, s := range stores {
		if entries, ended, err := ListIfEnded(dir); err != nil || ended || entries != nil {
			t.Errorf("while %d are written: %v, %v, %v", len(stores)-i, entries, ended, err)
		}
		if i > 0 { // the first one dies
			testkit.Must(t, s.Finish())
		}
		testkit.Must(t, s.Close())
	}
	all := testkit.Value(List(dir))(t)
	if entries, ended, err := ListIfEnded(dir); err != nil || !ended || !cmp.Equal(entries, all) || len(all) != 4 {
		t.Errorf("%v, %v, %v; want %v", entries, ended, err, all)
	}
}

// A shard that is done says whether its writer still runs, and one whose lock file is no such thing says no.
func TestWriterLives(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Value(Create(dir, "6f1c2d5e-0000-4000-8000-000000000001"))(t)
	testkit.Must(t, s.Close())
	e := Entry{Path: s.Path()}
	testkit.Check(t, e.WriterLives(), "this program does not run")
	testkit.Must(t, os.WriteFile(filepath.Join(s.Path(), lockFile), []byte("raw data"), FileMode))
	testkit.Check(t, !e.WriterLives(), "raw data lives")
	testkit.Must(t, os.Remove(filepath.Join(s.Path(), lockFile)))
	testkit.Check(t, !e.WriterLives(), "nobody lives")
}
