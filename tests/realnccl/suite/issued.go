// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
)

// Call is one that the application made on a rank, as the driver logged it.
type Call struct {
	replay.Issue
	CommName string
	Type     int  // ncclDataType_t
	Root     int  // of rooted ones; not the rank, as the program has it
	Graph    *int // that the call is captured into; of op "replay", the one that is launched
}

// Kernel is one batch and channel that the pretended GPU ran.
type Kernel struct {
	replay.Kernel
	Launch    int // what a device launched at once has one number
	WorldRank int
	Comm      int    // as in Issue
	Parts     int    // into which the device divides the kernel's threads
	TDone     uint64 // when thread 0 had done its part and stamped the end; T1: when all had
}

// Process is what one of the driver's processes logged.
type Process struct {
	PID     int
	Calls   []Call   // in the order of their returns
	Kernels []Kernel // in the order of their ends
	Delays  []Delay  // in the order of their ends
}

// Delay is one that the program or a setting caused.
type Delay struct {
	Kind  string // "host sleep": by the word sleep
	T, T1 uint64
}

// Logs reads what a run left, by process id.
func Logs(dir string) (map[int]*Process, error) {
	all := make(map[int]*Process)
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		kind, rest, _ := strings.Cut(filepath.Base(f), ".")
		pid, err := strconv.Atoi(strings.TrimSuffix(rest, ".jsonl"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		if all[pid] == nil {
			all[pid] = &Process{PID: pid}
		}
		p := all[pid]
		switch kind {
		case "issue":
			p.Calls, err = lines[Call](f)
		case "kernel":
			p.Kernels, err = lines[Kernel](f)
		case "inject":
			p.Delays, err = lines[Delay](f)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// lines reads a file of JSON objects. One that its writer's death cut off is left out.
func lines[T any](path string) (all []T, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(text) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, v)
	}
	return all, nil
}
