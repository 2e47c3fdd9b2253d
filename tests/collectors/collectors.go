// SPDX-License-Identifier: Apache-2.0

// Package collectors finds, for tests, the collectors of an experiment directory.
package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Programs are the names that the kernel has for collectors: the program that the plugin starts, and the tool in its
// place, or as what makes the archive for it.
var Programs = []string{"nccl-otf2", "nccl-otf2-colle"}

// Of finds the processes that work for an experiment directory, by their environment: collectors, unless names of
// other programs are given.
func Of(dir string, programs ...string) (pids []int) {
	if len(programs) == 0 {
		programs = Programs
	}
	wanted := []byte("NCCL_OTF2_DIR=" + dir + "\x00")
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		comm, _ := os.ReadFile(filepath.Join(p, "comm"))
		if !slices.Contains(programs, string(bytes.TrimSpace(comm))) {
			continue
		}
		env, _ := os.ReadFile(filepath.Join(p, "environ"))
		if bytes.Contains(append(env, 0), wanted) {
			if pid, err := strconv.Atoi(filepath.Base(p)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Follows reports whether a collector has begun the shard of a process. One that dies before is replaced by a spool
// file, whose last 10 ms are not in any file while the job runs.
func Follows(collector, pid int) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", collector))
	for _, fd := range fds {
		lock, err := os.Readlink(fd)
		if err != nil || filepath.Base(lock) != "lock" {
			continue
		}
		if p, err := experiment.Read(filepath.Dir(lock)); err == nil && p.PID == pid {
			return true
		}
	}
	return false
}

// Kill kills a process and waits until it has ended, which takes a while on a busy machine. A program that goes on before
// does not know yet that its collector has gone.
func Kill(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return err
	}
	ended := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		if n, err := unix.Poll(ended, 1000); n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return fmt.Errorf("process %d does not end", pid)
}

// Await waits until all collectors of a directory have ended and let go of their shards.
func Await(t testing.TB, dir string) {
	t.Helper()
	atWork := func() bool {
		entries, err := experiment.List(dir)
		testkit.Require(t, err == nil || errors.Is(err, fs.ErrNotExist), "%v", err)
		return len(Of(dir)) > 0 || slices.ContainsFunc(
			entries, func(e experiment.Entry) bool { return e.State == experiment.Writing })
	}
	for deadline := time.Now().Add(5 * time.Minute); atWork(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("collectors %v are still at work in %s", Of(dir), dir)
		}
	}
}
