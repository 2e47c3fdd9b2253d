// SPDX-License-Identifier: Apache-2.0

package verdict

import "github.com/nccl-otf2/nccl-otf2/analysis/causes"

// What ranks cost by working longer than others. Where no rank works longer, the order of the operations itself makes ranks wait, as in a pipeline of
// equal stages: what goes back to a rank then is no reason to name it.

// work is what ranks are held against: what the middle one of the others did between its operations.
type work struct {
	usual  float64            // ns
	by     [workKinds]float64 // ns, the same by kinds
	others float64            // ranks that may wait, times the operations in which one waits at once
}

const workKinds = len(causes.OwnKinds)

// newWork holds ranks against all but one, and but for those that are suspected.
func newWork(c *causes.Result, but int, suspects map[int]bool) (w work) {
	w.usual = middle(c.Ranks, worked, but, suspects)
	for k := range w.by {
		w.by[k] = middle(c.Ranks, func(r *causes.Rank) float64 { return r.WorkedBy[k] }, but, suspects)
	}
	w.others = float64(len(c.Ranks)-1) * max(1, c.AtOnce)
	return w
}

// longer is by how much a rank worked longer, ns; negative if it worked less.
func (w *work) longer(r *causes.Rank) float64 { return r.Worked - w.usual }

// cost is what goes back to a rank as far as it worked longer: each other rank waited for that no longer than so long, in each operation in which it
// waited at once; but for waits beside which its host worked, as it waits once more for what these did not cost.
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

// explains tells whether one rank worked so much longer than another one that it is what it cost more than that.
func (w *work) explains(r, than *causes.Rank) bool {
	return (w.longer(r)-w.longer(than))*w.others >= LeastWork*(w.cost(r)-w.cost(than))
}

// kind is in what it was late most: of what goes back to it, that in which it worked longer. A late host makes its GPU late, too, in the operations that
// follow until the others have waited for it: then it is the host.
func (w *work) kind(r *causes.Rank) Kind {
	part := func(kinds ...causes.Kind) float64 {
		cost, longer := 0.0, 0.0
		for _, k := range kinds {
			cost += r.Costs[k]
			longer += r.WorkedBy[k] - w.by[k]
		}
		return min(cost, max(longer, 0)*w.others)
	}
	host, gpu := part(causes.Host, causes.Call), part(causes.GPU, causes.Own)
	switch {
	case host == 0 && gpu == 0:
		return kindOf(r)
	case host >= HostPart*(host+gpu):
		return HostLate
	}
	return GPULate
}
