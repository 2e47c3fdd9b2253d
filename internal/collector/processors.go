// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
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
	idle   time.Duration // of the processors, so far
	used   []time.Duration
	itself func() time.Duration // processor time of the collector so far
	own    time.Duration
}

// quotaGroup is a control group that may have a quota of processor time.
type quotaGroup struct {
	quota func() (processors float64, ok bool) // false: it has none now
	used  func() (time.Duration, bool)         // so far
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
	w.used = make([]time.Duration, len(w.groups))
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
	for _, g := range w.groups {
		if quota, limited := g.quota(); limited {
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
	for i, g := range w.groups {
		used, known := g.used()
		if quota, limited := g.quota(); known && limited {
			processors = min(processors, quota-share(used-w.used[i]))
		}
		w.used[i] = used
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

// number reads a file of one number.
func (w *processorWatch) number(name string) (int64, bool) {
	text, err := w.read(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
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
	group, path, other := w.groupOf2, paths[""], paths[""]
	if first, ok := paths["cpu"]; ok {
		group, path, other = w.groupOf1, first, paths["cpuacct"]
	}
	for {
		if g, there := group(path, other); there {
			groups = append(groups, g)
		}
		if len(path) <= 1 || len(other) <= 1 {
			return groups
		}
		path, other = filepath.Dir(path), filepath.Dir(other)
	}
}

// groupOf2 is a group of version 2: "200000 100000" in cpu.max are the microseconds in each period and the period,
// "max" is none.
func (w *processorWatch) groupOf2(path, _ string) (g quotaGroup, there bool) {
	limit, usage := filepath.Join(groupsFolder, path, "cpu.max"), filepath.Join(groupsFolder, path, "cpu.stat")
	g.quota = func() (float64, bool) {
		text, err := w.read(limit)
		f := bytes.Fields(text)
		if err != nil || len(f) != 2 {
			return 0, false
		}
		quota, bad := strconv.ParseInt(string(f[0]), 10, 64)
		period, worse := strconv.ParseInt(string(f[1]), 10, 64)
		return float64(quota) / float64(period), bad == nil && worse == nil && period > 0
	}
	g.used = func() (time.Duration, bool) {
		text, err := w.read(usage)
		if err != nil {
			return 0, false
		}
		first, _, _ := bytes.Cut(text, []byte("\n"))
		number, ok := bytes.CutPrefix(first, []byte("usage_usec "))
		us, err := strconv.ParseInt(string(number), 10, 64)
		return time.Duration(us) * time.Microsecond, ok && err == nil
	}
	_, err := os.Stat(filepath.Join(w.root, limit))
	return g, err == nil
}

// groupOf1 is a group of version 1, by its paths for quotas and for processor time. A quota below 0 is none.
func (w *processorWatch) groupOf1(cpu, cpuacct string) (g quotaGroup, there bool) {
	limits, usage := filepath.Join(groupsFolder, "cpu", cpu),
		filepath.Join(groupsFolder, "cpuacct", cpuacct, "cpuacct.usage")
	g.quota = func() (float64, bool) {
		quota, ok := w.number(filepath.Join(limits, "cpu.cfs_quota_us"))
		if !ok || quota < 0 {
			return 0, false
		}
		period, ok := w.number(filepath.Join(limits, "cpu.cfs_period_us"))
		return float64(quota) / float64(period), ok && period > 0
	}
	g.used = func() (time.Duration, bool) {
		ns, ok := w.number(usage)
		return time.Duration(ns), ok
	}
	_, err := os.Stat(filepath.Join(w.root, limits, "cpu.cfs_quota_us"))
	return g, err == nil
}
