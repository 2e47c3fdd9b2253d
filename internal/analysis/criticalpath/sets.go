// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Ranks that belong together, by role, data or host, may be slow together. Then none of them stands out, and one
// of them alone, as fast as the others, would save nothing.

// mostSets limits the sets that are played.
const mostSets = 8

// Together has the ranks of the world that belong together.
type Together struct {
	Roles    [][]int // by the work that they do
	Replicas [][]int // by the data that they work on
}

// addSets adds the sets that others waited for most.
func (ch *Changes) addSets(c *causes.Result, together *Together, name func(rank int) (name, host string)) {
	byHost := make(map[string][]int)
	for rank := range c.Ranks {
		_, host := name(rank)
		byHost[host] = append(byHost[host], rank)
	}
	var sets []WhatIf
	add := func(change Change, ranks []int, host string) {
		same := func(w WhatIf) bool { return slices.Equal(w.Ranks, ranks) }
		if len(ranks) < 2 || len(ranks) == len(c.Ranks) || slices.ContainsFunc(sets, same) {
			return
		}
		names := make([]string, len(ranks))
		for i, rank := range ranks {
			names[i], _ = name(rank)
		}
		sets = append(sets, WhatIf{Change: change, Rank: -1, Ranks: ranks, Name: units.NameList(names), Host: host})
	}
	for host, ranks := range byHost {
		add(FasterHost, ranks, host)
	}
	for _, ranks := range together.Roles {
		add(FasterRole, ranks, "")
	}
	for _, ranks := range together.Replicas {
		add(FasterReplica, ranks, "")
	}
	cost := func(w WhatIf) (sum float64) {
		for _, rank := range w.Ranks {
			sum += c.Ranks[rank].Cost()
		}
		return sum
	}
	slices.SortFunc(sets, func(a, b WhatIf) int {
		return cmp.Or(cmp.Compare(cost(b), cost(a)), slices.Compare(a.Ranks, b.Ranks))
	})
	for _, w := range sets[:min(len(sets), mostSets)] {
		ch.add(w, w.Ranks)
	}
}

// Limits for naming a set.
const (
	leastSetGain = 0.02 // part of the steady run that it gains at least
	leastSetWork = 0.25 // part of the gain for which each of its ranks worked longer than the median of the others
	leastSetRank = 0.5  // part of the gain from which on a single rank of the set explains it
	timesNextSet = 1.5  // times the gain of ranks that are named, and of sets of other ranks
	// timesNextRole is how many times more than other roles differ from each other a role without counterparts must
	// differ from them.
	timesNextRole = 1.1
)

// NameSet lets the verdict name the ranks that belong together and made the others wait together, if those that it
// names are none, or some of these. roles are the ranks of the world by the work that they do.
func (r *Result) NameSet(c *causes.Result, v *verdict.Verdict, roles [][]int) {
	best := r.slowest(roles)
	if best == nil || len(v.Culprits) >= max(len(best.Ranks), 1) {
		return
	}
	for i := range v.Culprits {
		if c := &v.Culprits[i]; !best.hasRank(c.Rank) || c.Stops() || c.Peer != nil { // a link makes its ends late
			return
		}
	}
	for i := range r.WhatIf {
		if w := &r.WhatIf[i]; w != best && best.rivals(w, len(v.Culprits) > 0) {
			return
		}
	}
	replica := best.Change == FasterReplica
	if best.Change == FasterRank {
		best.Ranks = []int{best.Rank}
	} else {
		best.Change = FasterSet
	}
	cost := 0.0
	for _, rank := range best.Ranks {
		cost += c.Ranks[rank].Cost()
	}
	v.NameSet(&verdict.Set{Ranks: best.Ranks, Name: best.Name, Host: best.Host, Gain: best.Gain, Least: *best.Least,
		Share: cost / max(float64(v.Waited), 1), Scaled: best.Scaled, Replica: replica}, len(c.Ranks))
}

// slowest returns the set with the greatest gain, of those whose gain and work are clearly greater than by chance; nil
// if there is none.
func (r *Result) slowest(roles [][]int) (best *WhatIf) {
	for i := range r.WhatIf {
		w := &r.WhatIf[i]
		if !w.isCandidate() || float64(*w.Least) < leastSetGain*float64(r.Steady) || w.Operations < causes.LeastTimes ||
			w.moreWork(r.worked, roles) < leastSetWork*float64(w.Gain) {
			continue
		}
		if best == nil || w.Gain > best.Gain {
			best = w
		}
	}
	return best
}

// rivals reports whether another change shows that not all of the set is slow, or that others are as well. named: the
// verdict names ranks of the set.
func (w *WhatIf) rivals(other *WhatIf, named bool) bool {
	limit := float64(w.Gain) / timesNextSet
	switch {
	case other.Change == FasterRank && w.hasRank(other.Rank):
		if !named {
			limit = leastSetRank * float64(w.Gain)
		}
	case other.Change == FasterSet:
	case other.isCandidate() && !slices.ContainsFunc(other.Ranks, w.hasRank):
	default:
		return false
	}
	return float64(other.Gain) > limit
}

func (w *WhatIf) hasRank(rank int) bool { return w.Rank == rank || slices.Contains(w.Ranks, rank) }

// IsNamed reports whether the change is that of what the verdict names.
func (w *WhatIf) IsNamed() bool {
	return w.Confidence != nil || w.Change == FasterSet || len(w.Ranks) == 1
}

// isCandidate reports whether the change is that of ranks that belong together, or of a rank whose work no others do.
func (w *WhatIf) isCandidate() bool {
	return w.Change == FasterHost || w.Change == FasterRole || w.Change == FasterReplica ||
		w.Change == FasterRank && w.Scaled
}

// moreWork returns how much longer, in ns, each rank of the set worked at least than the median of the other ranks.
// Where no other ranks do the same work, two other roles at least are needed that differ clearly less from each other
// than from the set; otherwise it returns 0.
func (w *WhatIf) moreWork(worked []float64, roles [][]int) float64 {
	least, others := math.Inf(1), []float64(nil)
	for rank, ns := range worked {
		if w.hasRank(rank) {
			least = min(least, ns)
		} else {
			others = append(others, ns)
		}
	}
	more := least - stats.Median(others)
	if !w.Scaled {
		return more
	}
	var work []float64 // of other roles
	for _, role := range roles {
		if slices.ContainsFunc(role, w.hasRank) {
			continue
		}
		sum := 0.0
		for _, rank := range role {
			sum += worked[rank]
		}
		work = append(work, sum/float64(len(role)))
	}
	if len(work) < 2 {
		return 0
	}
	most := slices.Max(work)
	if least-most < timesNextRole*(most-slices.Min(work)) {
		return 0
	}
	return more
}

// Covered reports whether a change is included in that of a set of ranks that the verdict names.
func (r *Result) Covered(w *WhatIf) bool {
	ranks := w.Ranks
	switch w.Change {
	case FasterRank:
		ranks = []int{w.Rank}
	case FasterSet:
	default:
		return false
	}
	return slices.ContainsFunc(r.WhatIf, func(set WhatIf) bool {
		outside := func(rank int) bool { return !slices.Contains(set.Ranks, rank) }
		return set.Change == FasterSet && len(set.Ranks) > len(ranks) && !slices.ContainsFunc(ranks, outside)
	})
}
