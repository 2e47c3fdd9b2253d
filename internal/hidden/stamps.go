// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"strconv"
	"strings"
)

// NCCL's settings that decide whether the plugin requests GPU times.
const (
	AllGatherV = "NCCL_ALLGATHERV_ENABLE"     // 0: safe with every release
	Rearch     = "NCCL_ENQUEUE_REARCH_ENABLE" // other than 0: safe with the releases that have it
)

// FirstUnsafe is the first version of the profiler API whose releases need one of the settings in Safe for GPU times.
const FirstUnsafe = 6

// Safe are the settings that make GPU times safe, from a version of the API on, if the setting or NCCL's default of it
// is On. The plugin uses the same table (plugin/settings_table.h).
var Safe = []struct {
	API      int
	Variable string
	Default  bool
	On       bool
}{
	{6, AllGatherV, true, false},
	{7, Rearch, false, true},
}

// Unsafe names the releases that need such a setting for GPU times (docs/gpu.md, "Where NCCL is not asked").
const Unsafe = "NCCL 2.29 and newer"

// Danger is the reason.
const Danger = Unsafe + " can hang or crash with them"

// In releases up to this version of the profiler API, NCCL's proxy thread reads the stamps, and crashes if it cannot
// allocate its memory: a pool per rank of each communicator.
const (
	LastProxied = 6
	// PoolBytes is an upper bound of a pool's size in any of these releases.
	PoolBytes = 36 << 20
	// PoolsShare limits the pools to a fraction 1/PoolsShare of the free space in /dev/shm; the rest is for the job.
	PoolsShare = 2
	// RuntimeConnect is the NCCL setting with which, if it is 0, communicators create their pools, or fail, at
	// creation.
	RuntimeConnect = "NCCL_RUNTIME_CONNECT"
)

// NoRoom is the reason for not requesting GPU times in that case, with the remedy.
const NoRoom = "NCCL up to 2.30 crashes with them if its proxies' memory finds no room, or no file can be made, in " +
	"/dev/shm; make room there (in a container: --shm-size=1g or --ipc=host)"

// Stamps reports whether GPU times are requested from NCCL of a profiler API version in an environment, and which
// setting allows it; "" if none is needed.
func Stamps(api int, getenv func(string) string) (asked bool, by string) {
	if api < FirstUnsafe {
		return true, ""
	}
	for _, safe := range Safe {
		if value := getenv(safe.Variable); api >= safe.API && enabled(value, safe.Default) == safe.On {
			return true, safe.Variable + "=" + value
		}
	}
	return false, ""
}

// enabled reports whether a setting is nonzero as NCCL reads it (strtoll with base 0). Out-of-range values, and binary
// ones, which only some C libraries accept, count as unset.
func enabled(value string, otherwise bool) bool {
	value = strings.TrimLeft(value, " \t\n\v\f\r")
	if value == "" {
		return otherwise
	}
	digits := strings.TrimPrefix(value, "-")
	if digits == value {
		digits = strings.TrimPrefix(value, "+")
	}
	base, set := 10, "0123456789"
	lower := strings.ToLower(digits)
	switch {
	case strings.HasPrefix(lower, "0x") && len(lower) > 2 && strings.Contains("0123456789abcdef", lower[2:3]):
		base, set, lower = 16, "0123456789abcdef", lower[2:]
	case strings.HasPrefix(lower, "0b"):
		return otherwise
	case strings.HasPrefix(lower, "0"):
		base, set = 8, "01234567"
	}
	number := lower[:len(lower)-len(strings.TrimLeft(lower, set))]
	if number == "" {
		return false
	}
	if value[0] == '-' {
		number = "-" + number
	}
	n, err := strconv.ParseInt(number, base, 64)
	if err != nil {
		return otherwise
	}
	return n != 0
}
