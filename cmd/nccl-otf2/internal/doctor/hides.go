// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
)

// reportHidden reports what a library does not report to a plugin, with the GPUs and settings here. The number of ranks
// per node is not known.
func (e *examiner) reportHidden(group, name string, l *library) {
	all := hidden.Of(hidden.Place{
		Library: libraryName(name), Version: versionCode(l.version), GPUs: gpu.AMD(e.root), Getenv: e.Getenv,
		Network: e.settings.Network,
	})
	for _, t := range all {
		if t.Grave {
			e.add(group, name+", not recorded", Warn, t.What+": "+t.Why, t.Cure)
		}
	}
	if used := hidden.Used(all); used != "" {
		e.add(group, name+", not recorded", Info, used, "")
	}
}

// libraryName returns "RCCL" or "NCCL", according to the file's name.
func libraryName(file string) string {
	if strings.HasPrefix(file, "librccl") {
		return "RCCL"
	}
	return "NCCL"
}

// versionCode returns the number that ncclGetVersion returns for a version: 22907 for "2.29.7"; 0 if unknown.
func versionCode(version string) int {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); n < 3 {
		return 0
	}
	return major*10000 + minor*100 + patch
}
