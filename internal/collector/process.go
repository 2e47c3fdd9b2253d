// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// processWatch detects when the job process ends, and how.
//
// It waits in a separate goroutine, so that the time is right however busy the collector is. Only the parent can fetch
// a process's exit status. Linux 6.15 and later also give it to others through the pidfd. Earlier versions show it in
// /proc until the parent has fetched it. The parent is usually faster, but a process with much memory, or a GPU, takes
// a while to exit, and the status is visible from the start of the exit. So /proc is read repeatedly.
type processWatch struct {
	pidfd int // −1: none, so /proc is polled
	pid   int
	start uint64

	quit  [2]int        // a pipe; closing its write end ends the watch
	over  chan struct{} // closed when the watch ends; the fields below are set before
	ended bool
	end   ending
}

// ending describes the end of the process.
type ending struct {
	raw    uint64  // time by CLOCK_MONOTONIC_RAW; 0: before the watch began
	status *uint32 // as in waitpid(2); nil: unknown
}

// lookEvery is the interval at which /proc is read if the system does not keep the status.
const lookEvery = 20 * time.Millisecond

// watchProcess starts watching a process. If the process with that pid has another start time, the watched one has
// ended, and its pid was reused.
func watchProcess(pid int, start uint64) (*processWatch, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), // ended; or in another pid namespace
		errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // Linux before 5.3; a sandbox without the call
		fd = -1
	default:
		return nil, fmt.Errorf("process %d cannot be watched: %w", pid, err)
	}
	return watchDescriptor(fd, pid, start)
}

func watchDescriptor(pidfd, pid int, start uint64) (*processWatch, error) {
	w := &processWatch{pidfd: pidfd, pid: pid, start: start, over: make(chan struct{})}
	if err := unix.Pipe2(w.quit[:], unix.O_CLOEXEC); err != nil {
		if pidfd >= 0 {
			unix.Close(pidfd)
		}
		return nil, err
	}
	// Compare only now: the descriptor always means the same process, the pid does not.
	if !w.same() {
		w.ended = true
		close(w.over)
		return w, nil
	}
	stat, _ := os.Open(fmt.Sprintf("/proc/%d/task/%d/stat", pid, pid)) // nil: the status stays unknown
	go w.watch(stat)
	return w, nil
}

func (w *processWatch) same() bool {
	start, err := shm.ProcessStart(w.pid)
	return err == nil && start == w.start
}

// watch waits for the end of the process, or of the watch.
func (w *processWatch) watch(stat *os.File) {
	defer close(w.over)
	defer stat.Close()
	wait := int(lookEvery.Milliseconds())
	if w.pidfd >= 0 && tellsExits() {
		wait = -1
	}
	// poll ignores descriptor −1
	fds := []unix.PollFd{{Fd: int32(w.quit[0]), Events: unix.POLLIN}, {Fd: int32(w.pidfd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, wait); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if fds[0].Revents != 0 {
			return
		}
		if w.pidfd < 0 && !w.same() || fds[1].Revents != 0 {
			break
		}
		w.readStatus(stat, false)
	}
	w.end.raw = shm.ReadClock(shm.ClockMonotonic).Raw
	w.ended = true
	// The status is in /proc until the parent has fetched it, and then available from the pidfd.
	for range 10 {
		if w.readStatus(stat, true) || w.askExitStatus() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// readStatus reads the status in /proc and reports whether it is final. It also notes a status other than 0 before the
// process is over: the process is exiting, and the status may be gone later.
func (w *processWatch) readStatus(stat *os.File, over bool) bool {
	var text [1024]byte
	n, _ := stat.ReadAt(text[:], 0)
	state, status, ok := shm.ThreadStatus(text[:n])
	dead := state == 'Z' || state == 'X'
	stopped := state == 'T' || state == 't' // for a stopped process, it is the stopping signal
	if ok && (over && dead || !over && status != 0 && !stopped) {
		w.end.status = &status
	}
	return ok && dead
}

// askExitStatus gets the status of a process that its parent has already waited for. It returns false if the system
// does not keep it.
func (w *processWatch) askExitStatus() bool {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if w.pidfd < 0 || unix.IoctlPidfdInfo(w.pidfd, &info) != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return false
	}
	status := uint32(info.Exit_code)
	w.end.status = &status
	return true
}

// tellsExits reports whether the system keeps the status of processes that have been waited for (Linux 6.15 and later).
func tellsExits() bool {
	var name unix.Utsname
	var major, minor int
	if unix.Uname(&name) != nil {
		return false
	}
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 6 || major == 6 && minor >= 15)
}

// describe returns the end of the process for its shard. now is the time of the last round, which was later.
func (e *ending) describe(memory *shm.Memory, line *timeline, now shm.ClockTuple) *description.End {
	end := &description.End{Status: e.status, Called: memory.Ended()}
	switch {
	case line.host:
		end.Time = line.time(now.Ticks)
	case e.raw != 0:
		end.Time = line.anchor.Real + (e.raw - line.anchor.Raw)
	}
	return end
}

// hasEnded reports whether the process has ended; if so, end is set.
func (w *processWatch) hasEnded() bool {
	select {
	case <-w.over:
		return w.ended
	default:
		return false
	}
}

func (w *processWatch) close() {
	if w.quit[1] < 0 {
		return
	}
	unix.Close(w.quit[1])
	<-w.over
	unix.Close(w.quit[0])
	w.quit[1] = -1
	if w.pidfd >= 0 {
		unix.Close(w.pidfd)
	}
}
