// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// sandboxed is the program of life/sandboxed.c, built once for all tests.
var sandboxed = sync.OnceValues(func() (string, error) { return lifeProgram("sandboxed") })

// In a sandbox that lets a system call fail, in the job and in its collector, everything is recorded all the same: by
// the collector, or by the plugin itself, which then says why.
func TestSandboxes(t *testing.T) {
	const count = 500
	program := testkit.Value(sandboxed())(t)
	calls := []struct {
		name string
		call int
		said string // part of what the plugin says; "": nothing; "?": the collector may not be able to run
	}{
		{"madvise", unix.SYS_MADVISE, ""},
		{"memfd_create", unix.SYS_MEMFD_CREATE, "memfd_create is not allowed here"},
		{"flock", unix.SYS_FLOCK, ""},
		{"ftruncate", unix.SYS_FTRUNCATE, "no memory that a collector could share (ftruncate: "},
		{"fallocate", unix.SYS_FALLOCATE, ""},
		{"fsync", unix.SYS_FSYNC, ""},
		{"fdatasync", unix.SYS_FDATASYNC, ""},
		{"sync_file_range", unix.SYS_SYNC_FILE_RANGE, ""},
		{"eventfd2", unix.SYS_EVENTFD2, "?"},
		{"epoll_create1", unix.SYS_EPOLL_CREATE1, "?"},
		{"prctl", unix.SYS_PRCTL, ""},
		{"sched_getaffinity", unix.SYS_SCHED_GETAFFINITY, ""},
		{"sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, ""},
		{"sched_yield", unix.SYS_SCHED_YIELD, ""},
		{"clone3", unix.SYS_CLONE3, "?"}, // the C library does without only if there is none
		{"inotify_init1", unix.SYS_INOTIFY_INIT1, ""},
		{"inotify_add_watch", unix.SYS_INOTIFY_ADD_WATCH, ""},
		{"pidfd_open", unix.SYS_PIDFD_OPEN, ""},
		{"pidfd_send_signal", unix.SYS_PIDFD_SEND_SIGNAL, ""},
		{"waitid", unix.SYS_WAITID, ""},
		{"close_range", unix.SYS_CLOSE_RANGE, ""},
		{"setpriority", unix.SYS_SETPRIORITY, ""},
		{"getpriority", unix.SYS_GETPRIORITY, ""},
		{"setsid", unix.SYS_SETSID, ""},
		{"getrandom", unix.SYS_GETRANDOM, "?"},
		{"prlimit64", unix.SYS_PRLIMIT64, ""},
		{"statfs", unix.SYS_STATFS, ""},
		{"uname", unix.SYS_UNAME, ""},
		{"sysinfo", unix.SYS_SYSINFO, ""},
		{"renameat2", unix.SYS_RENAMEAT2, ""},
		{"linkat", unix.SYS_LINKAT, ""},
		{"openat2", unix.SYS_OPENAT2, ""},
		{"statx", unix.SYS_STATX, ""},
		{"copy_file_range", unix.SYS_COPY_FILE_RANGE, ""},
		{"faccessat2", unix.SYS_FACCESSAT2, ""},
		{"fchmodat2", 452, ""},
		{"fchmod", unix.SYS_FCHMOD, ""},
		{"getcpu", unix.SYS_GETCPU, ""},
		{"tgkill", unix.SYS_TGKILL, ""},
		{"sigaltstack", unix.SYS_SIGALTSTACK, "?"},
		{"setitimer", unix.SYS_SETITIMER, ""},
		{"timer_create", unix.SYS_TIMER_CREATE, ""},
		{"socket", unix.SYS_SOCKET, ""},
		{"getdents64", unix.SYS_GETDENTS64, "?"},
		{"ioctl", unix.SYS_IOCTL, ""},
		{"mincore", unix.SYS_MINCORE, ""},
		{"membarrier", unix.SYS_MEMBARRIER, ""},
		{"restart_syscall", unix.SYS_RESTART_SYSCALL, ""},
	}
	for _, c := range calls {
		for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
			t.Run(fmt.Sprintf("%s/%s", c.name, unix.ErrnoName(errno)), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "experiment")
				wrapper := []string{program, fmt.Sprint(c.call), fmt.Sprint(int(errno))}
				j := beginUnder(t, wrapper, dir, byCollector, count, "finalize", 0)
				j.goOn()
				testkit.Equal(t, j.end(), 0, "status of the host, which said\n%s\n", j.stderr.String())
				said := atEase(j.stderr.String())
				want := c.said
				if want == "?" && said != "" {
					want = "ended before it was ready; raw files are written instead"
				}
				testkit.Check(t, (said == "") == (want == "" || want == "?") &&
					(want == "?" || strings.Contains(said, want)), "the plugin said %q, want %q", said, want)
				if j.collector != 0 {
					gone(t, j.collector)
				}
				oneToN(t, dir, count)
			})
		}
	}
}
