// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// inFile makes a job say that its memory is a file; keep puts it there, as it is after the job's death.
func inFile(t *testing.T, job *shmtest.Job) (path string, keep func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "memory")
	h := job.Header()
	h.MemoryKind = shm.MemoryShm
	copy(h.MemoryPath[:], path)
	copy(h.BootID[:], experiment.BootID())
	return path, func() {
		from := os.NewFile(uintptr(job.FD()), "memory")
		defer from.Close()
		testkit.Value(from.Seek(0, io.SeekStart))(t)
		to := testkit.Value(os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600))(t)
		testkit.Value(io.Copy(to, from))(t)
		testkit.Must(t, to.Close())
	}
}

// What a disk that failed to the end of the process did not take lies in the memory yet: `unify` takes it from there
// when the disk works again.
func TestSalvageAfterADiskThatStayedBroken(t *testing.T) {
	impatient(t)
	for _, tc := range []struct {
		name  string
		first int // calls that come to the disk
		disk  func(t *testing.T, dir string) (fail, mend func())
	}{
		{"full", 100, func(t *testing.T, dir string) (fail, mend func()) { return func() {}, smallDisk(t, dir, 192) }},
		{"something in the way", 100, func(t *testing.T, dir string) (fail, mend func()) {
			way := ""
			return func() {
				way = filepath.Join(onlyShard(t, dir).Path, "shard.json")
				testkit.Must(t, os.Remove(way))
				testkit.Must(t, os.Mkdir(way, 0o700))
			}, func() { testkit.Must(t, os.Remove(way)) }
		}},
		{"renamed from the start", 0, func(t *testing.T, dir string) (fail, mend func()) {
			return func() { testkit.Must(t, os.Rename(dir, dir+".old")) },
				func() { testkit.Must(t, os.Rename(dir+".old", dir)) }
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := t.TempDir()
			dir, path := filepath.Join(folder, "experiment"), filepath.Join(folder, "memory")
			fail, mend := tc.disk(t, dir)
			job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64, Path: path,
				Boot: experiment.BootID()})
			a := newApplication(job, 0, monotonic)
			wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light")})
			calls := uint64(0)
			refuses := func() bool { _, record := job.Masks(); return record&shm.RecordFull != 0 }
			call := func(n int) {
				for range n {
					a.allReduce(calls)
					calls++
				}
			}
			call(tc.first)
			testkit.Require(t, shmtest.Await(func() bool { return job.State() == shm.CollectorReady }), "not ready")
			if tc.first > 0 {
				flushAll(t, job)
			}
			fail()
			for i := 0; i < 400 && !refuses(); i++ {
				call(20)
				flushAll(t, job)
				time.Sleep(time.Millisecond)
			}
			testkit.Require(t, refuses(), "the plugin goes on recording")
			call(300) // what other threads were writing
			process.end()
			testkit.Check(t, wait() != nil, "the collector tells of no error")
			mend()
			n, err := Salvage(dir)
			testkit.Check(t, n == 1 && err == nil, "%d, %v", n, err)
			_, err = os.Lstat(path)
			testkit.Check(t, os.IsNotExist(err), "the memory is still there: %v", err)
			total, lost, finished := uint64(0), uint64(0), false
			for _, e := range shards(t, dir) {
				total += starts(e.Process)
				finished = finished || e.Process.Finished
				for _, byType := range e.Process.Counts.Lost {
					for _, n := range byType {
						lost += n
					}
				}
			}
			testkit.Check(t, total == calls*perCall && lost <= 0 && finished,
				"%d starts of %d, %d lost, finished %v", total, calls*perCall, lost, finished)
		})
	}
}

