// SPDX-License-Identifier: Apache-2.0

package selfreport

import (
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
)

// kernelCh is the bit of KernelCh in masks of events (docs/nccl-profiler-api.md §2.2).
const kernelCh = 1 << 6

// firstStamps is the first version of the profiler API with GPU timestamps (pTimer, ibid. §2.5).
const firstStamps = 4

// Untimed says why operations have no GPU times, or what to record to get them. It returns a clause to end a sentence
// that says that they have none.
func (ps Properties) Untimed() string {
	for _, v := range ps.Values(property.Withheld) {
		if _, why, ok := strings.Cut(v.Value, ": "); ok {
			return "NCCL was not asked for GPU times (" + why + ")"
		}
	}
	for _, v := range ps.Values(property.ImportedFrom) {
		if v.Value != "nothing" {
			return "the imported files have no times of GPUs"
		}
	}
	for _, v := range ps.Values(property.RecordMask) {
		if mask, err := strconv.ParseUint(v.Value, 0, 64); err == nil && mask&kernelCh != 0 {
			return ps.unusable()
		}
	}
	return "record with NCCL_OTF2_EVENTS=gpu, the default"
}

// unusable says why requested GPU times are missing, or cannot be used.
func (ps Properties) unusable() string {
	for _, v := range ps.Values(property.APIVersion) {
		if n, err := strconv.Atoi(v.Value); err == nil && n > 0 && n < firstStamps {
			return "no GPU times were recorded: version " + v.Value +
				" of NCCL's profiler API has none; NCCL 2.27 and newer report them"
		}
	}
	if n, _ := ps.Number(property.Starts.Below("KERNEL_CH")); n > 0 {
		return "the recorded GPU times cannot be used (nccl-otf2 print --show-markers says why); CUPTI has others, " +
			"with NCCL_OTF2_CUPTI=on"
	}
	return "no GPU times were recorded: NCCL was asked for them and reported none"
}
