// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Kernels tells which regions of an archive are kernels that compute: the application's, as CUPTI recorded them on rows
// of streams.
type Kernels struct {
	own    ByRegion[bool] // kernels that are not NCCL's by their names
	graphs ByRegion[bool] // CUDA graphs of which no kernels are known
	known  bool
}

// KernelsOf makes the table of an archive.
func KernelsOf(defs *otf2.Definitions) *Kernels {
	k := new(Kernels)
	for ref, name := range regionsOf(defs, regions.GroupCUDAKernels, otf2.ParadigmCUDA, otf2.ParadigmHIP) {
		switch {
		case name == regions.NameCUDAGraph:
			k.graphs.Set(ref, true)
		case !IsNCCLKernel(name):
			k.own.Set(ref, true)
			k.known = true
		}
	}
	return k
}

// Known tells whether the archive names any kernel that computes.
func (k *Kernels) Known() bool { return k.known }

// Computes tells whether a region is a kernel that computes. One that NCCL launched says so itself (Details.Linked),
// whatever its name.
func (k *Kernels) Computes(r *Region) bool { return r.Number == 0 && !r.Linked && k.own.Get(r.Region) }

// WholeGraph tells whether a region is a CUDA graph of which no kernels are known.
func (k *Kernels) WholeGraph(r *Region) bool { return r.Number == 0 && k.graphs.Get(r.Region) }
