// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A shard that was closed has no writer, also while a child that is being made has its files, too.
func TestClosedBesideAChild(t *testing.T) {
	dir := t.TempDir()
	s, err := Create(dir, "one")
	testkit.Must(t, err)
	testkit.Must(t, s.Write(&Process{Version: Version, UUID: "one"}))
	child, err := unix.FcntlInt(s.lock.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	testkit.Must(t, err)
	defer unix.Close(child)
	testkit.Must(t, s.Close())
	if list, err := List(dir); err != nil || len(list) != 1 || list[0].State != Dead {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestStoreStates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "experiment")
	if list, err := List(dir); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	s, err := Create(dir, "one")
	testkit.Must(t, err)
	state := func() Entry {
		t.Helper()
		list, err := List(dir)
		if err != nil || len(list) != 1 || list[0].Path != s.Path() || list[0].Err != nil {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0]
	}
	if e := state(); e.State != Starting || e.Process != nil {
		t.Errorf("before its description: %+v", e)
	}
	want := &Process{Version: Version, UUID: "one", Tag: 7, Comms: []Comm{{ID: 1<<64 - 1, NRanks: 2}},
		Settings: map[string]string{"A": "b"}}
	testkit.Must(t, s.Write(want))
	e := state()
	if e.State != Writing {
		t.Errorf("while it is written: %+v", e)
	}
	if d := cmp.Diff(want, e.Process); d != "" {
		t.Error(d)
	}
	testkit.Must(t, s.Close())
	if e := state(); e.State != Dead {
		t.Errorf("without a writer: %+v", e)
	}
	testkit.Must(t, s.Finish())
	if e := state(); e.State != Done {
		t.Errorf("finished: %+v", e)
	}
	names, err := filepath.Glob(filepath.Join(s.Path(), "*"))
	if err != nil || len(names) != 3 {
		t.Errorf("files: %v, %v", names, err)
	}
}

func TestCreateRefusesASecondWriter(t *testing.T) {
	dir := t.TempDir()
	s, err := Create(dir, "one")
	testkit.Must(t, err)
	defer s.Close()
	if _, err := Create(dir, "one"); !os.IsExist(err) {
		t.Errorf("second writer: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Path(), lockFile)); err != nil {
		t.Errorf("the second writer took the first one's lock away: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "unexpected end",
		"{":                  "unexpected end",
		`{"version": 99}`:    "has version 99, this program reads 2",
		`{"version": "one"}`: "cannot unmarshal",
	} {
		dir := t.TempDir()
		testkit.Write(t, filepath.Join(dir, ProcessFile), []byte(text))
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), ProcessFile) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A collector can die before it has described its shard. Nobody must wait for it for ever.
func TestShardThatWasNeverDescribedIsDeadInTheEnd(t *testing.T) {
	dir := t.TempDir()
	s, err := Create(dir, "a")
	testkit.Must(t, err)
	state := func() State {
		t.Helper()
		entries, err := List(dir)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v", entries, err)
		}
		return entries[0].State
	}
	old := time.Now().Add(-time.Hour)
	testkit.Must(t, os.Chtimes(s.Path(), old, old))
	if got := state(); got != Starting {
		t.Errorf("with a living writer: %v, want Starting", got)
	}
	s.Close()
	if got := state(); got != Dead {
		t.Errorf("without one, an hour later: %v, want Dead", got)
	}
	testkit.Must(t, os.Chtimes(s.Path(), time.Now(), time.Now()))
	if got := state(); got != Starting {
		t.Errorf("without one, at once: %v, want Starting", got)
	}
}

// Whoever lists shards takes their locks for a moment.
func TestCreateWaitsForThoseWhoLook(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = List(dir) // what it finds does not matter
			}
		}
	})
	for i := range 200 {
		s, err := Create(dir, strconv.Itoa(i))
		if err != nil {
			t.Error(err)
			break
		}
		s.Close()
	}
	close(stop)
	looking.Wait()
}

// Another process of the job may have made any folder above just now: each is brought to the disk.
func TestFoldersAbove(t *testing.T) {
	top := t.TempDir()
	made := filepath.Join(top, "by", "another")
	testkit.Must(t, os.MkdirAll(made, 0o700))
	got := foldersAbove(filepath.Join(made, "experiment"))
	for _, want := range []string{filepath.Join(made, "experiment", Folder), filepath.Join(made, "experiment"), made,
		filepath.Dir(made), top} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
}
