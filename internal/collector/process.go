// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// processWatch tells when the job process has ended, and how.
//
// It waits in a goroutine of its own, so that the time is right however busy the collector is. The exit status of a
// process is meant for its parent. Linux 6.15 and later give it to others through the pidfd. Before that it is in /proc
// until the parent has fetched it. The parent is mostly quicker, but a process with much memory, or a GPU, takes a
// while to exit, and its status is there from the beginning of that. Therefore /proc is read again and again.
type processWatch struct {
	pidfd int // −1: there is none, /proc is looked at
	pid   int
	start uint64

	quit  [2]int        // a pipe: closing its second end ends the watch
	over  chan struct{} // closed when the watch is; the rest is set before
	ended bool
	end   ending
}

// ending is the end of the process.
type ending struct {
	raw    uint64  // CLOCK_MONOTONIC_RAW; 0: it was before the watch began
	status *uint32 // as of waitpid(2); nil: unknown
}

// lookEvery is how often /proc is read if the system does not keep the status.
const lookEvery = 20 * time.Millisecond

// watchProcess begins to watch. The pid must be that of the process with that start time: otherwise
// the process has ended, and the number was given to another.
func watchProcess(pid int, start uint64) (*processWatch, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), // ended; or a job that has unshared its pid namespace
		errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // Linux before 5.3; a sandbox that does not know it
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
	// After opening: from here on the descriptor means this process and no later one.
	if !w.same() {
		w.ended = true
		close(w.over)
		return w, nil
	}
	stat, _ := os.Open(fmt.Sprintf("/proc/%d/task/%d/stat", pid, pid)) // nil: the status will be unknown
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
	// −1 is left alone
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
		w.look(stat, false)
	}
	w.end.raw = shm.ReadClock(shm.ClockMonotonic).Raw
	w.ended = true
	// The status is in the first place until the parent has fetched it, and then in the second.
	for range 10 {
		if w.look(stat, true) || w.ask() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// look reads the status in /proc and reports whether it is final. If the process is not over, a status other than 0 is
// noted, too: the process is exiting, and afterwards it may be too late.
func (w *processWatch) look(stat *os.File, over bool) bool {
	var text [1024]byte
	n, _ := stat.ReadAt(text[:], 0)
	state, status, ok := shm.ThreadStatus(text[:n])
	dead := state == 'Z' || state == 'X'
	stopped := state == 'T' || state == 't' // the signal that did it is there
	if ok && (over && dead || !over && status != 0 && !stopped) {
		w.end.status = &status
	}
	return ok && dead
}

// ask asks the system for the status of a process that has been waited for.
func (w *processWatch) ask() bool {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if w.pidfd < 0 || unix.IoctlPidfdInfo(w.pidfd, &info) != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return false
	}
	status := uint32(info.Exit_code)
	w.end.status = &status
	return true
}

// tellsExits reports whether the system keeps the status of processes that have been waited for: Linux since 6.15.
func tellsExits() bool {
	var name unix.Utsname
	var major, minor int
	if unix.Uname(&name) != nil {
		return false
	}
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 6 || major == 6 && minor >= 15)
}

// describe describes the end for the shard. now is the time of the last round, which came after it.
func (e *ending) describe(memory *shm.Memory, line *timeline, now shm.ClockTuple) *experiment.End {
	end := &experiment.End{Status: e.status, Called: memory.Ended()}
	switch {
	case line.host:
		end.Time = line.time(now.Ticks)
	case e.raw != 0:
		end.Time = line.anchor.Real + (e.raw - line.anchor.Raw)
	}
	return end
}

// gone reports whether the process has ended. Then end is set.
func (w *processWatch) gone() bool {
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
