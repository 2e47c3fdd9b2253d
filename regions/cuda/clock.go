// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/cupti"
)

// CUPTI's clock: readings of it, and the records whose times it does not cover yet. How its time is chosen and read
// stands in docs/gpu.md, "Kernels of CUDA streams (CUPTI)".

// times brings CUPTI's times to the process's time line.
type times struct {
	clock   cupti.Clock
	first   *reading // not in the clock yet: it takes a second one to know how long a tick is
	last    reading
	perTick float64   // ns
	waiting []untimed // records of times that the clock does not cover yet
}

// reading is a record of what CUPTI's clock said: its time, the same on the process's line and in ticks, and how many
// ticks it took.
type reading struct{ cupti, line, ticks, width uint64 }

// untimed is a record whose times are to be brought to the process's line.
type untimed struct {
	arrived uint64
	last    uint64       // CUPTI's
	place   func() error // an error of cupti.Clock if it cannot be
	lost    func()
}

const (
	// How long (ns) a record waits for a clock reading. They come twice a second.
	clockLimit = 10e9
	// foreignNs is how far CUPTI's default clock can be from CLOCK_REALTIME: both are read close to each other, but the
	// reader may lose the CPU in between.
	foreignNs = 1e9
)

// Reading takes a reading of CUPTI's clock at time t: what it said, what CLOCK_REALTIME said (ns), the ticks of the
// plugin's clock, and how many of these it took. How long those were follows from two readings.
func (g *Recorder) Reading(t, cupti, real, ticks, width uint64) {
	g.activate()
	s, k := &g.times, reading{cupti: cupti, line: t, ticks: ticks, width: width}
	if d := int64(cupti - real); d > foreignNs || -d > foreignNs {
		g.counts[countForeignClock]++
	}
	if s.last.line != 0 && k.line > s.last.line && k.ticks > s.last.ticks {
		s.perTick = float64(k.line-s.last.line) / float64(k.ticks-s.last.ticks)
	}
	s.last = k
	if s.perTick == 0 {
		s.first = &k
		return
	}
	if s.first != nil {
		s.add(*s.first)
		s.first = nil
	}
	s.add(k)
	if n := s.clock.Segments(); n > 0 {
		g.counts[countClockJumps] = uint64(n - 1)
	}
	g.placeUntimed()
}

func (s *times) add(k reading) {
	s.clock.Add(k.cupti, k.line, uint64(float64(k.width)*s.perTick))
}

// later places a record when the clock covers its times.
func (g *Recorder) later(u untimed) {
	if covered, ok := g.times.clock.Covered(); ok && u.last <= covered && u.place() == nil {
		return
	}
	if len(g.times.waiting) >= maxActivities {
		g.loseUntimed()
	}
	g.times.waiting = append(g.times.waiting, u)
}

// loseUntimed gives the oldest of those up that wait for the clock.
func (g *Recorder) loseUntimed() {
	w := g.times.waiting
	w[0].lost()
	w[0] = untimed{}
	g.times.waiting = w[1:]
}

// placeUntimed tries again, when the clock covers more.
func (g *Recorder) placeUntimed() {
	g.times.waiting = slices.DeleteFunc(g.times.waiting, func(u untimed) bool { return u.place() == nil })
}
