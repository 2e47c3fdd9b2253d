// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// Where the number of called collectives stands in a communicator's entry, and how long entries are (plugin/shm.h).
const (
	commEntrySize     = 192
	calledCollectives = 128
	refusedFirst      = 96
)

// setCalled plays the plugin's count of a communicator's collectives.
func setCalled(job *shmtest.Job, comm int, n uint64) {
	job.Corrupt(job.Header().CommOffset+uint64(comm)*commEntrySize+calledCollectives,
		binary.NativeEndian.AppendUint64(nil, n)...)
}

// setRefused notes a refused call as the plugin does; m is the job's memory.
func setRefused(job *shmtest.Job, m *shm.Memory, comm int, ordinal uint64) {
	at := job.Header().CommOffset + uint64(comm)*commEntrySize + refusedFirst
	job.Corrupt(at+8, binary.NativeEndian.AppendUint64(nil, ordinal+1)...)
	if _, _, ok := m.Refused(comm); !ok {
		job.Corrupt(at, binary.NativeEndian.AppendUint64(nil, ordinal+1)...)
	}
}

func controlled(t *testing.T, vars ...string) (dir string, jobs []*shmtest.Job, end func()) {
	t.Helper()
	dir = t.TempDir()
	var ends []func()
	for r := range 2 {
		job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Tag: uint16(100 + r)})
		job.Comm(shm.Comm{APIVersion: 6, ID: 0xabc, NRanks: 2, Rank: r, InitTicks: monotonic(), Name: "world"}, nil)
		rank := []string{"RANK=0", "RANK=1"}[r]
		wait := startRun(t, job, Options{Lookup: environment(
			append(vars, "NCCL_OTF2_DIR="+dir, rank, "WORLD_SIZE=2")...)})
		ends = append(ends, func() {
			process.end()
			err := wait()
			testkit.Check(t, err == nil, "%v", err)
		})
		jobs = append(jobs, job)
	}
	return dir, jobs, func() {
		for _, end := range ends {
			end()
		}
	}
}

func windowOf(t *testing.T, job *shmtest.Job, comm int) shm.Window {
	t.Helper()
	c, ok := mapped(t, job).Comm(comm)
	testkit.Require(t, ok, "no communicator")
	return c.Window
}

func TestOrdersReachAllProcesses(t *testing.T) {
	dir, jobs, end := controlled(t, "NCCL_OTF2_EVENTS=gpu")
	for _, job := range jobs {
		setCalled(job, 0, 100)
	}
	setCalled(jobs[1], 0, 107)
	c := &control.Controller{Dir: dir}
	change := testkit.Value(c.Record(context.Background(), false))(t)
	want := shm.Window{First: 0, Last: 127}
	testkit.Check(t, len(change.Comms) == 1 && len(change.Late)+len(change.Silent) == 0 &&
		change.Comms[0].Members == 2 && change.Comms[0].Last == want.Last && change.Comms[0].Changed == 127, "%+v",
		change)
	for r, job := range jobs {
		h := mapped(t, job).Header()
		w := windowOf(t, job, 0)
		testkit.Check(t, w == want && h.RecordMask == 0x0f47|shm.RecordInWindow && h.WindowFirst >= h.WindowLast,
			"rank %d: window %v, mask %#x, new communicators %d to %d", r, w, h.RecordMask, h.WindowFirst, h.WindowLast)
	}

	// A communicator that comes now is not recorded.
	before, now, silent, err := c.Status(context.Background())
	testkit.Require(t, err == nil && len(before) == 2 && len(now) == 2 && len(silent) == 0,
		"%v, %v, %v, %v", before, now, silent, err)
	for r, s := range now {
		testkit.Check(t, s.Rank == r && s.Order != 0 && s.Mode == "trace" &&
			slices.Equal(s.Asked, control.EventNames(0x0f47)) && s.MemoryTotal != 0 && len(s.Comms) == 1 &&
			s.Comms[0].Name == "world" && s.Comms[0].Last == 127 && s.Comms[0].Recording(), "status of rank %d: %+v", r,
			s)
	}

	// The order is passed, and recording goes on from the same operation on both.
	for _, job := range jobs {
		setCalled(job, 0, 200)
	}
	testkit.Value(c.Record(context.Background(), true))(t)
	a, b := windowOf(t, jobs[0], 0), windowOf(t, jobs[1], 0)
	testkit.Check(t, a == b && a.First == 210, "windows %v and %v", a, b)

	// Only what NCCL was asked for can be recorded.
	_, missing, err := c.Events(context.Background(), 0x0f07|1<<shm.EventProxyOp)
	testkit.Check(t, err == nil && slices.Equal(missing, []string{"ProxyOp"}), "missing %v, %v", missing, err)
	for _, job := range jobs {
		event, record := job.Masks()
		testkit.Check(t, event == 0x0f47 && record == 0x0f07|shm.RecordInWindow, "masks %#x, %#x", event, record)
	}
	end()
	for _, e := range shards(t, dir) {
		found := false
		for _, m := range e.Process.Markers {
			found = found || m.Category == "NCCL recording changed" &&
				strings.Contains(m.Text, "light are recorded, before gpu")
		}
		testkit.Check(t, found && e.Process.Masks.Event == 0x0f47 && e.Process.Masks.Record == 0x0f07,
			"markers %v, masks %+v", e.Process.Markers, e.Process.Masks)
	}
	_, err = c.Record(context.Background(), true)
	testkit.Check(t, errors.Is(err, control.ErrNoJob), "after the job: %v", err)
}

