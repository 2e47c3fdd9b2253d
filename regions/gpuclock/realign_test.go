// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// shifted plays a communicator rank whose plans are on one channel. Each is launched when the one before has ended,
// unless it is queued; its kernel begins 10 µs after its launch, or when the one before has ended.
type shifted struct {
	Filter
	plans  []*Plan
	bounds []Bounds
	works  []Works
	truth  []Kernel // of the device's works
	whose  []int    // plans
	host   int
	now    uint64
}

// newShifted makes one after some kernels of another communicator rank, so that the clock is known.
func newShifted() *shifted {
	s := &shifted{Filter: Filter{Clock: New(false)}, now: beginning}
	for n := range uint64(100) {
		s.now += beat
		s.Clock.addStamp(s.now+offset, s.now+late+n%7*100, false)
		s.Clock.notBefore(s.now+offset, s.now-launch, true)
	}
	return s
}

// enqueue adds a plan with so many works of its own messages and one that the host counts. NCCL hands out the stamps of
// the work that has its number.
func (s *shifted) enqueue(own int, queued bool) {
	if !queued {
		s.now += beat
	}
	b := Bounds{Start: s.now, Launched: s.now}
	begin := s.now + launch
	if n := len(s.truth); n > 0 {
		begin = max(begin, s.truth[n-1].End-offset+1)
	}
	p := &Plan{Number: uint64(len(s.plans) + 1)}
	for range own + 1 {
		s.truth = append(s.truth, Kernel{Begin: begin + offset, End: begin + length + offset})
		s.whose = append(s.whose, len(s.plans))
	}
	k := s.truth[s.host]
	s.host++
	k.Began = max(k.Begin-offset, b.Launched) + late
	k.Ended = max(k.End-offset, k.Began) + late
	p.Kernels, p.Reported = []Kernel{k}, k.Ended
	s.AddReport(k.Begin, k.Began)
	s.AddReport(k.End, k.Ended)
	w := Works{Host: []Kernel{k}}
	for range own {
		w.Own = append(w.Own, 1)
	}
	s.plans, s.bounds, s.works = append(s.plans, p), append(s.bounds, b), append(s.works, w)
	s.now += 2_000
	if !queued {
		s.now = begin + length + 5_000
	}
}

// intervals follows all plans and returns for each when it ran; nil: unknown.
func (s *shifted) intervals() []*Interval {
	for i, p := range s.plans {
		s.FollowPlan(p, s.bounds[i], s.works[i])
	}
	var all []*Interval
	for i, p := range s.plans {
		var at *Interval
		if in, ok := s.realignPlan(p, s.bounds[i]); ok {
			at = &in
		}
		all = append(all, at)
	}
	return all
}

// check compares the results with the truth; want is the number of plans with a result.
func (s *shifted) check(t *testing.T, want int) {
	t.Helper()
	got := 0
	for i, in := range s.intervals() {
		if in == nil {
			continue
		}
		got++
		for j, of := range s.whose {
			if k := s.truth[j]; of == i && (distance(in.Begin, k.Begin-offset) > in.Uncertainty+1000 ||
				distance(in.End, k.End-offset) > in.Uncertainty+1000) {
				t.Errorf("plan %d ran from %d to %d and not %+v", i, k.Begin-offset, k.End-offset, *in)
			}
		}
	}
	testkit.Check(t, got == want, "something is said of %d plans of %d, want %d", got, len(s.plans), want)
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }

func (s *shifted) enqueueAll(n, own int, queued bool) {
	for i := range n {
		s.enqueue(own, queued && i > 0)
	}
}

// Stamps go to the plans whose they are, but for the last ones, which NCCL never hands out.
func TestStampsAreRealigned(t *testing.T) {
	s := newShifted()
	s.enqueueAll(1, 1, false)
	s.enqueueAll(50, 0, false)
	s.check(t, 50)
	if s.plans[0].Realigned != 1 || s.plans[20].Realigned != 1 || s.plans[20].Kernels[0].Begin != s.truth[21].Begin {
		t.Errorf("realigned by %d and %d, %+v", s.plans[0].Realigned, s.plans[20].Realigned, s.plans[20].Kernels)
	}
}

// While kernels queue up nothing shows by how much stamps are shifted: only what was before is believed, here the first
// plan, until something does.
func TestShiftMustBeSeen(t *testing.T) {
	s := newShifted()
	s.enqueueAll(20, 1, true)
	s.check(t, 1)
	s = newShifted()
	s.enqueueAll(20, 1, true)
	s.enqueueAll(25, 0, false)
	s.check(t, 25)
}

// More messages to oneself than a ring has places: it is unknown whose stamps are reported.
func TestShiftIsNotARoundOfTheRing(t *testing.T) {
	s := newShifted()
	s.enqueueAll(1, 64, false)
	s.enqueueAll(80, 0, false)
	s.check(t, 0)
}

// What contradicts ends realigning: stamps out of order, a stamp before its launch, a beginning after the network was
// done, a jump of the clock, and uncountable works. A possible gap only separates the works before and after it.
func TestContradictionsEndRealigning(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(s *shifted)
		want int
	}{
		{"none", func(*shifted) {}, 50},
		{"out of order", func(s *shifted) { s.works[40].Host[0].Begin, s.works[40].Host[0].End = 1, 2 }, 0},
		{"ends before it begins", func(s *shifted) { s.works[40].Host[0].End = s.works[40].Host[0].Begin - 1 }, 0},
		{"no stamp", func(s *shifted) { s.works[40].Host[0].Begin = 0 }, 0},
		{"before its launch", func(s *shifted) { s.bounds[40].Launched += beat / 2 }, 0},
		{"after its network traffic", func(s *shifted) { s.bounds[40].NetStop = s.bounds[40].Launched - beat/2 }, 0},
		{"nobody can count", func(s *shifted) { s.works[40].Uncounted = true }, 0},
		{"the host has counted it", func(s *shifted) { s.works[0].Own = nil; s.works[1].Own = []int{1, 1} }, 0},
		{"something may be missing", func(s *shifted) { s.works[40].Unsure = true }, 48},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShifted()
			s.enqueueAll(1, 1, false)
			s.enqueueAll(50, 0, false)
			c.set(s)
			said := 0
			for i, in := range s.intervals() {
				if in == nil {
					continue
				}
				if said++; c.want > 0 && distance(in.Begin, s.bounds[i].Launched+launch) > in.Uncertainty+1000 {
					t.Errorf("plan %d: %+v", i, *in)
				}
			}
			testkit.Check(t, said == c.want, "something is said of %d plans, want %d", said, c.want)
		})
	}
}
