// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lookup"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Kernels classifies an archive's regions: compute kernels are the application's, as CUPTI recorded them on rows of
// streams.
type Kernels struct {
	own    lookup.ByRegion[bool] // kernels whose names are not NCCL's
	graphs lookup.ByRegion[bool] // CUDA graphs whose kernels are unknown
	known  bool
}

// KernelsOf builds the table of an archive.
func KernelsOf(defs *otf2.Definitions) *Kernels {
	k := new(Kernels)
	for ref, name := range naming.RegionsOf(defs, regions.GroupCUDAKernels, otf2.ParadigmCUDA, otf2.ParadigmHIP) {
		switch {
		case name == regions.NameCUDAGraph:
			k.graphs.Set(ref, true)
		case !naming.IsNCCLKernel(name):
			k.own.Set(ref, true)
			k.known = true
		}
	}
	return k
}

// Known reports whether the archive names any compute kernel.
func (k *Kernels) Known() bool { return k.known }

// Computes reports whether a region is a compute kernel. Details.Linked marks kernels that NCCL launched, whatever
// their names.
func (k *Kernels) Computes(r *Region) bool { return r.Number == 0 && !r.Linked && k.own.Get(r.Region) }

// WholeGraph reports whether a region is a CUDA graph whose kernels are unknown.
func (k *Kernels) WholeGraph(r *Region) bool { return r.Number == 0 && k.graphs.Get(r.Region) }
