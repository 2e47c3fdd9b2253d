// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"ncclotf2/plugin/shm"
)

// processWatch tells when the job process has ended.
type processWatch struct {
	pidfd int // −1: there is none, /proc is looked at
	pid   int
	start uint64
	dead  bool
}

// watchProcess begins to watch. The pid must be that of the process with that start time: otherwise
// the process has ended, and the number was given to another.
func watchProcess(pid int, start uint64) (*processWatch, error) {
	w := &processWatch{pid: pid, start: start}
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
		w.pidfd = fd
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), // ended; or a job that has unshared its pid namespace
		errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // Linux before 5.3; a sandbox that does not know it
		w.pidfd = -1
	default:
		return nil, fmt.Errorf("process %d cannot be watched: %w", pid, err)
	}
	// After opening: from here on the descriptor means this process and no later one.
	w.dead = !w.same()
	return w, nil
}

func (w *processWatch) same() bool {
	start, err := shm.ProcessStart(w.pid)
	return err == nil && start == w.start
}

// gone tells that the process has ended.
func (w *processWatch) gone() bool {
	if w.dead {
		return true
	}
	if w.pidfd < 0 {
		w.dead = !w.same()
		return w.dead
	}
	fds := []unix.PollFd{{Fd: int32(w.pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	w.dead = err == nil && n > 0
	return w.dead
}

func (w *processWatch) close() {
	if w.pidfd >= 0 {
		unix.Close(w.pidfd)
		w.pidfd = -1
	}
}
