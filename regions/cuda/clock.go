// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/cupti"
)

// CUPTI's clock: its readings, and the records whose times it does not cover yet. docs/gpu.md, "Kernels of CUDA streams
// (CUPTI)", describes how it is chosen and read.

// times converts CUPTI's times to the process's time line.
type times struct {
	clock   cupti.Clock
	first   *reading // not in the clock yet: the length of a tick needs a second one
	last    reading
	perTick float64   // ns
	waiting []untimed // records whose times the clock does not cover yet
}

// reading is a reading of CUPTI's clock: its time, the same on the process's line and in ticks, and the ticks that the
// reading took.
type reading struct{ cupti, line, ticks, width uint64 }

// untimed is a record whose times are not converted yet.
type untimed struct {
	arrived     uint64
	last        uint64       // CUPTI's
	placeRecord func() error // returns an error of cupti.Clock if the clock does not cover it
	lost        func()
}

const (
	// clockLimit (ns) is how long a record waits for a clock reading. They come twice a second.
	clockLimit = 10e9
	// foreignNs is the largest distance of CUPTI's default clock from CLOCK_REALTIME: both are read close to each
	// other, but the reader may lose the CPU in between.
	foreignNs = 1e9
)

// AddClockReading takes a reading of CUPTI's clock at time t: its value, CLOCK_REALTIME (ns), the ticks of the plugin's
// clock, and how many of these the reading took. The length of a tick follows from two readings.
func (g *Recorder) AddClockReading(t, cupti, real, ticks, width uint64) {
	g.allocateOnce()
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
		s.addReading(*s.first)
		s.first = nil
	}
	s.addReading(k)
	if n := s.clock.Segments(); n > 0 {
		g.counts[countClockJumps] = uint64(n - 1)
	}
	g.placeUntimed()
}

func (s *times) addReading(k reading) {
	s.clock.Add(k.cupti, k.line, uint64(float64(k.width)*s.perTick))
}

// waitForClock places a record when the clock covers its times.
func (g *Recorder) waitForClock(u untimed) {
	if covered, ok := g.times.clock.Covered(); ok && u.last <= covered && u.placeRecord() == nil {
		return
	}
	if len(g.times.waiting) >= maxActivities {
		g.loseUntimed()
	}
	g.times.waiting = append(g.times.waiting, u)
}

// loseUntimed gives up the oldest record that waits for the clock.
func (g *Recorder) loseUntimed() {
	w := g.times.waiting
	w[0].lost()
	w[0] = untimed{}
	g.times.waiting = w[1:]
}

// placeUntimed retries when the clock covers more.
func (g *Recorder) placeUntimed() {
	g.times.waiting = slices.DeleteFunc(g.times.waiting, func(u untimed) bool { return u.placeRecord() == nil })
}
