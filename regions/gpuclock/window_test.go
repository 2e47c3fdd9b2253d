// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A clock known from few late reports may be off by much. The plan's own bounds limit that, and then both ends move:
// the plan's length is known all the same.
func TestPlansAreMovedAsAWhole(t *testing.T) {
	const off = 1_000_000 // by which the clock says too late (or too early)
	for _, c := range []struct {
		name                                string
		error                               int64
		launched, began, ended, net, beside uint64 // before and after the true ends; 0: nothing is known
		most                                uint64 // uncertainty
	}{
		{"the report tells", off, 3 * off, off / 4, 2 * off, 0, off / 4, 3 * off},
		{"the report of the end tells", off, 3 * off, 2 * off, off / 8, 0, off / 8, 3 * off},
		{"the network tells", off, 3 * off, 2 * off, 2 * off, off / 16, off / 16, 3 * off},
		{"the launch tells", -off, off / 4, 2 * off, 2 * off, 0, off / 4, 3 * off},
		{"all of it", -off, off / 32, off / 8, off / 8, off / 16, off / 32, off/16 + off/32},
		{"nothing", off, 3 * off, 3 * off, 3 * off, 0, off, 4 * off},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Filter{Clock: New(false)}
			begin := beginning
			// A report and a launch, with the truth not in their middle.
			f.Clock.addStamp(begin+offset, begin+uint64(3*off+c.error), false)
			f.Clock.notBefore(begin+offset, begin-uint64(3*off-c.error), true)
			f.Clock.FitLine(true)
			p := &Plan{Kernels: []Kernel{{Begin: begin + offset, End: begin + length + offset, Began: begin + c.began,
				Ended: begin + length + c.ended}}}
			b := Bounds{Launched: begin - c.launched}
			if c.net != 0 {
				b.NetStop = begin + c.net
			}
			i, ok := f.mapPlan(p, b)
			testkit.Require(t, ok && i.End-i.Begin == length,
				"%+v, %v: %d ns long and not %d", i, ok, i.End-i.Begin, length)
			if d := distance(i.Begin, begin); d > c.beside || d > i.Uncertainty || i.Uncertainty > c.most {
				t.Errorf("off by %d and not %d at most; uncertainty %d, %d at most", d, c.beside, i.Uncertainty, c.most)
			}
		})
	}
}

// An unknown clock leaves the plan's own bounds.
func TestUnknownClockLeavesTheWindow(t *testing.T) {
	for _, c := range []struct {
		w     window
		moved int64
		off   uint64
	}{
		{window{-5, 7}, 0, 7},
		{window{3, 7}, 3, 4},
		{window{-9, -2}, -2, 7},
		{window{2, 1}, 1, 1}, // rounded
	} {
		for _, clock := range []int64{unknownNs, 1 << 40} {
			moved, off := c.w.nearestMove(clock)
			testkit.Check(t, moved == c.moved && off == c.off, "%+v: moved by %d, uncertainty %d", c.w, moved, off)
		}
	}
}

// If all reports are late, launches decide. Of the plans that wait, those of the later ones make the clock better for
// the first, whose kernel was long in coming.
func TestLaunchesThatComeLaterTell(t *testing.T) {
	s := &shifted{Filter: Filter{Clock: New(false)}, now: beginning}
	s.enqueueAll(1, 1, false)
	s.enqueueAll(30, 0, false)
	s.Clock = New(false)
	for i := range s.plans {
		more := beat/4 + beat/20*uint64(i*5%13)
		for _, k := range []*Kernel{&s.plans[i].Kernels[0], &s.works[i].Host[0]} {
			k.Began, k.Ended = k.Began+more, k.Ended+more
		}
		k := s.plans[i].Kernels[0]
		s.AddReport(k.Begin, k.Began)
		s.AddReport(k.End, k.Ended)
	}
	s.bounds[0].Launched -= beat
	s.Clock.notBefore(s.truth[0].Begin, s.bounds[0].Launched, true)
	s.Clock.FitLine(true)
	first := s.intervals()[0]
	testkit.Check(t, first != nil && first.Uncertainty <= beat/2 &&
		distance(first.Begin, s.truth[0].Begin-offset) <= first.Uncertainty, "the first plan: %+v, it began at %d",
		first, s.truth[0].Begin-offset)
}
