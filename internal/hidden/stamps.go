// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"errors"
	"strconv"
	"strings"
)

// Settings of NCCL's that decide whether the plugin asks for GPU times (plugin/config.c has the same rule for the job's side).
const (
	AllGatherV = "NCCL_ALLGATHERV_ENABLE"     // 0: safe with every release
	Rearch     = "NCCL_ENQUEUE_REARCH_ENABLE" // other than 0: safe with the releases that have it
)

// Unsafe names the releases of which GPU times are not asked for without such a setting (docs/gpu.md, "Where NCCL is not asked").
const Unsafe = "NCCL 2.29 and newer"

// Danger says why not.
const Danger = Unsafe + " can hang or crash with them"

// Stamps tells whether NCCL of a version of the profiler API is asked for GPU times in an environment, and which of its settings allow that, "" if none is needed.
func Stamps(api int, getenv func(string) string) (asked bool, by string) {
	switch {
	case api < 6:
		return true, ""
	case number(getenv(AllGatherV), 1) == 0:
		return true, AllGatherV + "=" + getenv(AllGatherV)
	case api > 6 && number(getenv(Rearch), 0) != 0:
		return true, Rearch + "=" + getenv(Rearch)
	}
	return false, ""
}

// number is a setting as NCCL reads it, with C's strtoll.
func number(value string, otherwise int64) int64 {
	value = strings.TrimLeft(value, " \t\n\v\f\r")
	if value == "" {
		return otherwise
	}
	for end := len(value); end > 0; end-- {
		n, err := strconv.ParseInt(value[:end], 0, 64)
		switch {
		case err == nil && !strings.Contains(value[:end], "_"):
			return n
		case errors.Is(err, strconv.ErrRange):
			return otherwise
		}
	}
	return 0
}
