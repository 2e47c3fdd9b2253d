// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Names of GPUs and of their rows, as Score-P has them.

// Platform is a GPU vendor's platform: the names of its devices and streams, and the paradigm of its regions.
type Platform struct {
	Name     string // prefix of names
	Paradigm otf2.Paradigm
}

// The platforms.
var (
	CUDA = Platform{"CUDA", otf2.ParadigmCUDA}
	HIP  = Platform{"HIP", otf2.ParadigmHIP}
)

// PlatformOf returns the platform of a library as description.Process.Library names it: HIP for RCCL, else CUDA.
func PlatformOf(library string) Platform {
	if library == "RCCL" {
		return HIP
	}
	return CUDA
}

// DeviceClass returns the class of the system tree's nodes, "CUDA Device" as in Score-P.
func (p Platform) DeviceClass() string { return p.Name + " Device" }

// DeviceName returns the name of a device by its ordinal.
func (p Platform) DeviceName(ordinal int) string {
	return fmt.Sprintf("%s %d", p.DeviceClass(), ordinal)
}

// gpuMetricsName returns the name of the row with a GPU's measurements.
func gpuMetricsName(ordinal int) string { return fmt.Sprintf("GPU %d metrics", ordinal) }
