// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
)

// The cost of ranks that worked longer than others. If no rank works longer, the order of the operations itself makes
// ranks wait, as in a pipeline of equal stages, and the waiting that a rank caused is no reason to name it.

// work is the standard of comparison: the median of the others' working times between operations.
type work struct {
	usual  float64 // ns
	others float64 // number of ranks that may wait × number of operations in which one waits at once
}

const workKinds = len(causes.OwnKinds)

// newWork compares with all ranks except one and the suspected ones.
func newWork(c *causes.Result, but int, suspects map[int]bool) (w work) {
	w.usual = medianOfOthers(c.Ranks, workOf, but, suspects)
	w.others = float64(len(c.Ranks)-1) * max(1, c.AtOnce)
	return w
}

// longer returns how much longer a rank worked, in ns; negative if it worked less.
func (w *work) longer(r *causes.Rank) float64 { return r.Worked - w.usual }

// cost returns the waiting that a rank caused by working longer: every other rank waited for that at most longer ns in
// each operation in which it waited at once. Waits that cost nothing, because the waiting host worked meanwhile, are
// added: such a host waits again later.
func (w *work) cost(r *causes.Rank) float64 {
	longer := w.longer(r)
	if longer <= 0 {
		return 0
	}
	most := longer * w.others
	for _, k := range causes.OwnKinds {
		most += r.Beside[k]
	}
	return min(r.Cost(), most)
}

// explains reports whether r worked so much longer than another rank that this explains its higher cost.
func (w *work) explains(r, than *causes.Rank) bool {
	return (w.longer(r)-w.longer(than))*w.others >= leastWork*(w.cost(r)-w.cost(than))
}

// kind decides whether the host or the GPU was late, by which of them worked longer than on similar ranks (by), within
// the waiting caused. A late host delays its GPU, too, in the following operations until the others have waited for
// it; then the host counts. If longer work explains little of the waiting, because the time that a host waits for its
// GPU alone counts as the host's, the waiting caused decides. Where most calls are not known, neither is named.
func (w *work) kind(r *causes.Rank, by [workKinds]float64) Kind {
	part := func(kinds ...causes.Kind) (cost, longer float64) {
		for _, k := range kinds {
			cost += r.Costs[k]
			longer += r.WorkedBy[k] - by[k]
		}
		return cost, min(cost, max(longer, 0)*w.others)
	}
	hostCost, host := part(causes.Host, causes.Call)
	gpuCost, gpu := part(causes.GPU, causes.Own)
	if host+gpu < leastWork*w.cost(r) {
		host, gpu = hostCost, gpuCost
	}
	if host > 0 && host >= hostPart*(host+gpu) {
		return HostLate
	}
	if r.Costs[causes.Own] > r.Costs[causes.GPU] {
		return Late
	}
	return GPULate
}

// likeWork returns the working times, in ns by kind, of ranks like one: the median of the half of the others that
// workOf about as long. Ranks of another stage have different work.
func likeWork(ranks []causes.Rank, of int) (by [workKinds]float64) {
	var others []*causes.Rank
	for i := range ranks {
		if i != of {
			others = append(others, &ranks[i])
		}
	}
	slices.SortStableFunc(others, func(a, b *causes.Rank) int {
		return cmp.Compare(math.Abs(a.Worked-ranks[of].Worked), math.Abs(b.Worked-ranks[of].Worked))
	})
	others = others[:(len(others)+1)/2]
	for k := range by {
		all := make([]float64, len(others))
		for i, o := range others {
			all[i] = o.WorkedBy[k]
		}
		by[k] = stats.Median(all)
	}
	return by
}
