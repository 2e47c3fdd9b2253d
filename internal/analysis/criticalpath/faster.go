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

// mostCandidates limits the ranks that are played as fast as others, one at a time.
const mostCandidates = 24

// Changes are the changes of a run that are played.
type Changes struct {
	rows      []WhatIf
	scenarios []schedule.Scenario
	ranks     int
}

// NewChanges chooses what is played: all ranks, those that the verdict names as late together, each of the ranks, and
// of the sets of ranks that belong together, that others waited for most, and an ideal network.
func NewChanges(c *causes.Result, v *verdict.Verdict, together *Together,
	name func(rank int) (name, host string)) *Changes {
	ch := &Changes{ranks: len(c.Ranks)}
	all := make([]int, len(c.Ranks))
	for i := range all {
		all[i] = i
	}
	ch.add(WhatIf{Change: FasterRanks, Rank: -1, Name: "all ranks"}, all)
	if set := v.Late(); len(set) > 1 {
		w := WhatIf{Change: FasterSet, Rank: -1}
		names, confidence := make([]string, len(set)), 1.0
		for i, c := range set {
			names[i], _ = name(c.Rank)
			w.Ranks = append(w.Ranks, c.Rank)
			confidence = min(confidence, c.Confidence)
		}
		w.Name, w.Confidence = units.NameList(names), &confidence
		ch.add(w, w.Ranks)
	}
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.Ranks[b].Cost(), c.Ranks[a].Cost()) })
	for _, rank := range order[:min(len(order), mostCandidates)] {
		w := WhatIf{Change: FasterRank, Rank: rank}
		w.Name, w.Host = name(rank)
		ch.add(w, []int{rank})
	}
	ch.addSets(c, together, name)
	ch.scenarios = append(ch.scenarios, schedule.Scenario{Ideal: true})
	return ch
}

func (ch *Changes) add(w WhatIf, ranks []int) {
	ch.rows = append(ch.rows, w)
	ch.scenarios = append(ch.scenarios, schedule.Scenario{Ranks: ranks})
}

// Play plays a run with the changes, adds what they save to the result, which may be nil, and returns how much earlier
// each rank would have ended its last operation on an ideal network; nil: unknown.
func (ch *Changes) Play(run *schedule.Recorder, r *Result) (saved []int64) {
	gains, notKnown := run.Replay(ch.scenarios)
	if notKnown != "" {
		if r != nil {
			r.GainsNotKnown = notKnown
		}
		return nil
	}
	saved = gains[len(gains)-1].Saved
	if r == nil {
		return saved
	}
	r.worked = run.Worked()
	each := make([]uint64, ch.ranks)
	for i := range ch.rows {
		w, g := &ch.rows[i], &gains[i]
		w.Scaled = g.Scaled
		w.Gain, w.Operations = min(uint64(max(g.Earlier, 0)), r.Steady), g.Times
		if w.Change == FasterRank {
			each[w.Rank] = w.Gain
		}
	}
	chance := uint64(0)
	if ch.ranks > 2 {
		chance = stats.NearestMedian(each)
	}
	for i := range ch.rows {
		w := &ch.rows[i]
		if w.Change != FasterRanks {
			least := w.Gain - min(w.Gain, gains[i].Margin+chance)
			w.Least = &least
		}
		if w.Gain > 0 {
			r.WhatIf = append(r.WhatIf, *w)
		}
	}
	r.sort()
	return saved
}
