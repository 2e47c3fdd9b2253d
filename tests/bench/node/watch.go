// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/usage"
)

// watch looks at collectors 50 times a second: what they had at their end is what they had at most 20 ms before.
type watch struct {
	each bool // they are found by the processes that they are beside
	pid  int  // the one for all

	mu         sync.Mutex
	jobs       []int
	collectors map[int]float64 // seconds of processor so far
	looks      int
	memory     float64
	rings      float64
	threads    int
	stop, done chan struct{}
}

const (
	look  = 20 * time.Millisecond
	sizes = 10 // looks from one at memory to the next, which is dear
	mib   = 1 << 20
	// ticks of /proc/PID/stat in a second: the kernel's USER_HZ, 100 on all machines that Linux runs NCCL on.
	ticks = 100
)

func (w *watch) begin() {
	w.collectors, w.stop, w.done = make(map[int]float64), make(chan struct{}), make(chan struct{})
	if !w.each {
		w.collectors[w.pid] = 0
	}
	go func() {
		defer close(w.done)
		for {
			select {
			case <-w.stop:
				return
			case <-time.After(look):
				w.look()
			}
		}
	}()
}

// job notes a process whose collector is looked at.
func (w *watch) job(pid int) {
	if !w.each {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, pid)
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.jobs[:0]
	for _, job := range w.jobs {
		if pid, err := usage.Collector(job, 0); err == nil {
			w.collectors[pid] = 0
		} else {
			left = append(left, job)
		}
	}
	w.jobs = left
	for pid := range w.collectors {
		if seconds, err := processor(pid); err == nil { // else it has ended
			w.collectors[pid] = seconds
		}
	}
	if w.looks++; w.looks%sizes != 0 {
		return
	}
	memory, rings, threads := 0.0, 0.0, 0
	for pid := range w.collectors {
		if own, u, err := memoryOf(pid); err == nil {
			memory, rings, threads = memory+own, rings+float64(u.Shared)/mib, threads+u.Threads
		}
	}
	w.memory, w.rings, w.threads = max(w.memory, memory), max(w.rings, rings), max(w.threads, threads)
}

// end says what they took.
func (w *watch) end(c *cost) error {
	close(w.stop)
	<-w.done
	w.look()
	for _, seconds := range w.collectors {
		c.Processor += seconds
	}
	c.Memory, c.Rings, c.Threads = w.memory, w.rings, float64(w.threads)
	if len(w.jobs) > 0 {
		return errors.New("not all collectors were found")
	}
	return nil
}

// memoryOf gives the proportional memory of a process without the rings, MiB, and what else it has.
func memoryOf(pid int) (own float64, u usage.Usage, err error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0, u, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "Pss_Anon:" || f[0] == "Pss_File:") {
			n, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return 0, u, err
			}
			own += n * 1024 / mib
		}
	}
	u, err = usage.Of(pid)
	return own, u, err
}

// processor is how long the threads of a process have run, s.
func processor(pid int) (seconds float64, err error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(after)
	if len(f) < 13 {
		return 0, errors.New("no times in " + string(text))
	}
	for _, text := range f[11:13] { // utime, stime
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, err
		}
		seconds += n / ticks
	}
	return seconds, nil
}
