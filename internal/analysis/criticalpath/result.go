// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Result is what a run's length was made of, and what of it would go. Times are ns.
type Result struct {
	// NotKnown says why there is no path, and what to record; "" where there is one. All else is then 0.
	NotKnown string `json:"not_known,omitempty"`

	Length  uint64 `json:"length_ns"`   // of the run, from the first to the last event
	StartUp uint64 `json:"start_up_ns"` // of it, until ranks had done their first operations
	After   uint64 `json:"after_ns"`    // of it, after the last operation
	Unknown uint64 `json:"unknown_ns"`  // of it, where it is not known what was before
	// Steady is the rest: what ranks and operations on the path took. Activities, Ranks and Operations divide it, each
	// ns once.
	Steady  uint64 `json:"steady_ns"`
	Changes uint64 `json:"changes"` // times that the path goes on on another rank
	// Doubtful is how much of ranks' own may belong to another one, which came as late as far as the times are exact.
	Doubtful uint64 `json:"doubtful_ns"`
	Unstated uint64 `json:"unstated"` // operations on the path of which nobody says how exact their times are

	Activities []ActivityRow  `json:"activities"`
	Ranks      []RankRow      `json:"ranks"`      // the longest first
	Operations []OperationRow `json:"operations"` // the longest first
	WhatIf     []WhatIf       `json:"what_if"`    // the greatest gain first

	Trace *Trace `json:"-"` // nil: nobody asked for the steps
}

// ActivityRow is an activity of all ranks.
type ActivityRow struct {
	Activity string `json:"activity"`
	Time     uint64 `json:"time_ns"` // on the path
	Mean     uint64 `json:"mean_ns"` // of the ranks, on the path or not
	// Imbalance is what is longer on the path than the mean: what perfect balance of this activity would make the run
	// shorter by, at most.
	Imbalance uint64 `json:"imbalance_ns"`
}

// RankRow is an activity of a rank on the path.
type RankRow struct {
	Rank     int    `json:"rank"` // in the world
	Name     string `json:"name"`
	Host     string `json:"host"`
	Activity string `json:"activity"`
	Time     uint64 `json:"time_ns"`
	// Kernels are what its GPU ran meanwhile, where Activity is the GPU's and kernels of CUDA streams were recorded,
	// the longest first.
	Kernels []KernelTime `json:"kernels,omitempty"`
}

// OperationRow is an operation on the path, from its last arrival on.
type OperationRow struct {
	Comm         otf2.CommRef `json:"comm"`
	Communicator string       `json:"communicator"`
	Operation    string       `json:"operation"`
	Time         uint64       `json:"time_ns"`
}

// Change is what is another way in a WhatIf.
type Change string

// Changes.
const (
	FasterRank  Change = "rank"    // a rank is as fast as those that it came later than
	FasterLink  Change = "link"    // a slow link, or the GPU at one end, is as fast as others
	FasterGPU   Change = "gpu"     // a GPU that works slowly within operations is as fast as others
	FasterRanks Change = "ranks"   // each rank is as fast as those that it came later than
	NoWaiting   Change = "balance" // work is divided equally, and nobody waits
)

// WhatIf is what of the run's length would go.
type WhatIf struct {
	Change   Change `json:"change"`
	Rank     int    `json:"rank"` // in the world; −1: of all
	Name     string `json:"name"`
	Host     string `json:"host"`
	Peer     *int   `json:"peer"` // the other end of a link
	PeerName string `json:"-"`    // of that rank
	Gain     uint64 `json:"gain_ns"`
	// Least is what of the gain is not explained by what times may be off by, and not by what as much chance brings to
	// the middle one of the other ranks. null: nobody says.
	Least *uint64 `json:"least_ns"`
	// that would have begun earlier: before which it was late by itself, and last
	Operations uint64   `json:"operations"`
	Partial    bool     `json:"partial"`    // followed from some moment on only: the gain is more
	Confidence *float64 `json:"confidence"` // of the verdict's name for it; null: it is not named
}

// Run is what of a run else is known.
type Run struct {
	Begin    otf2.Timestamp // of the first event
	Duration uint64
	Causes   *causes.Result
	Name     func(rank int) (name, host string)
	Comm     func(otf2.CommRef) string
	Kernel   func(otf2.RegionRef) string
}

