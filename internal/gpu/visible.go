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

// located is what one of CUDA's devices is: a GPU's number in the order of PCI addresses, or a UUID or the beginning of
// one.
type located struct {
	index int // −1: see uuid
	uuid  string
}

// locate lists what the devices of a process are, by CUDA's numbers from 0, at least to number n; source is how it
// knows, see Identity.Guess. False if it is not certain. sameModel says that all GPUs of the machine are of one kind:
// CUDA then numbers them by their PCI addresses; else it puts the fastest first, unless CUDA_DEVICE_ORDER tells
// otherwise.
//
// CUDA takes the entries of CUDA_VISIBLE_DEVICES up to the first that names no device. Which UUIDs do, and whether two
// entries are one device, the caller has to see.
func locate(n int, variable func(string) (string, bool), sameModel bool) (devices []located, source string, ok bool) {
	if n < 0 || variable == nil {
		return nil, "", false
	}
	order, _ := variable(deviceOrder)
	byAddress := sameModel || order == "PCI_BUS_ID"
	list, set := variable(visibleDevices)
	if !set {
		for i := range n + 1 {
			devices = append(devices, located{index: i})
		}
		return devices, "ordinal", byAddress
	}
	for e := range strings.SplitSeq(list, ",") {
		d, ok := entry(strings.TrimSpace(e))
		if !ok {
			break
		}
		if d.uuid == "" && !byAddress {
			return nil, "", false
		}
		devices = append(devices, d)
	}
	return devices, visibleDevices, n < len(devices)
}

// entry reads one of CUDA_VISIBLE_DEVICES.
func entry(text string) (located, bool) {
	if i, err := strconv.Atoi(text); err == nil {
		return located{index: i}, i >= 0
	}
	for _, prefix := range []string{"GPU-", "MIG-"} {
		if _, ok := cutPrefix(text, prefix); ok {
			return located{index: -1, uuid: text}, true
		}
	}
	return located{}, false
}
