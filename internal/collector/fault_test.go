// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// flushAll waits until everything written so far has been taken.
func flushAll(t *testing.T, job *shmtest.Job) {
	t.Helper()
	request := job.Request()
	testkit.Require(t, shmtest.Await(func() bool { return job.Answered(request) }), "not answered")
}

// At the cap the plugin is told to record nothing new; what it had recorded is all in the archive.
func TestDiskCap(t *testing.T) {
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	wait := startRun(t, job, Options{Lookup: environment(
		"NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light", "NCCL_OTF2_DISK=64K")})
	memory := mapped(t, job)
	full := func() bool { _, record := job.Masks(); return record&shm.RecordFull != 0 }
	calls := uint64(0)
	for range 500 {
		if full() {
			break
		}
		for range 20 {
			a.allReduce(calls)
			calls++
		}
		flushAll(t, job)
	}
	testkit.Require(t, full(), "no end")
	shmtest.Await(func() bool { _, n := memory.Message(); return n > 0 }) // comes after the refusal
	text, n := memory.Message()
	testkit.Check(t, n == 1 && strings.Contains(text, "NCCL_OTF2_DISK allows 65536"), "message %d: %q", n, text)
	// What was in memory at that moment is still taken; what the plugin refuses is counted.
	a.allReduce(calls)
	calls++
	job.Header().Lost[shm.LossDisk][shm.EventColl] = 3
	flushAll(t, job)
	process.end()
	testkit.Must(t, wait())
	e := onlyShard(t, dir)
	p := e.Process
	if e.State != experiment.Done || !p.Finished || starts(p) != calls*perCall || p.Counts.Lost["disk"]["Coll"] != 3 ||
		len(p.Counts.Lost) != 1 {
		t.Errorf("state %v, finished %v, %d starts of %d, lost %v", e.State, p.Finished, starts(p), calls*perCall,
			p.Counts.Lost)
	}
	testkit.Check(t, len(p.Markers) == 1 && p.Markers[0].Category == "NCCL recording stopped" &&
		strings.Contains(p.Markers[0].Text, "allows 65536"), "markers %v", p.Markers)
	_, n = memory.Message()
	testkit.Check(t, n == 1, "%d messages", n)
}

// impatient makes a collector give a disk at fault less time.
func impatient(t *testing.T) {
	t.Helper()
	last, disk, end := lastRetry, diskPatience, endPatience
	lastRetry, diskPatience, endPatience = 50*time.Millisecond, 100*time.Millisecond, 200*time.Millisecond
	t.Cleanup(func() { lastRetry, diskPatience, endPatience = last, disk, end })
}

// Whatever becomes of the directory while the job runs: one message, the plugin refuses cheaply, memory comes back
// where the directory is gone for good and half of it is free where not, and the collector ends with the job.
func TestDirectoryFaults(t *testing.T) {
	impatient(t)
	for _, tc := range []struct {
		name  string
		gone  bool
		fault func(t *testing.T, dir string)
	}{
		{"removed", true, func(t *testing.T, dir string) { removeAll(t, dir) }},
		{"shard removed", true, func(t *testing.T, dir string) { removeAll(t, filepath.Join(dir, experiment.Folder)) }},
		{"renamed", false, func(t *testing.T, dir string) { testkit.Must(t, os.Rename(dir, dir+".old")) }},
		{"read-only", false, func(t *testing.T, dir string) {
			e := onlyShard(t, dir)
			if os.Geteuid() == 0 { // who may write whatever the modes say
				makeImmutable(t, e.Path)
				return
			}
			testkit.Must(t, os.Chmod(e.Path, 0o500))
			t.Cleanup(func() { os.Chmod(e.Path, 0o700) })
		}},
		{"a file in place of the shard", true, func(t *testing.T, dir string) {
			e := onlyShard(t, dir)
			removeAll(t, e.Path)
			testkit.Must(t, os.WriteFile(e.Path, nil, 0o600))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "experiment")
			job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 32})
			wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR=" + dir)})
			a.allReduce(0)
			flushAll(t, job)
			tc.fault(t, dir)
			refuses := func() bool { _, record := job.Masks(); return record&shm.RecordFull != 0 }
			for i := range uint64(1000) {
				a.allReduce(i)
				if i%100 == 0 {
					flushAll(t, job)
					testkit.Require(t, i <= 0 || shmtest.Await(refuses), "the plugin goes on recording")
				}
			}
			flushAll(t, job)
			memory := mapped(t, job)
			text, n := memory.Message()
			want := dir + " cannot be written"
			if tc.gone {
				want = "recording stopped in " + dir
			}
			testkit.Check(t, strings.Contains(text, want) && !strings.Contains(text, "\n") && n == 1,
				"message %d: %q", n, text)
			free, spare := job.Free()
			testkit.Check(t, free+spare >= 16 && (!tc.gone || free+spare >= 24), "%d chunks came back", free+spare)
			process.end()
			testkit.Check(t, wait() != nil, "the collector tells of no error")
			_, n = memory.Message()
			testkit.Check(t, n == 1, "%d messages", n)
		})
	}
}