// Job and collector are both killed: everything that was recorded is in the shards afterwards, each record once.
func TestSalvage(t *testing.T) {
	for _, mode := range []string{"trace", "record"} {
		t.Run(mode, func(t *testing.T) {
			dir := t.TempDir()
			job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
			path, keep := inFile(t, job)
			a := newApplication(job, 0, monotonic)
			collector := startCollector(t, job, "collector", "NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light",
				"NCCL_OTF2_MODE="+mode, "RANK=3", "WORLD_SIZE=4")
			const calls = 300
			for i := range uint64(calls) {
				a.allReduce(i)
			}
			flushAll(t, job)
			p := onlyShard(t, dir).Process
			testkit.Check(t, p.Memory == (provenance.Memory{Kind: "shm", Path: path}), "memory %+v", p.Memory)
			collector.Process.Kill()
			collector.Wait()
			for i := range uint64(calls) {
				a.allReduce(calls + i)
			}
			keep()
			// The process lives: its plugin will see to it.
			n, err := Salvage(dir)
			testkit.Check(t, n == 0 && err == nil, "of a living process: %d, %v", n, err)
			process.end()
			n, err = Salvage(dir)
			testkit.Require(t, n == 1 && err == nil, "%d, %v", n, err)
			_, err = os.Lstat(path)
			testkit.Check(t, os.IsNotExist(err), "the file is still there: %v", err)
			total, done := uint64(0), 0
			for _, e := range shards(t, dir) {
				total += starts(e.Process)
				if e.State == experiment.Done {
					done++
					testkit.Check(t, e.Process.Launcher.Rank == 3 && e.Process.Settings["EVENTS"] == "light" &&
						e.Process.Finished, "%+v", e.Process)
				}
			}
			want := uint64(2 * calls * perCall)
			if mode == "record" { // the second shard counts what is in the file that it goes on with
				want += calls * perCall
			}
			testkit.Check(t, total == want && done == 1, "%d starts, want %d; %d shards are done", total, want, done)
			n, err = Salvage(dir)
			testkit.Check(t, n == 0 && err == nil, "a second time: %d, %v", n, err)
		})
	}
}

// In the usual course the collector removes the file; one that dies just before leaves it to Salvage.
func TestMemoryFileIsRemoved(t *testing.T) {
	dir := t.TempDir()
	job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic})
	path, keep := inFile(t, job)
	a := newApplication(job, 0, monotonic)
	keep()
	file := testkit.Value(os.OpenFile(path, os.O_RDWR, 0))(t)
	fd := testkit.Value(unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3))(t)
	testkit.Must(t, file.Close())
	process.end()
	testkit.Value(Run(t.Context(), Options{FD: fd, Lookup: environment("NCCL_OTF2_DIR=" + dir)}))(t)
	_, err := os.Lstat(path)
	testkit.Check(t, os.IsNotExist(err), "the file is still there: %v", err)
	before := starts(onlyShard(t, dir).Process)

	a.allReduce(0)
	keep()
	n, err := Salvage(dir)
	testkit.Check(t, n == 0 && err == nil, "%d, %v", n, err)
	_, err = os.Lstat(path)
	testkit.Check(t, os.IsNotExist(err), "the file is still there: %v", err)
	after := starts(onlyShard(t, dir).Process)
	testkit.Check(t, after == before, "%d starts, before %d", after, before)
}

// Only the process's own file is touched.
func TestSalvageTouchesNothingElse(t *testing.T) {
	for _, tc := range []struct {
		name string
		put  func(path, other string) error
		err  bool
	}{
		{"a link", func(path, other string) error { return os.Symlink(other, path) }, true},
		{"another process's", func(path, other string) error { return os.Rename(other, path) }, false},
		{"rubbish", func(path, _ string) error { return os.WriteFile(path, make([]byte, 9000), 0o600) }, true},
		{"a folder", func(path, _ string) error { return os.Mkdir(path, 0o700) }, true},
		{"nothing", func(string, string) error { return nil }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic})
			path, _ := inFile(t, job)
			collector := startCollector(t, job, "collector", "NCCL_OTF2_DIR="+dir)
			collector.Process.Kill()
			collector.Wait()
			process.end()
			job.Header().PIDStart++ // in the file, not in the shard
			job.Header().MemoryPath = [128]byte{}
			other, keep := inFile(t, job)
			keep()
			testkit.Must(t, tc.put(path, other))
			n, err := Salvage(dir)
			testkit.Check(t, n == 0 && (err != nil) == tc.err, "%d, %v", n, err)
			_, err = os.Lstat(path)
			testkit.Check(t, tc.name == "nothing" || err == nil, "%v", err)
			testkit.Check(t, len(shards(t, dir)) == 1, "a shard was made")
		})
	}
}

