// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// killedSpooler leaves what a process leaves that wrote a raw file, had memory in a file, and was killed: the raw file
// with a half of its calls, the memory with all.
func killedSpooler(t *testing.T, dir string) (file, memory string, calls uint64) {
	t.Helper()
	job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	memory, keep := inFile(t, job)
	a := newApplication(job, 0, monotonic)
	a.thread.KeepForSpool()
	var out bytes.Buffer
	for ; calls < 50; calls++ {
		a.allReduce(calls)
	}
	testkit.Must(t, job.Spool(&out, shm.ReadClock(shm.ClockMonotonic)))
	for ; calls < 100; calls++ {
		a.allReduce(calls)
	}
	keep()
	process.end()
	h := job.Header()
	file = filepath.Join(dir, experiment.Folder,
		fmt.Sprintf("%s-%d-%04x%s", h.Host(), h.PID, uint16(h.Tag), experiment.SpoolSuffix))
	testkit.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	testkit.Write(t, file, out.Bytes())
	return file, memory, calls
}

// savedAndConverted does what `unify` does first, and wants all calls to be in the only shard, and the memory to be
// gone.
func savedAndConverted(t *testing.T, dir, file, memory string, calls uint64) {
	t.Helper()
	n, err := Salvage(dir)
	testkit.Check(t, n == 0 && err == nil, "%d saved, %v", n, err)
	testkit.Must(t, convert(file, dir))
	e := onlyShard(t, dir)
	if n := starts(e.Process); n != calls*perCall || e.State != experiment.Done || len(e.Process.Markers) > 0 {
		t.Errorf("%d starts of %d, state %v, markers %v", n, calls*perCall, e.State, e.Process.Markers)
	}
	_, err = os.Lstat(memory)
	testkit.Check(t, os.IsNotExist(err), "the memory is still there: %v", err)
}

// A conversion that was killed, wherever, before or after it took what the process had in memory, loses nothing of
// that: the next one takes it, or finds it taken.
func TestKilledConversionsLeaveTheMemory(t *testing.T) {
	for name, kill := range map[string]func(t *testing.T, dir, memory string, kept []byte){
		"before it is complete": func(t *testing.T, dir, memory string, kept []byte) {
			testkit.Must(t, os.Remove(filepath.Join(onlyShard(t, dir).Path, "done")))
			testkit.Write(t, memory, kept)
		},
		"before the memory is removed": func(t *testing.T, _, memory string, kept []byte) {
			testkit.Write(t, memory, kept)
		},
		"behind that": func(*testing.T, string, string, []byte) {},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, memory, calls := killedSpooler(t, dir)
			kept := testkit.Read(t, memory)
			savedAndConverted(t, dir, file, memory, calls)
			kill(t, dir, memory, kept)
			savedAndConverted(t, dir, file, memory, calls)
		})
	}
}

// Memory that is in use when a raw file is converted stays, and the next conversion takes it.
func TestMemoryInUseIsTakenLater(t *testing.T) {
	defer func(limit time.Duration) { releaseLimit = limit }(releaseLimit)
	releaseLimit = 0
	dir := t.TempDir()
	file, memory, calls := killedSpooler(t, dir)
	user := testkit.Value(os.Open(memory))(t)
	testkit.Must(t, unix.Flock(int(user.Fd()), unix.LOCK_SH|unix.LOCK_NB))
	for range 2 {
		testkit.Must(t, convert(file, dir))
		if e := onlyShard(t, dir); starts(e.Process) >= calls*perCall || len(e.Process.Markers) != 1 {
			t.Errorf("%d starts, markers %v", starts(e.Process), e.Process.Markers)
		}
	}
	user.Close()
	savedAndConverted(t, dir, file, memory, calls)
}
