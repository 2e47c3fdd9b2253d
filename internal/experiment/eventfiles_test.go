// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// openFiles are the event files of a folder that this process has open.
func openFiles(t *testing.T, folder string) (n int) {
	t.Helper()
	links := testkit.Value(filepath.Glob("/proc/self/fd/*"))(t)
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && filepath.Dir(to) == folder && filepath.Ext(to) == eventSuffix {
			n++
		}
	}
	return n
}

// However many rows are written in turn, few files are open, and all events are in them.
func TestFewEventFilesAreOpen(t *testing.T) {
	const rows, rounds = 300, 5
	s := testkit.Value(Create(t.TempDir(), "one"))(t)
	defer s.Close()
	s.files.most = 10
	var announced int
	s.BeforeEvents(func() error { announced++; return nil })
	writers := make([]*otf2.EventWriter, rows)
	for i := range writers {
		writers[i] = testkit.Value(s.EventWriter(uint32(i), nil))(t)
	}
	testkit.Check(t, announced == 0, "empty files were announced %d times", announced)
	for round := range rounds {
		for i, w := range writers {
			testkit.Must(t, errors.Join(w.Enter(otf2.Timestamp(10*round+1), nil, otf2.RegionRef(i)),
				w.Leave(otf2.Timestamp(10*round+2), nil, otf2.RegionRef(i)), w.Flush()))
			n := openFiles(t, s.Path())
			testkit.Require(t, n <= 10, "%d event files are open", n)
		}
	}
	testkit.Check(t, announced >= rows*rounds, "only %d writes were announced", announced)
	if n := s.FilesOpened(); n < rows || n > rows*(rounds+1) {
		t.Errorf("files were opened %d times, for %d flushes of %d files", n, rows*rounds, rows)
	}
	for i, w := range writers {
		testkit.Must(t, w.Close())
		tail := testkit.Value(otf2.NewEventTail(s.EventFile(uint32(i)), 0, otf2.DefaultEventChunkSize))(t)
		n := 0
		for ev, err := range tail.Events() {
			testkit.Require(t, err == nil && ev.Args[0] == uint64(i), "row %d: %+v, %v", i, ev, err)
			n++
		}
		testkit.Check(t, n == 2*rounds, "row %d: %d events, want %d", i, n, 2*rounds)
	}
	testkit.Equal(t, openFiles(t, s.Path()), 0, "event files are open when all are closed")
}

// What must be on disk before events, and is not, keeps them out.
func TestEventsWaitForWhatTheyReferTo(t *testing.T) {
	s := testkit.Value(Create(t.TempDir(), "one"))(t)
	defer s.Close()
	no := errors.New("no room")
	s.BeforeEvents(func() error { return no })
	w := testkit.Value(s.EventWriter(0, nil))(t)
	err := errors.Join(w.Enter(1, nil, 1), w.Flush())
	testkit.Check(t, errors.Is(err, no), "%v, want %v", err, no)
	err = w.Close()
	testkit.Check(t, errors.Is(err, no), "%v, want %v", err, no)
	st, err := os.Stat(s.EventFile(0))
	testkit.Check(t, err == nil && st.Size() <= 64, "the file has events: %v, %v", st, err)
}

// A shard that is exchanged while it is written gets nothing of what follows, also where a file was closed meanwhile.
func TestFilesAreOpenedAgainInTheShardItself(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Value(Create(dir, "one"))(t)
	defer s.Close()
	s.files.most = 1
	var writers [2]*otf2.EventWriter
	for i := range writers {
		writers[i] = testkit.Value(s.EventWriter(uint32(i), nil))(t)
	}
	away, foreign := filepath.Join(dir, "away"), filepath.Join(dir, "foreign")
	testkit.Must(t, errors.Join(os.Rename(s.Path(), away), os.Mkdir(foreign, 0o700), os.Symlink(foreign, s.Path())))
	for _, w := range writers {
		err := errors.Join(w.Enter(1, nil, 1), w.Flush())
		testkit.Check(t, err == nil, "%v", err)
	}
	names, _ := filepath.Glob(filepath.Join(foreign, "*"))
	testkit.Check(t, len(names) == 0, "written elsewhere: %v", names)
	// A link in the place of a closed file is not followed.
	target := filepath.Join(dir, "target")
	testkit.Must(t, errors.Join(os.Remove(filepath.Join(away, eventFileName(0))), os.WriteFile(target, nil, 0o600),
		os.Symlink(target, filepath.Join(away, eventFileName(0)))))
	testkit.Check(t, errors.Join(writers[0].Leave(2, nil, 1), writers[0].Flush()) != nil, "a link was followed")
	st, _ := os.Stat(target)
	testkit.Check(t, st.Size() == 0, "%d bytes were written behind a link", st.Size())
}

// The file of a patient writer is made when that is possible, and opened anew after an error.
func TestPatientEventFiles(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Value(Create(dir, "one"))(t)
	defer s.Close()
	way := s.EventFile(7)
	if err := os.Symlink(way, way); err != nil { // nothing can be opened there
		t.Fatal(err)
	}
	reported := 0
	opts := &otf2.EventWriterOptions{Patient: func(error) { reported++ }}
	if _, err := s.EventWriter(7, opts); !errors.Is(err, os.ErrExist) || reported > 0 {
		t.Errorf("what is there belongs to somebody: %v, told %d times", err, reported)
	}
	testkit.Must(t, os.Remove(way))
	limit := new(unix.Rlimit)
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, limit)
	none := unix.Rlimit{Cur: 0, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil { // no descriptor is to be had
		t.Fatal(err)
	}
	w, err := s.EventWriter(7, opts)
	failed := error(nil)
	if err == nil {
		_ = w.Enter(1, nil, 0)
		failed = w.Flush()
	}
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, limit)
	if err != nil || failed == nil || reported != 1 || w.Size() != 0 || w.Flushed() != 0 {
		t.Fatalf("%v, flush: %v, told %d times, %d bytes, %d events", err, failed, reported, w.Size(), w.Flushed())
	}
	testkit.Must(t, errors.Join(w.Flush(), w.Leave(2, nil, 0), w.Close()))
	r, err := otf2.ScanEventFile(way, otf2.DefaultEventChunkSize)
	testkit.Check(t, err == nil && r.Events == 2 && r.Complete, "%+v, %v", r, err)
}
