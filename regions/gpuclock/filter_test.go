// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// rank plays the plans of a communicator rank: one kernel after the other, each launched 10 µs before it begins and
// reported 1 µs after it began and ended. The GPU's clock is offset ahead of the host's.
type rank struct {
	Filter
	plans   []*Plan // enqueued and not written
	starts  []uint64
	notices []Notice
}

const (
	offset = 7_000_000
	launch = 10_000
	length = 50_000
	late   = 1_000
)

func (r *rank) IsLast(number uint64) bool { return r.plans[len(r.plans)-1].Number == number }

func (r *rank) OperationsBehind(number uint64, most int) (n int) {
	for i := len(r.plans) - 1; r.plans[i].Number != number && n < most; i-- {
		n++
	}
	return n
}

func (r *rank) EnqueuedSince(number uint64) (uint64, bool) {
	for i, p := range r.plans {
		if p.Number >= number {
			return r.starts[i], true
		}
	}
	return 0, false
}

// run plays one plan whose kernel begins at a time, with the stamps of one that began then or before.
func (r *rank) run(number, begin, stamped uint64, selfMessages bool) (Interval, bool) {
	p := &Plan{Number: number, Reported: begin + length + late, Kernels: []Kernel{{
		Begin: stamped + offset, End: stamped + length + offset, Began: begin + late + number%7*100,
		Ended: begin + length + late,
	}}}
	r.plans, r.starts = []*Plan{p}, []uint64{begin - launch}
	r.AddReport(p.Kernels[0].Begin, p.Kernels[0].Began)
	r.AddReport(p.Kernels[0].End, p.Kernels[0].Ended)
	note := func(n Notice) {
		if n != NoticeNone {
			r.notices = append(r.notices, n)
		}
	}
	if selfMessages {
		r.SuspectFrom(number)
	}
	note(r.JudgePlan(p, Bounds{Start: begin - launch, Launched: begin - launch}, r))
	i, n, ok := r.PlanInterval(p, Bounds{Launched: begin - launch})
	note(n)
	return i, ok
}

const (
	beginning = uint64(1e15)
	beat      = uint64(1e6)
)

// Plans with stamps of their own have intervals that are as far off as they say, at most.
func TestIntervalsOfPlans(t *testing.T) {
	r := rank{Filter: Filter{Clock: New(false)}}
	for n := uint64(1); n < 3000; n++ {
		begin := beginning + n*beat
		i, ok := r.run(n, begin, begin, false)
		testkit.Require(t, n <= 100 || ok && max(i.Begin, begin)-min(i.Begin, begin) <= i.Uncertainty &&
			max(i.End, begin+length)-min(i.End, begin+length) <= i.Uncertainty, "plan %d: %+v, %v; it ran from %d", n,
			i, ok, begin)
	}
	testkit.Check(t, r.Clock.JumpCount() == 0 && len(r.notices) == 0,
		"%d jumps, notices %v", r.Clock.JumpCount(), r.notices)
}

// From the plan on whose stamps are those of the previous kernel none is believed, and one notice says so.
func TestStampsOfTheKernelBefore(t *testing.T) {
	r := rank{Filter: Filter{Clock: New(false)}}
	believed := 0
	for n := uint64(1); n < 1000; n++ {
		begin := beginning + n*beat
		stamped := begin
		if n >= 500 {
			stamped = begin - beat
		}
		if _, ok := r.run(n, begin, stamped, false); ok && n >= 500 {
			believed++
		}
	}
	testkit.Check(t, believed == 0 && len(r.notices) == 1 && r.notices[0] == NoticeWithheld,
		"%d plans are believed that have other kernels' stamps; notices %v", believed, r.notices)
}

// After messages to oneself only plans are believed that are alone: whose stamps can be no other kernel's.
func TestAfterMessagesToOneself(t *testing.T) {
	r := rank{Filter: Filter{Clock: New(false)}}
	for n := uint64(1); n < 300; n++ {
		begin := beginning + n*beat
		_, ok := r.run(n, begin, begin, n == 200)
		testkit.Check(t, ok || n <= 100, "plan %d is alone, and not believed", n)
	}
	waits := &Plan{Number: 302}
	begin := beginning + 300*beat
	p := &Plan{Number: 300, Reported: begin + length + late,
		Kernels: []Kernel{{Begin: begin + offset, End: begin + length + offset, Began: begin + late,
			Ended: begin + length + late}}}
	r.plans, r.starts = []*Plan{p, waits}, []uint64{begin - launch, begin}
	n := r.JudgePlan(p, Bounds{Start: begin - launch, Launched: begin - launch}, &r)
	_, _, ok := r.PlanInterval(p, Bounds{Launched: begin - launch})
	testkit.Check(t, !ok && n == NoticeSelfMessages, "believed: %v, notice %d", ok, n)
}

// Stamps of an unknown unit are not used, and one notice says so; later they are.
func TestUnitOfStampsIsFoundOut(t *testing.T) {
	r := rank{Filter: Filter{Clock: New(true)}}
	last := false
	for n := uint64(1); n < 3000; n++ {
		begin := beginning + n*beat
		_, last = r.run(n, begin, begin, false)
	}
	testkit.Check(t, last && len(r.notices) == 1 && r.notices[0] == NoticeUnknownTick,
		"the last plan is believed: %v; notices %v", last, r.notices)
}
