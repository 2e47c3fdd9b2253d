// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ProcessStart returns when a process began, in clock ticks since boot: field 22 of /proc/<pid>/stat.
// Together with the pid it names a process for good.
func ProcessStart(pid int) (uint64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// Field 2, the command in parentheses, may hold spaces and parentheses.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat: %d fields after the command", pid, len(fields))
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}