// inUse leaves a file of a killed job and a killed collector that is still in use, as it is until both are gone for
// good.
func inUse(t *testing.T, dir string) (path string, calls uint64, letGo func()) {
	t.Helper()
	job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic})
	path, keep := inFile(t, job)
	a := newApplication(job, 0, monotonic)
	collector := startCollector(t, job, "collector", "NCCL_OTF2_DIR="+dir)
	a.allReduce(0)
	flushAll(t, job)
	collector.Process.Kill()
	collector.Wait()
	a.allReduce(1)
	keep()
	process.end()
	user := testkit.Value(os.Open(path))(t)
	testkit.Must(t, unix.Flock(int(user.Fd()), unix.LOCK_SH|unix.LOCK_NB))
	return path, 2, func() { user.Close() }
}

// A file that is in use for a moment more is waited for.
func TestSalvageWaitsForTheKilled(t *testing.T) {
	defer func(limit time.Duration) { releaseLimit = limit }(releaseLimit)
	releaseLimit = 5 * time.Minute
	dir := t.TempDir()
	path, calls, letGo := inUse(t, dir)
	go func() {
		time.Sleep(100 * time.Millisecond)
		letGo()
	}()
	n, err := Salvage(dir)
	testkit.Check(t, n == 1 && err == nil, "%d, %v", n, err)
	_, err = os.Lstat(path)
	testkit.Check(t, os.IsNotExist(err), "the file is still there: %v", err)
	total := uint64(0)
	for _, e := range shards(t, dir) {
		total += starts(e.Process)
	}
	testkit.Check(t, total == calls*perCall, "%d starts, want %d", total, calls*perCall)
}

// One that stays in use is named, and left for the next time.
func TestSalvageTellsOfFilesInUse(t *testing.T) {
	defer func(limit time.Duration) { releaseLimit = limit }(releaseLimit)
	releaseLimit = 0
	dir := t.TempDir()
	path, _, letGo := inUse(t, dir)
	n, err := Salvage(dir)
	testkit.Check(t, n == 0 && err != nil && strings.Contains(err.Error(), path+": it is in use"), "%d, %v", n, err)
	testkit.Check(t, len(shards(t, dir)) == 1, "a shard was made")
	letGo()
	n, err = Salvage(dir)
	testkit.Check(t, n == 1 && err == nil, "when nobody uses it: %d, %v", n, err)
}

// Two programs save one file: the second one, which had opened it before the first removed it, takes nothing.
func TestSalvageOfAFileThatWasSavedMeanwhile(t *testing.T) {
	defer func(limit time.Duration) { releaseLimit = limit }(releaseLimit)
	releaseLimit = 5 * time.Minute
	dir := t.TempDir()
	path, calls, letGo := inUse(t, dir)
	letGo()
	e := onlyShard(t, dir)
	fd := testkit.Value(unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0))(t)
	n, err := Salvage(dir)
	testkit.Require(t, n == 1 && err == nil, "%d, %v", n, err)
	memory, _, err := takeLeft(fd, e.Process, time.Now())
	testkit.Check(t, memory == nil && err == nil, "the second: %v, %v", memory, err)
	total := uint64(0)
	for _, e := range shards(t, dir) {
		total += starts(e.Process)
	}
	testkit.Check(t, total == calls*perCall, "%d starts, want %d", total, calls*perCall)
}
