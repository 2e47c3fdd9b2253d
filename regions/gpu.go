// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Which GPU each communicator rank runs on.

// rankGPU is what is known of the GPU on which a communicator rank runs.
type rankGPU struct {
	stamps    gpuclock.Filter // on the clock of the GPU
	kernels   cuda.Rank       // what CUPTI records
	differing bool            // marked: NCCL and CUPTI disagree on when kernels ran
}

// gpuOf finds or adds the device on which a communicator rank runs.
func (rs *ranks) gpuOf(c *commRank, gpu description.GPU) int {
	if gpu.UUID == "" && gpu.Device < 0 && c.ID != 0 {
		return rs.unknownGPU(c, gpu)
	}
	for i, g := range rs.reported {
		if g == (description.GPU{Device: gpu.Device}) && gpu.Device >= 0 { // known by its kernels only so far
			known := &rs.process.GPUs[i]
			rs.reported[i], known.UUID, known.PCI = gpu, cmp.Or(gpu.UUID, known.UUID), cmp.Or(gpu.PCI, known.PCI)
			return i
		}
		if g == gpu {
			return i
		}
	}
	return rs.addGPU(gpu)
}

// unknownGPU returns a device for a communicator rank for which CUDA reported nothing. Ranks of one communicator are on
// different devices, and so are those of all children of a split, because each rank of the parent is in one of them.
// Among the remaining devices, the rank gets the one that it had before, as far as that is known.
func (rs *ranks) unknownGPU(c *commRank, gpu description.GPU) int {
	parents := rs.findParent(c)
	taken := make(map[int]bool)
	for _, o := range rs.family.instances[c.ID].ranks {
		taken[o.GPU] = taken[o.GPU] || o != c
	}
	if c.origin.parent != 0 {
		for _, o := range rs.family.siblings[split{c.origin.parent, c.origin.birth.Count}] {
			taken[o.GPU] = true
		}
	}
	free := func(i int) bool { return !taken[i] && rs.reported[i] == gpu }
	for _, o := range rs.family.places[c.commPlace()] {
		if free(o.gpu) {
			return o.gpu
		}
	}
	for _, o := range parents {
		if free(o.GPU) || len(parents) == 1 && !taken[o.GPU] {
			return o.GPU
		}
	}
	for i := range rs.reported {
		if free(i) {
			return i
		}
	}
	return rs.addGPU(gpu)
}

// findParent returns the ranks in this process, in order, of the communicator that another one comes from.
func (rs *ranks) findParent(c *commRank) (parents []*commRank) {
	if len(rs.reported) < 2 { // there is no other device
		return nil
	}
	c.origin.parent, c.origin.birth = rs.family.parentOf(c)
	if parent := rs.family.instances[c.origin.parent]; parent != nil {
		parents = slices.Clone(parent.ranks)
	}
	slices.SortStableFunc(parents, func(a, b *commRank) int { return cmp.Compare(a.Rank, b.Rank) })
	return parents
}

func (rs *ranks) addGPU(gpu description.GPU) int {
	rs.reported = append(rs.reported, gpu)
	rs.process.GPUs = append(rs.process.GPUs, gpu)
	// of AMD's stamps the unit is not documented
	rs.clocks = append(rs.clocks, gpuclock.New(rs.opts.Paradigm == otf2.ParadigmHIP))
	return len(rs.process.GPUs) - 1
}

// deviceNumber finds or adds the device of a CUDA ordinal.
func (rs *ranks) deviceNumber(device int) int {
	for i, g := range rs.reported {
		if g.Device == device {
			return i
		}
	}
	return rs.addGPU(description.GPU{Device: device})
}
