// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/realnccl/suite"
)

// rawClock gives how CLOCK_MONOTONIC_RAW is had from an archive's times: all processes' times continue the real time at
// which the first of them began.
func rawClock(shards []*description.Process) func(uint64) int64 {
	first := slices.MinFunc(shards, func(a, b *description.Process) int {
		return cmp.Compare(a.Clock.AnchorRaw, b.Clock.AnchorRaw)
	}).Clock
	return func(t uint64) int64 { return int64(t - first.AnchorReal + first.AnchorRaw) }
}

// plansInOrder lists one operation of each plan of a row, in the row's order, which is that of the launches. Plans are
// told apart by their regions: where times of several sources meet, some have no length and the same time.
func plansInOrder(ops map[string][]*operation) (plans []*operation) {
	of := make(map[int]*operation)
	for _, list := range ops {
		for _, o := range list {
			of[o.region] = o
		}
	}
	for _, region := range slices.Sorted(maps.Keys(of)) {
		plans = append(plans, of[region])
	}
	return plans
}

// launched gives when the pretended GPU ran what was launched for a rank, in order.
func launched(p *suite.Process, key calledRank) []*launch {
	at := make(map[int]*launch)
	for i := range p.Kernels {
		k := &p.Kernels[i]
		if k.WorldRank != key.worldRank || k.Comm != key.comm {
			continue
		}
		if at[k.Launch] == nil {
			at[k.Launch] = &launch{begin: k.T0, lasts: make(map[int]*suite.Kernel)}
		}
		at[k.Launch].add(k)
	}
	return slices.SortedFunc(maps.Values(at), func(a, b *launch) int { return cmp.Compare(a.begin, b.begin) })
}

// offs is how far the ends of plans' GPU intervals are from where they may be by what ran.
func offs(plans []*operation, runs []*launch, raw func(uint64) int64) (all []time.Duration) {
	for i, o := range plans {
		if o.source == "gpu" {
			all = append(all, time.Duration(raw(o.begin)-int64(runs[i].begin)).Abs(), runs[i].off(raw(o.end)))
		}
	}
	return all
}

// timing is how GPU intervals lie to what ran.
type stepTiming struct {
	errors        []time.Duration // of both ends of each
	uncertainties []time.Duration // as the archive states them
	covered       int             // errors that these cover
	far           int             // that they do not cover by far
	between       int             // ends of launches that may have ended later than their stamps say
	other         int             // plans with another time
}

func (m *stepTiming) String() string {
	slices.Sort(m.errors)
	slices.Sort(m.uncertainties)
	return fmt.Sprintf(
		"%d ends of GPU intervals: off by %v (median), %v (p95), %v (most); the stated uncertainty, %v (median), %v "+
			"(most), covers %d; %d are off by more than %d times that; %d are of kernels that go on behind their "+
			"stamps; %d plans have another time",
		len(m.errors), quantile(m.errors, .5), quantile(m.errors, .95), quantile(m.errors, 1),
		quantile(m.uncertainties, .5), quantile(m.uncertainties, 1), m.covered, m.far, byFar, m.between, m.other)
}

func (m *stepTiming) add(o *stepTiming) {
	m.errors, m.uncertainties = append(m.errors, o.errors...), append(m.uncertainties, o.uncertainties...)
	m.covered, m.far, m.between, m.other = m.covered+o.covered, m.far+o.far, m.between+o.between, m.other+o.other
}

// That uncertainties are true in 95 of 100 cases can be said of many runs only: those of a communicator rank are all
// wrong together. So of a release's intervals a few may be off by more than byFar times their uncertainty, and none by
// more than that and farSlack.
const (
	byFar    = 4
	farSlack = time.Millisecond
	farShare = 0.02
)

// timesAgainstTruth wants GPU intervals to be those of the kernels that ran, plan by plan: where these may go on when
// their end was stamped, they end between the two.
func timesAgainstTruth(t *testing.T, logs map[int]*suite.Process, rows map[calledRank]*row,
	shards []*description.Process) *stepTiming {
	t.Helper()
	partsAgree(t, logs)
	m := &stepTiming{}
	if len(shards) == 0 {
		return m
	}
	raw := rawClock(shards)
	for key, r := range rows {
		plans, runs := plansInOrder(r.ops), launched(logs[key.pid], key)
		if len(runs) != len(plans) {
			testkit.Check(t, !slices.ContainsFunc(plans, func(o *operation) bool { return o.source == "gpu" }),
				"%s rank %d: %d launches ran, and the archive has %d plans", r.comm.Name, r.rank, len(runs), len(plans))
			continue
		}
		off := offs(plans, runs, raw)
		for i, o := range plans {
			if o.source != "gpu" {
				m.other++
				continue
			}
			u := time.Duration(o.uncertainty)
			if !runs[i].whole() {
				m.between++
			}
			m.uncertainties, m.errors = append(m.uncertainties, u), append(m.errors, off[:2]...)
			for _, d := range off[:2] {
				if d <= u {
					m.covered++
				}
				if d > byFar*u+strictSlack {
					m.far++
					t.Logf("%s rank %d: %s: %v off, uncertainty %v", r.comm.Name, r.rank, o.sequenceKey(), d, u)
				}
				if d > byFar*u+farSlack {
					t.Errorf("%s rank %d: %s: %v off, uncertainty %v", r.comm.Name, r.rank, o.sequenceKey(), d, u)
				}
			}
			off = off[2:]
		}
	}
	return m
}
