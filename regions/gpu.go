// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/experiment/commid"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Which GPU each communicator rank runs on.

// gpu finds or adds the device that a communicator rank runs on.
func (rs *ranks) gpu(c *commRank, gpu experiment.GPU) int {
	if gpu.UUID == "" && gpu.Device < 0 && c.ID != 0 {
		return rs.unknownGPU(c, gpu)
	}
	for i, g := range rs.reported {
		if g == (experiment.GPU{Device: gpu.Device}) && gpu.Device >= 0 { // known by its kernels only so far
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

// unknownGPU is the device of a communicator rank of which CUDA reported nothing. Ranks of one communicator are on different
// devices, and so are those of all children of a split: no rank of the parent is in two of them. Of the devices that are left it
// gets the one where it was before, as far as that can be known.
func (rs *ranks) unknownGPU(c *commRank, gpu experiment.GPU) int {
	parents := rs.findParent(c)
	taken := make(map[int]bool)
	for _, o := range rs.live {
		if o != c && o.announced && !o.final && (o.ID == c.ID || c.parent != 0 && o.parent == c.parent && o.birth.Count == c.birth.Count) {
			taken[o.GPU] = true
		}
	}
	free := func(i int) bool { return !taken[i] && rs.reported[i] == gpu }
	for _, o := range rs.live {
		if o != c && o.announced && c.takesThePlaceOf(o) && free(o.GPU) {
			return o.GPU
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

// takesThePlaceOf tells whether a communicator rank is likely where another one was: the same rank of as many, after all inits or after
// splits of one communicator into the same color.
func (c *commRank) takesThePlaceOf(o *commRank) bool {
	return o.Rank == c.Rank && o.NRanks == c.NRanks && o.parent == c.parent && o.birth.Color == c.birth.Color
}

// What a search for a parent takes at most.
const (
	maxParents = 256
	maxSplits  = 1024 // of a parent
)

// findParent finds the communicator that another one comes from, and its ranks in this process, in order.
func (rs *ranks) findParent(c *commRank) (parents []*commRank) {
	if len(rs.reported) < 2 { // there is no other device that it could be on
		return nil
	}
	looked := make(map[uint64]bool)
	for _, o := range rs.live {
		if o == c || !o.announced || o.final || o.ID == 0 || o.ID == c.ID || o.NRanks < c.NRanks || looked[o.ID] || len(looked) == maxParents {
			continue
		}
		looked[o.ID] = true
		if b, ok := commid.Find(o.ID, c.ID, maxSplits); ok {
			c.parent, c.birth = o.ID, b
			break
		}
	}
	for _, o := range rs.live {
		if o != c && o.announced && !o.final && o.ID == c.parent && o.ID != 0 {
			parents = append(parents, o)
		}
	}
	slices.SortStableFunc(parents, func(a, b *commRank) int { return cmp.Compare(a.Rank, b.Rank) })
	return parents
}

func (rs *ranks) addGPU(gpu experiment.GPU) int {
	rs.reported = append(rs.reported, gpu)
	rs.process.GPUs = append(rs.process.GPUs, gpu)
	rs.clocks = append(rs.clocks, gpuclock.New(rs.opts.Paradigm == otf2.ParadigmHIP)) // of AMD's stamps the unit is not documented
	return len(rs.process.GPUs) - 1
}

// deviceNumber finds or adds the device of a CUDA ordinal.
func (rs *ranks) deviceNumber(device int) int {
	for i, g := range rs.reported {
		if g.Device == device {
			return i
		}
	}
	return rs.addGPU(experiment.GPU{Device: device})
}
