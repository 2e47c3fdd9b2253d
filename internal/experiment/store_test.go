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

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A shard that was closed has no writer, also while a child that is being made has its files, too.
func TestClosedBesideAChild(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Value(Create(dir, "one"))(t)
	testkit.Must(t, s.Write(&description.Process{Version: description.Version, UUID: "one"}))
	child := testkit.Value(unix.FcntlInt(s.lock.Fd(), unix.F_DUPFD_CLOEXEC, 0))(t)
	defer unix.Close(child)
	testkit.Must(t, s.Close())
	list, err := List(dir)
	testkit.Check(t, err == nil && len(list) == 1 && list[0].State == Dead, "%+v, %v", list, err)
}

func TestStoreStates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "experiment")
	list, err := List(dir)
	testkit.Require(t, err == nil && len(list) == 0, "%v, %v", list, err)
	s := testkit.Value(Create(dir, "one"))(t)
	state := func() Entry {
		t.Helper()
		list, err := List(dir)
		testkit.Require(t, err == nil && len(list) == 1 && list[0].Path == s.Path() && list[0].Err == nil,
			"%+v, %v", list, err)
		return list[0]
	}
	if e := state(); e.State != Starting || e.Process != nil {
		t.Errorf("before its description: %+v", e)
	}
	want := &description.Process{Version: description.Version, UUID: "one", Tag: 7, Comms: []description.Comm{{ID: 1<<64 - 1, NRanks: 2}},
		Settings: map[string]string{"A": "b"}}
	testkit.Must(t, s.Write(want))
	e := state()
	testkit.Check(t, e.State == Writing, "while it is written: %+v", e)
	testkit.Same(t, want, e.Process)
	testkit.Must(t, s.Close())
	e = state()
	testkit.Check(t, e.State == Dead, "without a writer: %+v", e)
	testkit.Must(t, s.Finish())
	e = state()
	testkit.Check(t, e.State == Done, "finished: %+v", e)
	names, err := filepath.Glob(filepath.Join(s.Path(), "*"))
	testkit.Check(t, err == nil && len(names) == 3, "files: %v, %v", names, err)
}

func TestCreateRefusesASecondWriter(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Value(Create(dir, "one"))(t)
	defer s.Close()
	_, err := Create(dir, "one")
	testkit.Check(t, os.IsExist(err), "second writer: %v", err)
	_, err = os.Stat(filepath.Join(s.Path(), lockFile))
	testkit.Check(t, err == nil, "the second writer took the first one's lock away: %v", err)
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
		_, err := Read(dir)
		testkit.Check(t, err != nil && strings.Contains(err.Error(), want) &&
			strings.Contains(err.Error(), ProcessFile), "%q: %v", text, err)
	}
}

// A collector can die before it has described its shard. Nobody must wait for it for ever.
func TestShardThatWasNeverDescribedIsDeadInTheEnd(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Value(Create(dir, "a"))(t)
	state := func() State {
		t.Helper()
		entries, err := List(dir)
		testkit.Require(t, err == nil && len(entries) == 1, "%v, %v", entries, err)
		return entries[0].State
	}
	old := time.Now().Add(-time.Hour)
	testkit.Must(t, os.Chtimes(s.Path(), old, old))
	testkit.Equal(t, state(), Starting, "with a living writer")
	s.Close()
	testkit.Equal(t, state(), Dead, "without one, an hour later")
	testkit.Must(t, os.Chtimes(s.Path(), time.Now(), time.Now()))
	testkit.Equal(t, state(), Starting, "without one, at once")
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
		testkit.Check(t, slices.Contains(got, want), "%s is not among %q", want, got)
	}
}
