// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Environment reads the environment with which a process was started, without later changes by the process.
func Environment(pid int) (func(name string) (string, bool), error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil, err
	}
	vars := make(map[string]string)
	for v := range bytes.SplitSeq(text, []byte{0}) {
		if name, value, ok := strings.Cut(string(v), "="); ok {
			if _, twice := vars[name]; !twice { // getenv returns the first
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

// located identifies one of CUDA's devices: a GPU's number in the order of PCI addresses, or a UUID or the beginning of
// one.
type located struct {
	index int // −1: see uuid
	uuid  string
}

// locate lists a process's devices by CUDA's number, at least up to n; source is how it knows, see Identity.Guess. ok
// is false if the result is uncertain. sameModel states that all GPUs of the machine are of one model: CUDA then
// numbers them by PCI address, otherwise the fastest comes first unless CUDA_DEVICE_ORDER is set.
//
// CUDA uses the entries of CUDA_VISIBLE_DEVICES up to the first that names no device. The caller must check whether
// UUIDs name devices and whether two entries are the same device.
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

// entry reads an entry of CUDA_VISIBLE_DEVICES.
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
