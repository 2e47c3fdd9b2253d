// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/efficiency"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overtime"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/phases"
)

// whereItWent fills in the waiting over time and the efficiencies.
func (r *Report) whereItWent(o *operations, line *overtime.Line, times *efficiency.Counter) {
	w := r.WaitStates
	run := &efficiency.Run{
		Untimed:  r.Summary.Untimed,
		Compared: w.Collectives + w.Messages,
		NotCompared: w.NotCompared.NoTimes + w.NotCompared.Unfinished + w.NotCompared.Messages +
			w.NotCompared.Unmatched + w.NotCompared.Inconsistent,
	}
	recorded := 0
	for i, rank := range o.causing.ranks {
		run.Names = append(run.Names, efficiency.Name{Rank: rank.Name, Host: rank.Host})
		if o.causing.saved != nil {
			run.Saved = append(run.Saved, float64(o.causing.saved[i]))
		}
		if !rank.Absent {
			recorded++
		}
	}
	if o.last > o.first {
		w.OverTime = line.Windows(o.first, o.last, recorded)
	}
	for i := range w.OverTime {
		if window := &w.OverTime[i]; window.Rank >= 0 {
			window.Name = o.causing.ranks[window.Rank].Name
		}
	}
	r.goesBack(o)
	if o.selected == nil { // times cover the whole run
		r.Efficiency = times.Result(run)
		w.Efficiency = r.Efficiency
		if why := r.Efficiency.Untimed; why != "" && r.CriticalPath != nil {
			r.CriticalPath = criticalpath.NotFollowed(why)
		}
	}
	waited := make(map[string]uint64)
	for i := range w.Phases {
		waited[w.Phases[i].Name] += w.Phases[i].Waited
	}
	for i := range r.Phases {
		p := &r.Phases[i]
		p.Waited = waited[p.Phase]
		p.Efficiency = ofPhase(p)
	}
}

// goesBack sets, for the ranks shown, the waiting that they caused.
func (r *Report) goesBack(o *operations) {
	at := 0
	for i := range o.causing.ranks {
		if o.waits.Shown != nil && !o.waits.Shown(i) {
			continue
		}
		if !o.causing.ranks[i].Absent {
			cost := r.Causes.Ranks[i].Cost()
			r.WaitStates.Ranks[at].GoesBack = &cost
		}
		at++
	}
}

// ofPhase returns the efficiencies of a phase.
func ofPhase(p *phases.Row) *efficiency.Factors {
	var shares []efficiency.Share
	for i := range p.ByRank {
		rank := &p.ByRank[i]
		shares = append(shares, efficiency.Share{Observed: float64(rank.Total),
			Useful: float64(rank.Total) - float64(rank.GPU)})
	}
	return efficiency.OfPhase(shares, p.Timed, p.Untimed)
}
