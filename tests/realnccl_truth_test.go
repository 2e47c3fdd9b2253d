// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"ncclotf2/shard"
	"ncclotf2/tests/realnccl/suite"
)

// rawClock gives how CLOCK_MONOTONIC_RAW is had from an archive's times: all processes' times continue the real time at which
// the first of them began.
func rawClock(shards []*shard.Process) func(uint64) int64 {
	first := slices.MinFunc(shards, func(a, b *shard.Process) int { return cmp.Compare(a.Clock.AnchorRaw, b.Clock.AnchorRaw) }).Clock
	return func(t uint64) int64 { return int64(t - first.AnchorReal + first.AnchorRaw) }
}

// plansInOrder lists one operation of each plan of a row, in order of time.
func plansInOrder(ops map[string][]*operation) (plans []*operation) {
	type interval struct{ begin, end uint64 }
	seen := make(map[interval]bool)
	for _, list := range ops {
		for _, o := range list {
			if at := (interval{o.begin, o.end}); !seen[at] {
				seen[at] = true
				plans = append(plans, o)
			}
		}
	}
	slices.SortFunc(plans, func(a, b *operation) int { return cmp.Compare(a.begin, b.begin) })
	return plans
}

// launched gives when the pretended GPU ran what was launched for a rank, in order.
func launched(p *suite.Process, key calledRank) (runs []ran) {
	at := make(map[int]ran)
	for _, k := range p.Kernels {
		if k.WorldRank != key.worldRank || k.Comm != key.comm {
			continue
		}
		r, ok := at[k.Launch]
		if !ok {
			r = ran{begin: k.T0, end: k.T1}
		}
		at[k.Launch] = ran{begin: min(r.begin, k.T0), end: max(r.end, k.T1)}
	}
	return slices.SortedFunc(maps.Values(at), func(a, b ran) int { return cmp.Compare(a.begin, b.begin) })
}

// offs is how far the ends of plans' GPU intervals are from those of what ran.
func offs(plans []*operation, runs []ran, raw func(uint64) int64) (all []time.Duration) {
	for i, o := range plans {
		if o.source == "gpu" {
			all = append(all, time.Duration(raw(o.begin)-int64(runs[i].begin)).Abs(), time.Duration(raw(o.end)-int64(runs[i].end)).Abs())
		}
	}
	return all
}

// timesAgainstTruth wants GPU intervals to be those of the kernels that ran, plan by plan, as well as the archive says that it
// knows.
func timesAgainstTruth(t *testing.T, logs map[int]*suite.Process, rows map[calledRank]*row, shards []*shard.Process) {
	t.Helper()
	if len(shards) == 0 {
		return
	}
	raw := rawClock(shards)
	var errors, uncertainties []time.Duration
	outside, other, untold := 0, 0, 0
	for key, r := range rows {
		plans := plansInOrder(r.ops)
		var off []time.Duration
		runs := launched(logs[key.pid], key)
		if len(runs) == len(plans) {
			off = offs(plans, runs, raw)
		}
		for _, o := range plans {
			switch {
			case o.source != "gpu":
				other++
			case len(runs) != len(plans):
				untold++
			default:
				u := time.Duration(o.uncertainty)
				uncertainties = append(uncertainties, u)
				for _, d := range off[:2] {
					errors = append(errors, d)
					if d > u+strictSlack {
						outside++
						t.Logf("%s rank %d: %s: %v off, uncertainty %v", r.comm.Name, r.rank, o.sequenceKey(), d, u)
					}
				}
				off = off[2:]
			}
		}
	}
	slices.Sort(errors)
	slices.Sort(uncertainties)
	summary := fmt.Sprintf("%d plans with GPU time, %d with another, of %d it is not told what ran; errors: median %v, p95 %v, max %v; uncertainty: median %v, max %v; %d outside it",
		len(uncertainties), other, untold, quantile(errors, .5), quantile(errors, .95), quantile(errors, 1), quantile(uncertainties, .5), quantile(uncertainties, 1), outside)
	if untold > 0 {
		t.Errorf("launches and plans differ in number: %s", summary)
	}
	if outside > 2 && outside*20 > len(errors) {
		t.Errorf("%d of %d ends of GPU intervals are farther from the kernels' than the archive says: %s", outside, len(errors), summary)
	}
}
