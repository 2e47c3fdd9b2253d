// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// What GPUs and their rows are called, as Score-P has it.

// Platform is a maker's world of GPUs: what its devices and streams are called, and the paradigm of its regions.
type Platform struct {
	Name     string // prefix of names
	Paradigm otf2.Paradigm
}

// The platforms.
var (
	CUDA = Platform{"CUDA", otf2.ParadigmCUDA}
	HIP  = Platform{"HIP", otf2.ParadigmHIP}
)

// PlatformOf is the platform of a library as experiment.Process.Library names it: HIP for RCCL, else CUDA.
func PlatformOf(library string) Platform {
	if library == "RCCL" {
		return HIP
	}
	return CUDA
}

// DeviceClass is the class of the system tree's nodes: "CUDA Device", as Score-P has it.
func (p Platform) DeviceClass() string { return p.Name + " Device" }

// DeviceName is the name of a device by its ordinal.
func (p Platform) DeviceName(ordinal int) string {
	return fmt.Sprintf("%s %d", p.DeviceClass(), ordinal)
}

// gpuMetricsName is the name of the row of what was measured of a GPU.
func gpuMetricsName(ordinal int) string { return fmt.Sprintf("GPU %d metrics", ordinal) }