// Result tells what a path and its candidates have come to; the path is then done with. It is nil if there was no
// operation.
func (p *Path) Result(run *Run) *Result {
	end, rank := p.end()
	if end == nil {
		return nil
	}
	n := &p.tree.nodes[end.node]
	all := p.tree.sum(end.node)
	all.add(key{end.rank, end.what}, uint64(end.end-n.at))
	before := Unknown
	if !n.lost {
		before = StartUp
	}
	all.add(key{nobody, int32(before)}, uint64(n.since-min(run.Begin, n.since)))
	last := run.Begin + otf2.Timestamp(run.Duration)
	all.add(key{nobody, int32(After)}, uint64(last-min(last, end.end)))
	r := &Result{
		Trace: p.traced(end, rank, before), Length: run.Duration, Changes: all.changes, Doubtful: all.doubtful,
		Unstated:   all.unstated,
		Activities: []ActivityRow{}, Ranks: []RankRow{}, Operations: []OperationRow{}, WhatIf: []WhatIf{},
	}
	var on [numActivities]uint64
	ran := p.ranOn(&all, run.Kernel)
	for _, e := range all.list {
		if e.isKernel() {
			continue
		}
		on[min(e.what, int32(Operation))] += e.ns
		switch {
		case e.what < ownActivities:
			name, host := run.Name(int(e.rank))
			row := RankRow{Rank: int(e.rank), Name: name, Host: host, Activity: Activity(e.what).String(), Time: e.ns}
			if Activity(e.what) == GPU {
				row.Kernels = ran[e.rank]
			}
			r.Ranks = append(r.Ranks, row)
		case e.what >= int32(numActivities):
			o := p.named[e.what-int32(numActivities)]
			r.Operations = append(r.Operations, OperationRow{Comm: o.Comm, Communicator: run.Comm(o.Comm),
				Operation: o.Function, Time: e.ns})
		case e.what == int32(Operation):
			r.Operations = append(r.Operations, OperationRow{Comm: otf2.UndefinedComm, Operation: "not compared",
				Time: e.ns})
		}
	}
	r.StartUp, r.After, r.Unknown = on[StartUp], on[After], on[Unknown]
	r.Steady = r.Length - min(r.Length, r.StartUp+r.After+r.Unknown)
	slices.SortFunc(r.Ranks, func(a, b RankRow) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Activity, b.Activity))
	})
	slices.SortFunc(r.Operations, func(a, b OperationRow) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Operation, b.Operation))
	})
	for _, a := range []Activity{Application, Call, GPU, Own, Operation} {
		row := ActivityRow{Activity: a.String(), Time: on[a], Mean: p.working / uint64(max(p.seen, 1))}
		if a < ownActivities {
			row.Mean = p.totals[a] / uint64(max(p.seen, 1))
		}
		row.Imbalance = row.Time - min(row.Time, row.Mean)
		if row.Time > 0 || row.Mean > 0 {
			r.Activities = append(r.Activities, row)
		}
	}
	r.WhatIf = p.whatIf(r, run)
	r.sort()
	return r
}

// end is how the rank that ended last left its last operation.
func (p *Path) end() (last *departure, rank int) {
	for i := range p.ranks {
		if x := p.ranks[i].latest(); x != nil && (last == nil || x.end > last.end) {
			last, rank = x, i
		}
	}
	return last, rank
}

// whatIf asks of each candidate what would go.
func (p *Path) whatIf(r *Result, run *Run) (all []WhatIf) {
	last, _ := p.end()
	end := last.end
	gained := make([]uint64, len(p.candidates))
	for c := range p.candidates {
		latest := otf2.Timestamp(0)
		for i := range p.ranks {
			if x := p.ranks[i].latest(); x != nil {
				p.fresh(x.gain)
				latest = max(latest, x.end-otf2.Timestamp(x.gain.at(int32(c))))
			}
		}
		gained[c] = min(uint64(end-min(end, latest)), r.Steady)
	}
	chance := p.middle(gained)
	all = []WhatIf{}
	for c := range p.candidates {
		x := &p.candidates[c]
		w := WhatIf{Change: FasterRanks, Rank: -1, Name: "all ranks", Gain: gained[c], Operations: x.times,
			Partial: x.late}
		if c != int(everybody) {
			if x.rank == nobody {
				continue
			}
			w.Change, w.Rank = FasterRank, int(x.rank)
			w.Name, w.Host = run.Name(w.Rank)
			w.Gain = min(w.Gain, most(run.Causes, w.Rank))
			least := w.Gain - min(w.Gain, x.margin+chance)
			w.Least = &least
		}
		if w.Gain > 0 {
			all = append(all, w)
		}
	}
	if ideal := p.ideal(r); ideal > 0 {
		all = append(all, WhatIf{Change: NoWaiting, Rank: -1, Name: "no waiting", Gain: ideal})
	}
	return all
}

// most is what a rank can have made the run longer by: no more than operations would have begun earlier without its
// lateness, and no more than it worked longer than the middle one of the others.
func most(c *causes.Result, rank int) uint64 {
	delay := 0.0
	for _, k := range causes.OwnKinds {
		delay += c.Ranks[rank].Delays[k]
	}
	var others []float64
	for i := range c.Ranks {
		if i != rank && c.Ranks[i].Worked > 0 {
			others = append(others, c.Ranks[i].Worked)
		}
	}
	if len(others) > 0 {
		delay = min(delay, c.Ranks[rank].Worked-stats.NearestMedian(others))
	}
	return uint64(max(0, delay))
}

// middle is what the middle one of all ranks gains.
func (p *Path) middle(gained []uint64) uint64 {
	all := make([]uint64, len(p.ranks))
	for c := range p.candidates {
		if r := p.candidates[c].rank; r != nobody {
			all[r] = gained[c]
		}
	}
	if len(all) < 3 {
		return 0
	}
	return stats.NearestMedian(all)
}

// ideal is what would go if all that ranks do were divided equally.
func (p *Path) ideal(r *Result) uint64 {
	mean := p.working
	for _, ns := range p.totals {
		mean += ns
	}
	mean /= uint64(max(p.seen, 1))
	return r.Steady - min(r.Steady, mean)
}

// NotFollowed is the result where a path cannot be followed: why says what is not known, and what to record.
func NotFollowed(why string) *Result {
	return &Result{NotKnown: why, Activities: []ActivityRow{}, Ranks: []RankRow{}, Operations: []OperationRow{},
		WhatIf: []WhatIf{}}
}
