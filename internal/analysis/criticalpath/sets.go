// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/schedule"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Ranks that belong together, by their role or their host, may be slow together. Then none of them stands out, and one
// of them alone, as fast as the others, would save nothing.

// mostSets limits the sets that are played.
const mostSets = 8

// addSets adds the sets that others waited for most.
func (ch *Changes) addSets(c *causes.Result, run *schedule.Recorder, name func(rank int) (name, host string)) {
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
	for _, ranks := range run.Roles() {
		add(FasterRole, ranks, "")
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
)

// NameSet lets the verdict name the ranks that belong together and made the others wait together, if those that it
// names are none, or some of these.
func (r *Result) NameSet(c *causes.Result, v *verdict.Verdict) {
	var best *WhatIf
	for i := range r.WhatIf {
		w := &r.WhatIf[i]
		if !w.isCandidate() || float64(*w.Least) < leastSetGain*float64(r.Steady) || w.Operations < rareTimes ||
			w.Scaled || workedLonger(c.Ranks, w.Ranks) < leastSetWork*float64(w.Gain) {
			continue
		}
		if best == nil || w.Gain > best.Gain {
			best = w
		}
	}
	if best == nil || len(v.Culprits) >= len(best.Ranks) {
		return
	}
	in := func(rank int) bool { return slices.Contains(best.Ranks, rank) }
	for i := range v.Culprits {
		if c := &v.Culprits[i]; !in(c.Rank) || c.Stops() {
			return
		}
	}
	for i := range r.WhatIf {
		w := &r.WhatIf[i]
		limit := float64(best.Gain) / timesNextSet
		switch {
		case w.Change == FasterRank && in(w.Rank) && len(v.Culprits) == 0:
			limit = leastSetRank * float64(best.Gain)
		case w.Change == FasterSet:
		case w.isCandidate() && !slices.ContainsFunc(w.Ranks, in):
		default:
			continue
		}
		if float64(w.Gain) > limit {
			return
		}
	}
	cost := 0.0
	for _, rank := range best.Ranks {
		cost += c.Ranks[rank].Cost()
	}
	best.Change = FasterSet
	v.NameSet(&verdict.Set{Ranks: best.Ranks, Name: best.Name, Host: best.Host, Gain: best.Gain, Least: *best.Least,
		Share: cost / max(float64(v.Waited), 1)}, len(c.Ranks))
}

// rareTimes is the number of operations below which being late is no habit.
const rareTimes = 5

// isCandidate reports whether the change is that of ranks that belong together.
func (w *WhatIf) isCandidate() bool { return w.Change == FasterHost || w.Change == FasterRole }

// workedLonger returns how much longer, in ns, each rank of a set, in ascending order, worked at least than the median
// of the other ranks.
func workedLonger(ranks []causes.Rank, set []int) float64 {
	var others []float64
	least := ranks[set[0]].Worked
	for i := range ranks {
		if _, in := slices.BinarySearch(set, i); in {
			least = min(least, ranks[i].Worked)
		} else {
			others = append(others, ranks[i].Worked)
		}
	}
	return least - stats.Median(others)
}

// Covered reports whether a change is part of that of a set which the verdict names.
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
