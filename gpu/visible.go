// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Environment reads the environment that a process was started with. What it has set itself since is not in it.
func Environment(pid int) (func(name string) (string, bool), error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil, err
	}
	vars := make(map[string]string)
	for v := range bytes.SplitSeq(text, []byte{0}) {
		if name, value, ok := strings.Cut(string(v), "="); ok {
			if _, twice := vars[name]; !twice { // getenv takes the first
				vars[name] = value
			}
		}
	}
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, nil
}

// Names of CUDA's variables (CUDA C++ Programming Guide, "CUDA environment variables").
const (
	visibleDevices = "CUDA_VISIBLE_DEVICES"
	deviceOrder    = "CUDA_DEVICE_ORDER"
)

// located is what an ordinal stands for: a GPU's number in the order of PCI addresses, or a UUID or the beginning of one.
type located struct {
	index  int // −1: see uuid
	uuid   string
	source string // Identity.Guess
}

// locate finds out what CUDA's device n of a process is. alike says that all GPUs of the machine are of one kind:
// CUDA then numbers them by their PCI addresses; else it puts the fastest first, unless CUDA_DEVICE_ORDER tells
// otherwise. False if it cannot be told.
//
// CUDA takes the entries of CUDA_VISIBLE_DEVICES up to the first that names no device.
func locate(n int, variable func(string) (string, bool), alike bool) (located, bool) {
	if n < 0 || variable == nil {
		return located{}, false
	}
	order, _ := variable(deviceOrder)
	byAddress := alike || order == "PCI_BUS_ID"
	list, set := variable(visibleDevices)
	if !set {
		return located{index: n, source: "ordinal"}, byAddress
	}
	entries := strings.Split(list, ",")
	if n >= len(entries) {
		return located{}, false
	}
	for _, e := range entries[:n] { // an entry that ends the list leaves nothing for those behind it
		if i, err := strconv.Atoi(strings.TrimSpace(e)); err == nil && i < 0 {
			return located{}, false
		}
	}
	entry := strings.TrimSpace(entries[n])
	if i, err := strconv.Atoi(entry); err == nil {
		return located{index: i, source: visibleDevices}, i >= 0 && byAddress
	}
	if _, gpu := cutPrefix(entry, "GPU-"); gpu {
		return located{index: -1, uuid: entry, source: visibleDevices}, true
	}
	if _, mig := cutPrefix(entry, "MIG-"); mig {
		return located{index: -1, uuid: entry, source: visibleDevices}, true
	}
	return located{}, false
}
