// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"strconv"
	"strings"
)

// Settings of NCCL's that decide whether the plugin asks for GPU times.
const (
	AllGatherV = "NCCL_ALLGATHERV_ENABLE"     // 0: safe with every release
	Rearch     = "NCCL_ENQUEUE_REARCH_ENABLE" // other than 0: safe with the releases that have it
)

// FirstUnsafe is the first version of the profiler API whose releases are not asked for GPU times without one of Safe.
const FirstUnsafe = 6

// Safe are the settings that make asking safe, from which version of the API on: where the setting, or NCCL's default
// of it, is On. The plugin goes by this table, too (plugin/settings_table.h).
var Safe = []struct {
	API      int
	Variable string
	Default  bool
	On       bool
}{
	{6, AllGatherV, true, false},
	{7, Rearch, false, true},
}

// Unsafe names the releases of which GPU times are not asked for without such a setting (docs/gpu.md, "Where NCCL is
// not asked").
const Unsafe = "NCCL 2.29 and newer"

// Danger says why not.
const Danger = Unsafe + " can hang or crash with them"

// Up to this version of the profiler API, NCCL reads stamps in the thread of its proxy, and crashes if that cannot have
// its memory: a pool for each rank of each communicator.
const (
	LastProxied = 6
	// PoolBytes are more than a pool takes in any release that has it.
	PoolBytes = 36 << 20
	// PoolsShare is the part of what is free in /dev/shm that pools may take: one in so many. The rest is for what the
	// job puts there.
	PoolsShare = 2
	// RuntimeConnect is NCCL's setting with which, if it is 0, communicators make their pools when they are made, or
	// fail then.
	RuntimeConnect = "NCCL_RUNTIME_CONNECT"
)

// NoRoom says why GPU times are not asked for then, and what helps.
const NoRoom = "NCCL up to 2.30 crashes with them if its proxies' memory finds no room, or no file can be made, in " +
	"/dev/shm; make room there (in a container: --shm-size=1g or --ipc=host)"

// Stamps tells whether NCCL of a version of the profiler API is asked for GPU times in an environment, and which of its
// settings allow that, "" if none is needed.
func Stamps(api int, getenv func(string) string) (asked bool, by string) {
	if api < FirstUnsafe {
		return true, ""
	}
	for _, safe := range Safe {
		if value := getenv(safe.Variable); api >= safe.API && on(value, safe.Default) == safe.On {
			return true, safe.Variable + "=" + value
		}
	}
	return false, ""
}

// on is a setting as NCCL reads it, with C's strtoll of a base of 0: whether that gives another number than 0. Where it
// is out of range, or binary, which some C libraries read and others do not, it is as if it were unset.
func on(value string, otherwise bool) bool {
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