// removeAll removes a folder in which a collector may be making files at the moment.
func removeAll(t *testing.T, dir string) {
	t.Helper()
	for tries := 100; ; tries-- {
		err := os.RemoveAll(dir)
		if err == nil || tries == 0 {
			testkit.Must(t, err)
			return
		}
	}
}

// makeImmutable keeps everybody from making and removing files in a folder. What is open already can still be written.
func makeImmutable(t *testing.T, dir string) (undo func()) {
	t.Helper()
	f := testkit.Value(os.Open(dir))(t)
	const immutable = 0x10 // FS_IMMUTABLE_FL
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags)|immutable)
	}
	needMount(t, err)
	undo = func() { testkit.Must(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags))) }
	t.Cleanup(func() {
		undo()
		f.Close()
	})
	return undo
}

// makeReadOnly mounts a folder over itself. What is open already can still be written.
func makeReadOnly(t *testing.T, dir string) {
	t.Helper()
	needMount(t, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // if the test has not
	testkit.Must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
}

// needMount ends a test that could not mount something.
func needMount(t *testing.T, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Geteuid() == 0 && os.Getenv("CI") == "true":
		t.Fatalf("root cannot mount: %v", err)
	default:
		t.Skipf("SKIPPED, NOT TESTED: nothing can be mounted here: %v", err)
	}
}

// A file system that is read-only from the start: nothing is recorded, the reason is told, and nothing is left behind.
func TestReadOnlyFileSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "experiment")
	testkit.Must(t, os.Mkdir(dir, 0o700))
	makeReadOnly(t, dir)
	for _, place := range []string{dir, filepath.Join(dir, "below")} {
		job, _ := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic})
		err := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR=" + place)})()
		text, n := mapped(t, job).Message()
		if err == nil || job.State() != shm.CollectorRefused || n != 1 ||
			!strings.Contains(text, "nothing can be recorded in "+place) ||
			!strings.Contains(text, "read-only file system") {
			t.Errorf("%s: error %v, state %v, message %d: %q", place, err, job.State(), n, text)
		}
	}
	left, err := os.ReadDir(dir)
	testkit.Check(t, err == nil && len(left) == 0, "left behind: %v, %v", left, err)
}

// A file system without room: what is on disk stays whole, what is lost is counted.
func TestFullFileSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	testkit.Must(t, os.Mkdir(dir, 0o700))
	needMount(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=192k"))
	defer unix.Unmount(dir, unix.MNT_DETACH)
	impatient(t)
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR=" + dir)})
	full := func() bool { _, record := job.Masks(); return record&shm.RecordFull != 0 }
	calls := uint64(0)
	for range 500 {
		if full() {
			break
		}
		for range 50 {
			a.allReduce(calls)
			calls++
		}
		flushAll(t, job)
	}
	for range 50 { // what other threads were writing
		a.allReduce(calls)
		calls++
	}
	memory := mapped(t, job)
	text, n := memory.Message()
	testkit.Check(t, full() && strings.Contains(text, "no space left on device") && n == 1, "message %d: %q", n, text)
	process.end()
	err := wait()
	testkit.Check(t, err != nil && strings.Contains(fmt.Sprint(err), "no space left"), "%v", err)
	e := onlyShard(t, dir) // whose files are whole
	testkit.Check(t, eventsOf(t, e) != 0 && !e.Process.Finished,
		"%d events, finished %v", eventsOf(t, e), e.Process.Finished)
}