// A rank that has passed the operation by the time it learns of an order says so.
func TestLateOrders(t *testing.T) {
	dir, jobs, end := controlled(t)
	defer end()
	entries := shards(t, dir)
	setCalled(jobs[1], 0, 30)
	order, err := json.Marshal(&control.File{
		Version: control.Version, Ask: 1, Order: 1,
		Windows: []control.Window{{ID: 0xabc, NRanks: 2, First: 0, Last: 20}},
	})
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(dir, control.FileName), order, 0o600))
	for _, e := range entries {
		var s *control.Status
		if !shmtest.Await(func() bool {
			s, err = control.ReadStatus(e.Path)
			return err != nil || s != nil && s.Ask == 1
		}) || err != nil {
			t.Fatalf("%+v, %v", s, err)
		}
		if s.Order != 1 || s.Late != s.Rank { // rank 1 is
			t.Errorf("%+v", s)
		}
	}
}

// A process that joins the job takes part in what was ordered; one of another job in the same directory does not.
func TestOrdersAreForOneJob(t *testing.T) {
	dir, _, end := controlled(t)
	c := &control.Controller{Dir: dir}
	testkit.Value(c.Record(context.Background(), false))(t)
	join := func() (window shm.Window, record uint32) {
		job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Tag: 300})
		comm := job.Comm(shm.Comm{APIVersion: 6, ID: 0xdef, NRanks: 2, InitTicks: monotonic()}, nil)
		wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR=" + dir)})
		defer func() {
			process.end()
			err := wait()
			testkit.Check(t, err == nil, "%v", err)
		}()
		_, record = job.Masks()
		return windowOf(t, job, comm), record
	}
	if w, record := join(); w != control.Nothing || record&shm.RecordInWindow == 0 {
		t.Errorf("in the job: window %v, mask %#x", w, record)
	}
	end()
	if w, record := join(); w != control.Everything || record&shm.RecordInWindow != 0 {
		t.Errorf("in the next job: window %v, mask %#x", w, record)
	}
}

// Only a file of the same user that nobody else can write is an order.
func TestForeignControlFilesAreRefused(t *testing.T) {
	good := []byte(`{"version":1,"ask":1,"order":1,"new":{"First":0,"Last":0}}`)
	for _, tc := range []struct {
		name, want string
		make       func(path string) error
	}{
		{"a link", "it is a symbolic link", func(path string) error {
			target := path + ".target"
			return errors.Join(os.WriteFile(target, good, 0o600), os.Symlink(target, path))
		}},
		{"writable by others", "others may write it", func(path string) error {
			return errors.Join(os.WriteFile(path, good, 0o600), os.Chmod(path, 0o666))
		}},
		{"another user's", "it belongs to user 12345", func(path string) error {
			need.Root(t, "give files away")
			return errors.Join(os.WriteFile(path, good, 0o600), os.Chown(path, 12345, -1))
		}},
		{"a folder", "it is not a file", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"rubbish", "invalid character", func(path string) error {
			return os.WriteFile(path, []byte("rubbish"), 0o600)
		}},
		{"of the future", "has version 9", func(path string) error {
			return os.WriteFile(path, []byte(`{"version":9}`), 0o600)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic})
			wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR=" + dir)})
			testkit.Must(t, tc.make(filepath.Join(dir, control.FileName)))
			memory := mapped(t, job)
			said := func() bool { text, _ := memory.Message(); return strings.Contains(text, tc.want) }
			if !shmtest.Await(said) {
				text, _ := memory.Message()
				t.Errorf("message %q, want %q", text, tc.want)
			}
			// Once, also when the file changes.
			later := time.Now().Add(time.Hour)
			testkit.Must(t, os.Chtimes(filepath.Join(dir, control.FileName), later, later))
			request := job.Request()
			shmtest.Await(func() bool { return job.Answered(request) })
			process.end()
			err := wait()
			testkit.Check(t, err == nil, "%v", err)
			_, n := memory.Message()
			testkit.Check(t, n == 1, "%d messages", n)
			_, record := job.Masks()
			testkit.Check(t, record&shm.RecordInWindow == 0, "the order was obeyed: mask %#x", record)
		})
	}
}

func TestControllerSaysWhatIsWrong(t *testing.T) {
	ctx := context.Background()
	empty := t.TempDir()
	_, err := (&control.Controller{Dir: empty}).Record(ctx, true)
	testkit.Check(t, errors.Is(err, control.ErrNoJob) && strings.Contains(err.Error(), empty), "%v", err)
	_, _, _, err = (&control.Controller{Dir: filepath.Join(empty, "none")}).Status(ctx)
	testkit.Check(t, errors.Is(err, os.ErrNotExist), "%v", err)
	dir, _, end := controlled(t)
	defer end()
	if os.Geteuid() == 0 {
		for _, e := range shards(t, dir) {
			testkit.Must(t, os.Chown(e.Path, 12345, -1))
		}
		_, err := (&control.Controller{Dir: dir}).Record(ctx, true)
		testkit.Check(t, err != nil && strings.Contains(err.Error(), "belongs to user 12345"), "%v", err)
		for _, e := range shards(t, dir) {
			testkit.Must(t, os.Chown(e.Path, 0, -1))
		}
	}
	// Two at once would undo each other.
	c := &control.Controller{Dir: dir}
	held := testkit.Value(os.Open(dir))(t)
	defer held.Close()
	testkit.Must(t, unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	_, err = c.Record(ctx, true)
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "another command is controlling this job"), "%v", err)
}
