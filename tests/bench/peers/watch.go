// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/usage"
)

// memory is what a process and its collector had at most, as far as it was seen, in MiB.
type memory struct {
	job       float64 // with the rings
	collector float64 // without them; 0: none was seen
}

// between is how long nobody looks: looking takes the machine's time, too.
const between = 50 * time.Millisecond

// watch looks at a process while it runs, and at its collector. Plugins without a collector are watched the same way,
// so that this costs all of them the same.
func watch(job int) <-chan memory {
	done := make(chan memory, 1)
	go func() {
		var m memory
		for m.look(job) {
			time.Sleep(between)
		}
		done <- m
	}()
	return done
}

func (m *memory) look(job int) bool {
	u, err := usage.Of(job)
	if err != nil {
		return false
	}
	m.job = max(m.job, float64(u.Total())/(1<<20))
	if collector, err := usage.Collector(job, 0); err == nil {
		u, _ = usage.Of(collector) // none, if it has ended since
		m.collector = max(m.collector, float64(u.Own)/(1<<20))
	}
	return true
}

// adopt makes this process the parent of collectors whose jobs have ended.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// reap waits for the end of all children of this process, which are collectors once the job has been waited for, and
// tells how much time of processors they took.
func reap() (spent time.Duration, err error) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, err
	}
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				return spent, err
			}
			var took unix.Rusage
			if _, err := wait(pid, &took); err != nil {
				return spent, err
			}
			spent += time.Duration(took.Utime.Nano() + took.Stime.Nano())
		}
	}
	return spent, nil
}

func wait(pid int, took *unix.Rusage) (n int, err error) {
	for {
		if n, err = unix.Wait4(pid, nil, 0, took); err != unix.EINTR {
			return n, err
		}
	}
}
