// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Result says what a run's length consists of, and what could be saved. Times are in ns.
type Result struct {
	// NotKnown says why there is no path, and what to record; "" if there is one. Otherwise all other fields are 0.
	NotKnown string `json:"not_known,omitempty"`

	Length  uint64 `json:"length_ns"`   // of the run, from the first to the last event
	StartUp uint64 `json:"start_up_ns"` // part of Length until ranks had done their first operations
	After   uint64 `json:"after_ns"`    // part of Length after the last operation
	Unknown uint64 `json:"unknown_ns"`  // part of Length for which what came before is unknown
	// Steady is the rest: the time of ranks and operations on the path. Activities, Ranks and Operations divide it,
	// each ns once.
	Steady  uint64 `json:"steady_ns"`
	Changes uint64 `json:"changes"` // how often the path changes to another rank
	// Doubtful is the part of the ranks' own time that may belong to another rank, which came as late within the
	// uncertainty of times.
	Doubtful uint64 `json:"doubtful_ns"`
	Unstated uint64 `json:"unstated"` // operations on the path whose times have an unknown uncertainty

	Activities []ActivityRow  `json:"activities"`
	Ranks      []RankRow      `json:"ranks"`      // the longest first
	Operations []OperationRow `json:"operations"` // the longest first
	WhatIf     []WhatIf       `json:"what_if"`    // the greatest gain first

	// GainsNotKnown says why gains of ranks are not known; "" if they are.
	GainsNotKnown string `json:"gains_not_known,omitempty"`

	Trace *Trace `json:"-"` // nil: the steps were not requested

	worked []float64 // by rank, in ns
}

// ActivityRow sums up an activity over all ranks.
type ActivityRow struct {
	Activity string `json:"activity"`
	Time     uint64 `json:"time_ns"` // on the path
	Mean     uint64 `json:"mean_ns"` // of all ranks, on the path or not
	// Imbalance is the time on the path minus Mean: the most that the run would be shorter if this activity were
	// perfectly balanced.
	Imbalance uint64 `json:"imbalance_ns"`
}

// RankRow is an activity of a rank on the path.
type RankRow struct {
	Rank     int    `json:"rank"` // in the world
	Name     string `json:"name"`
	Host     string `json:"host"`
	Activity string `json:"activity"`
	Time     uint64 `json:"time_ns"`
	// Kernels are what its GPU ran meanwhile, the longest first, if Activity is the GPU's and kernels of CUDA streams
	// were recorded.
	Kernels []KernelTime `json:"kernels,omitempty"`
}

// OperationRow is an operation on the path, from its last arrival on.
type OperationRow struct {
	Comm         otf2.CommRef `json:"comm"`
	Communicator string       `json:"communicator"`
	Operation    string       `json:"operation"`
	Time         uint64       `json:"time_ns"`
}

// Change is the kind of change assumed in a WhatIf.
type Change string

// Kinds of changes.
const (
	FasterRank    Change = "rank"    // a rank is as fast as the ranks that it was later than
	FasterLink    Change = "link"    // a slow link, or the GPU at one end, is as fast as others
	FasterGPU     Change = "gpu"     // a GPU that works slowly within operations is as fast as others
	FasterSet     Change = "set"     // several ranks are, together; the verdict names them
	FasterHost    Change = "host"    // all ranks of a host are
	FasterRole    Change = "role"    // all ranks that do the same work are, such as those of a stage
	FasterReplica Change = "replica" // all ranks that work with each other are, such as those of a replica of a model
	FasterRanks   Change = "ranks"   // every rank is as fast as the ranks that it was later than
	NoWaiting     Change = "balance" // work is divided equally, and nobody waits
)

// WhatIf is the saving from one change.
type WhatIf struct {
	Change   Change `json:"change"`
	Rank     int    `json:"rank"`            // in the world; −1: all ranks, or a set
	Ranks    []int  `json:"ranks,omitempty"` // of a set
	Name     string `json:"name"`
	Host     string `json:"host"`
	Peer     *int   `json:"peer"` // the rank at the other end of a link
	PeerName string `json:"-"`    // name of that rank
	Gain     uint64 `json:"gain_ns"`
	// Least is the part of the gain that exceeds the uncertainty of times, and the median gain of the other ranks,
	// which is due to chance. null: unknown.
	Least *uint64 `json:"least_ns"`
	// Operations counts those that would have begun earlier, because the rank came last and was late by itself.
	Operations uint64 `json:"operations"`
	// Scaled reports whether no other ranks do the same work as some of a set, so that their work was scaled to what
	// the other ranks work.
	Scaled     bool     `json:"scaled,omitempty"`
	Confidence *float64 `json:"confidence"` // of the verdict, if it names the culprit; otherwise null
}

// Run has further facts about a run.
type Run struct {
	Begin    otf2.Timestamp // of the first event
	Duration uint64
	Name     func(rank int) (name, host string)
	Comm     func(otf2.CommRef) string
	Kernel   func(otf2.RegionRef) string
}

// Result returns what a path consists of and what its candidates would save. The path cannot be used afterwards. It
// returns nil if there was no operation.
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
	if ideal := p.ideal(r); ideal > 0 {
		r.WhatIf = append(r.WhatIf, WhatIf{Change: NoWaiting, Rank: -1, Name: "no waiting", Gain: ideal})
	}
	return r
}

// end returns how the rank that ended last left its last operation.
func (p *Path) end() (last *departure, rank int) {
	for i := range p.ranks {
		if x := p.ranks[i].latest(); x != nil && (last == nil || x.end > last.end) {
			last, rank = x, i
		}
	}
	return last, rank
}

// ideal returns the saving if all work of ranks were divided equally.
func (p *Path) ideal(r *Result) uint64 {
	mean := p.working
	for _, ns := range p.totals {
		mean += ns
	}
	mean /= uint64(max(p.seen, 1))
	return r.Steady - min(r.Steady, mean)
}

// NotFollowed returns the result if a path cannot be followed; why says what is unknown, and what to record.
func NotFollowed(why string) *Result {
	return &Result{NotKnown: why, Activities: []ActivityRow{}, Ranks: []RankRow{}, Operations: []OperationRow{},
		WhatIf: []WhatIf{}}
}
