// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// What GPUs were busy with while they are on the path. This adds to the contents of the path, with keys below zero.

// KernelTime is how long kernels of one name ran within an activity of a rank; concurrent kernels each count.
type KernelTime struct {
	Kernel string `json:"kernel"`
	Time   uint64 `json:"time_ns"`
}

// mostKernels limits the names of kernels that are followed: the first ones seen.
const mostKernels = 256

// kernels numbers the names of kernels that are followed.
type kernels struct {
	numbers map[otf2.RegionRef]int32
	regions []otf2.RegionRef
}

// key returns the key for a kernel's time on the path; ok is false for kernels that are not followed.
func (k *kernels) key(rank int32, region otf2.RegionRef) (_ key, ok bool) {
	n, ok := k.numbers[region]
	if !ok {
		if len(k.regions) == mostKernels {
			return key{}, false
		}
		if k.numbers == nil {
			k.numbers = make(map[otf2.RegionRef]int32)
		}
		n = int32(len(k.regions))
		k.numbers[region] = n
		k.regions = append(k.regions, region)
	}
	return key{rank, ^n}, true
}

// busy adds what a rank's GPU ran during activity GPU on the path.
func (p *Path) busy(x *node, a *arrival, m *causes.Local, ns uint64) {
	if ns == 0 || m.Kernels == nil {
		return
	}
	whole := m.Own(0, a.begin)[GPU]
	for _, k := range m.Kernels {
		if of, ok := p.kernels.key(a.rank, k.Region); ok && k.Time > 0 {
			x.add(of, uint64(float64(k.Time)*float64(ns)/float64(max(whole, ns))))
		}
	}
}

// isKernel reports whether the key belongs to a kernel.
func (k key) isKernel() bool { return k.what < 0 }

// ranOn returns the kernels of the ranks whose GPUs are on the path, the longest first.
func (p *Path) ranOn(all *stretch, name func(otf2.RegionRef) string) map[int32][]KernelTime {
	of := make(map[int32][]KernelTime)
	for _, e := range all.list {
		if e.isKernel() {
			of[e.rank] = append(of[e.rank], KernelTime{name(p.kernels.regions[^e.what]), e.ns})
		}
	}
	for _, list := range of {
		slices.SortFunc(list, func(a, b KernelTime) int {
			return cmp.Or(
				cmp.Compare(b.Time, a.Time), cmp.Compare(a.Kernel, b.Kernel))
		})
	}
	return of
}
