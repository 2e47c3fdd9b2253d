// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
)

// What ranks cost by working longer than others. Where no rank works longer, the order of the operations itself makes
// ranks wait, as in a pipeline of equal stages: what goes back to a rank then is no reason to name it.

// work is what ranks are held against: what the middle one of the others did between its operations.
type work struct {
	usual  float64 // ns
	others float64 // ranks that may wait, times the operations in which one waits at once
}

const workKinds = len(causes.OwnKinds)

// newWork holds ranks against all but one, and but for those that are suspected.
func newWork(c *causes.Result, but int, suspects map[int]bool) (w work) {
	w.usual = middle(c.Ranks, worked, but, suspects)
	w.others = float64(len(c.Ranks)-1) * max(1, c.AtOnce)
	return w
}

// longer is by how much a rank worked longer, ns; negative if it worked less.
func (w *work) longer(r *causes.Rank) float64 { return r.Worked - w.usual }

// cost is what goes back to a rank as far as it worked longer: each other rank waited for that no longer than so long,
// in each operation in which it waited at once; but for waits beside which its host worked, as it waits once more for
// what these did not cost.
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

// explains reports whether one rank worked so much longer than another one that it is what it cost more than that.
func (w *work) explains(r, than *causes.Rank) bool {
	return (w.longer(r)-w.longer(than))*w.others >= leastWork*(w.cost(r)-w.cost(than))
}

// kind is in what it was late most: of what goes back to it, that in which it worked longer than others like it did
// (by). A late host makes its GPU late, too, in the operations that follow until the others have waited for it: then it
// is the host. Where it worked longer in little of what goes back to it, as the time in which a host waits for its GPU
// alone counts as the host's, what goes back to it tells.
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
	return GPULate
}

// likeWork is what ranks like one did, ns by kinds: the middle of that half of the others that worked most nearly as
// long. Ranks of another stage do other work.
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
