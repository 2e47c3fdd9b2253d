// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ProcessStart returns when a process began, in clock ticks since boot: field 22 of /proc/<pid>/stat.
// Together with the pid it names a process for good. A process that has ended and waits for its
// parent is an error, like one that does not exist.
func ProcessStart(pid int) (uint64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// Field 2, the command in parentheses, may hold spaces and parentheses.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	const state, threads, start = 0, 17, 19 // fields 3, 20 and 22
	if len(fields) <= start {
		return 0, fmt.Errorf("/proc/%d/stat: %d fields after the command", pid, len(fields))
	}
	// A process whose first thread has ended, and whose others have not, is a zombie with threads.
	if s, n := fields[state][0], string(fields[threads]); s == 'X' || s == 'Z' && (n == "0" || n == "1") {
		return 0, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	return strconv.ParseUint(string(fields[start]), 10, 64)
}

// ThreadStatus reads the state of a thread and its exit status from /proc/<pid>/task/<tid>/stat: fields 3 and 52. The
// status is that of waitpid(2) once the thread is about to end; it is 0 where the system keeps it from the reader.
func ThreadStatus(stat []byte) (state byte, status uint32, ok bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const exitCode = 49
	if len(fields) <= exitCode || len(fields[0]) != 1 {
		return 0, 0, false
	}
	code, err := strconv.ParseUint(string(fields[exitCode]), 10, 32)
	return fields[0][0], uint32(code), err == nil
}
