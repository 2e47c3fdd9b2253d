// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// span is the time that a part of a case took: on the wall clock and on the processors, all threads together. The
// latter hardly depends on what else runs on the machine.
type span struct {
	Wall int64 `json:"wall_ns"`
	CPU  int64 `json:"cpu_ns"`
}

// now returns the readings of both clocks.
func now() span {
	var cpu unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &cpu); err != nil {
		panic(err) // this clock is in every Linux
	}
	return span{int64(time.Since(start)), cpu.Nano()}
}

var start = time.Now()

func (s span) since(from span) span { return span{s.Wall - from.Wall, s.CPU - from.CPU} }
func (s span) plus(t span) span     { return span{s.Wall + t.Wall, s.CPU + t.CPU} }

// outcome is what a process that ran one case prints, ours and libotf2's alike.
type outcome struct {
	Events    uint64          `json:"events"`
	Sum       uint64          `json:"sum"` // of all times, fields and attribute values read, modulo 2^64
	OpenFiles int             `json:"open_files"`
	Phases    map[string]span `json:"phases"`
	RSS       int64           `json:"rss_kib"` // largest
}

// peakRSS returns the largest resident size of this process in KiB. Not getrusage's: that begins with the size of the
// process that started this one.
func peakRSS() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")), 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}

// openFiles counts the open files of this process, the standard ones and those of Go's runtime included.
func openFiles() (int, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	return len(entries) - 1, err // without the folder just read
}

// runCase runs a program that prints an outcome.
func runCase(program string, args ...string) (*outcome, error) {
	cmd := exec.Command(program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, &runError{strings.Join(append([]string{filepath.Base(program)}, args...), " "), err, errs.String()}
	}
	o := new(outcome)
	if err := json.Unmarshal(out.Bytes(), o); err != nil {
		return nil, fmt.Errorf("%s printed %q: %w", program, out.String(), err)
	}
	return o, nil
}

// runError is the failure of a process.
type runError struct {
	command string
	err     error
	stderr  string
}

func (e *runError) Error() string {
	const most = 1000 // libotf2 reports every level of its calls for every file
	text := strings.TrimSpace(e.stderr)
	if len(text) > most {
		text = "… " + text[len(text)-most:]
	}
	return fmt.Sprintf("%s: %v: %s", e.command, e.err, text)
}

// runPrinter runs a tool with its output thrown away and returns the times of its process.
func runPrinter(program string, args ...string) (span, error) {
	cmd := exec.Command(program, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return span{}, &runError{filepath.Base(program), err, errs.String()}
	}
	wall := time.Since(begin)
	return span{int64(wall), int64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())}, nil
}
