// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is what a process has at one moment. Sizes are resident ones, in bytes.
type Usage struct {
	Own     int64 // anonymous memory and pages of files
	Shared  int64 // shared memory: the rings
	Threads int
	Files   int // open descriptors
}

// Total is all resident memory.
func (u Usage) Total() int64 { return u.Own + u.Shared }

// UsageOf looks at a process.
func UsageOf(pid int) (Usage, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	found := 0
	for line := range strings.Lines(string(status)) {
		name, text, _ := strings.Cut(line, ":")
		var add func(n int64)
		switch name {
		case "RssAnon", "RssFile":
			add = func(n int64) { u.Own += n << 10 }
		case "RssShmem":
			add = func(n int64) { u.Shared = n << 10 }
		case "Threads":
			add = func(n int64) { u.Threads = int(n) }
		default:
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("%s/status: %q: %w", dir, line, err)
		}
		add(n)
		found++
	}
	if found != 4 {
		// A process that has ended and was not waited for has no memory any more.
		return Usage{}, fmt.Errorf("%s/status: %w", dir, os.ErrProcessDone)
	}
	files, err := os.ReadDir(filepath.Join(dir, "fd"))
	u.Files = len(files)
	return u, err
}

// Ended reports whether UsageOf failed because the process has ended.
func Ended(err error) bool {
	return errors.Is(err, os.ErrProcessDone) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// ErrNoCollector says that a process has no shared memory of the plugin's, or shares it with nobody.
var ErrNoCollector = errors.New("no collector")

// Collector finds the process that has mapped the same memory as the job process, which is its collector, and waits
// for it for a while.
func Collector(job int, wait time.Duration) (int, error) {
	for end := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		pid, err := collector(job)
		if err == nil || time.Now().After(end) {
			return pid, err
		}
	}
}

func collector(job int) (int, error) {
	memory := mapped(job)
	if len(memory) != 1 {
		return 0, fmt.Errorf("process %d has mapped %d memories of the plugin: %w", job, len(memory), ErrNoCollector)
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	// A fork of the job on its way to become the collector has the memory too, and still runs the job's program.
	program := executable(strconv.Itoa(job))
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == job || !slices.Contains(mapped(pid), memory[0]) {
			continue
		}
		if of := executable(p.Name()); of != "" && of != program {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("nobody shares the memory of process %d: %w", job, ErrNoCollector)
}

// executable is the path of a process's program, empty where it cannot be known.
func executable(pid string) string {
	path, _ := os.Readlink(filepath.Join("/proc", pid, "exe"))
	return path
}

// mapped returns the inodes of the plugin's memories that a process has mapped.
func mapped(pid int) (inodes []string) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "maps"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		// Addresses, permissions, offset, device, inode, name.
		fields := strings.Fields(line)
		if len(fields) >= 6 && strings.HasPrefix(fields[5], "/memfd:nccl-otf2") && !slices.Contains(inodes, fields[4]) {
			inodes = append(inodes, fields[4])
		}
	}
	return inodes
}

// Processor is the time that the threads of a process have been given so far, in seconds; of those that have ended it
// tells nothing.
func Processor(pid int) (seconds float64) {
	files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "schedstat"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended meanwhile
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseFloat(first, 64)
		seconds += ns / 1e9
	}
	return seconds
}
