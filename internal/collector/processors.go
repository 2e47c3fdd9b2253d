// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processorWatch measures how many of the processors that the collector may use are unused. It goes by the affinity
// mask (as the job was pinned, or setting CPUS), by how long each of these processors was idle (/proc/stat), and by how
// much of their quotas the control groups have used (cpu.max, or cpu.cfs_quota_us). Processor time of the collector
// itself counts as unused: nobody has to make way for it.
type processorWatch struct {
	root   string // "/"; another one in tests
	mask   *unix.CPUSet
	groups []quotaGroup
	buffer []byte

	asked  time.Time
	idle   time.Duration        // of the processors, so far
	itself func() time.Duration // processor time of the collector so far
	own    time.Duration
}

// quotaGroup is a control group that may have a quota of processor time. All files are below the root.
type quotaGroup struct {
	limits []string      // files of the quota and of the period that it is for, in microseconds
	usage  string        // file that begins with the processor time so far
	unit   time.Duration // of that time
	before time.Duration // processor time when it was read last
}

// tickTime is a unit of /proc/stat (USER_HZ), the same on all architectures that the collector runs on.
const tickTime = 10 * time.Millisecond

// longestSpare is the longest time over which unused processors are averaged: a mean over more says little about now.
const longestSpare = 3 * time.Second

// newProcessorWatch reads the files below a root. The mask is that of the calling thread.
func newProcessorWatch(root string) *processorWatch {
	w := &processorWatch{root: root, itself: ownTime}
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) == nil { // it fails with more CPUs than a set has: then all count
		w.mask = &mask
	}
	w.groups = w.findGroups()
	return w
}

func ownTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// usable is how many processors the collector and the job may use together. False where that cannot be known.
func (w *processorWatch) usable() (processors float64, ok bool) {
	_, n, ok := w.idleTime()
	processors = float64(n)
	for i := range w.groups {
		if quota, limited := w.quota(&w.groups[i]); limited {
			processors = min(processors, quota)
		}
	}
	return processors, ok
}

// spare is how many processors were unused since the last question. False where that cannot be known, or that was too
// long ago.
func (w *processorWatch) spare(now time.Time) (processors float64, ok bool) {
	idle, _, ok := w.idleTime()
	if !ok {
		return 0, false
	}
	took := now.Sub(w.asked)
	ok = !w.asked.IsZero() && took > 0 && took <= longestSpare
	share := func(d time.Duration) float64 { return float64(d) / float64(took) }
	processors = share(idle - w.idle)
	for i := range w.groups {
		g := &w.groups[i]
		used, known := w.used(g)
		if quota, limited := w.quota(g); known && limited {
			processors = min(processors, quota-share(used-g.before))
		}
		g.before = used
	}
	own := w.itself()
	processors += share(own - w.own)
	w.asked, w.idle, w.own = now, idle, own
	return processors, ok
}

// idleTime is for how long the processors of the mask have been idle so far, all together, and how many they are.
func (w *processorWatch) idleTime() (idle time.Duration, processors int, ok bool) {
	text, err := w.read("proc/stat")
	if err != nil {
		return 0, 0, false
	}
	for line := range bytes.Lines(text) {
		name, numbers, _ := bytes.Cut(line, []byte(" "))
		number, isCPU := bytes.CutPrefix(name, []byte("cpu"))
		if !isCPU {
			break
		}
		n, err := strconv.Atoi(string(number))
		if err != nil || w.mask != nil && !w.mask.IsSet(n) { // the first line is of all
			continue
		}
		f := bytes.Fields(numbers) // user, nice, system, idle, iowait, …
		if len(f) < 5 {
			return 0, 0, false
		}
		for _, field := range f[3:5] {
			ticks, err := strconv.ParseInt(string(field), 10, 64)
			if err != nil {
				return 0, 0, false
			}
			idle += time.Duration(ticks) * tickTime
		}
		processors++
	}
	return idle, processors, processors > 0
}

// read reads a small file below the root. What it returns is valid until the next call.
func (w *processorWatch) read(name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(w.root, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w.buffer = w.buffer[:0]
	for {
		w.buffer = slices.Grow(w.buffer, 4096)
		n, err := f.Read(w.buffer[len(w.buffer):cap(w.buffer)])
		w.buffer = w.buffer[:len(w.buffer)+n]
		if err == io.EOF {
			return w.buffer, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// quota is the number of processors that a group may use. False if it has no quota: "max" in version 2 of control
// groups, or a number below 0 in version 1.
func (w *processorWatch) quota(g *quotaGroup) (processors float64, ok bool) {
	var text []byte
	for _, name := range g.limits {
		part, _ := w.read(name)
		text = append(text, part...)
	}
	var quota, period int64
	n, _ := fmt.Sscan(string(text), &quota, &period)
	return float64(quota) / float64(period), n == 2 && quota >= 0 && period > 0
}

// used is the processor time that a group has used so far.
func (w *processorWatch) used(g *quotaGroup) (time.Duration, bool) {
	text, err := w.read(g.usage)
	if err != nil {
		return 0, false
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	n, err := strconv.ParseInt(string(bytes.TrimPrefix(first, []byte("usage_usec "))), 10, 64)
	return time.Duration(n) * g.unit, err == nil
}

// groupsFolder is where the system shows control groups.
const groupsFolder = "sys/fs/cgroup"

// findGroups finds the process's control groups for processors, and those above them, as far as they can be seen: any
// of them may have a quota. In a container the uppermost one that can be seen is its own.
func (w *processorWatch) findGroups() (groups []quotaGroup) {
	text, err := w.read("proc/self/cgroup")
	if err != nil {
		return nil
	}
	paths := make(map[string]string) // by controller; "" is that of all in version 2
	for line := range strings.Lines(string(text)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			for controller := range strings.SplitSeq(f[1], ",") {
				paths[controller] = f[2]
			}
		}
	}
	first, isFirst := paths["cpu"] // else version 2
	path, other := paths[""], paths[""]
	if isFirst {
		path, other = first, paths["cpuacct"]
	}
	for {
		folder := filepath.Join(groupsFolder, path)
		g := quotaGroup{limits: []string{filepath.Join(folder, "cpu.max")}, usage: filepath.Join(folder, "cpu.stat"),
			unit: time.Microsecond}
		if isFirst {
			folder = filepath.Join(groupsFolder, "cpu", path)
			g.limits = []string{filepath.Join(folder, "cpu.cfs_quota_us"), filepath.Join(folder, "cpu.cfs_period_us")}
			g.usage, g.unit = filepath.Join(groupsFolder, "cpuacct", other, "cpuacct.usage"), time.Nanosecond
		}
		if _, err := os.Stat(filepath.Join(w.root, g.limits[0])); err == nil {
			groups = append(groups, g)
		}
		if len(path) <= 1 || len(other) <= 1 {
			return groups
		}
		path, other = filepath.Dir(path), filepath.Dir(other)
	}
}
