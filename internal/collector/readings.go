// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// readings are the tuples that tell others how a process's times came about: the points of its line, and such on the
// line between them at which the real-time clock has left the straight line through its neighbors.
type readings struct {
	kept []shm.ClockTuple
	last shm.ClockTuple // the latest, whether it is kept or not; its Raw is the line's

	// From the last one kept the real-time clock may have run ahead of the raw one as fast as this, for it to be near
	// the line at all readings since.
	least, most float64
}

// maxReadings bounds them. Beyond, every second one goes: the line through the others is near what it was.
const maxReadings = 2048

// realTolerance, in nanoseconds, is by how much the real-time clock may be off the line through readings.
const realTolerance = 500

// add keeps a point of the line.
func (r *readings) add(c shm.ClockTuple) {
	if n := len(r.kept); n > 0 && r.kept[n-1].Ticks == c.Ticks {
		r.kept = r.kept[:n-1]
	}
	if len(r.kept) >= maxReadings {
		n := 1
		for i := 2; i < len(r.kept); i += 2 {
			r.kept[n] = r.kept[i]
			n++
		}
		r.kept = r.kept[:n]
	}
	r.kept, r.last = append(r.kept, c), c
	r.least, r.most = math.Inf(-1), math.Inf(1)
}

// see looks at a reading on the straight line. The one before it is kept if the real-time clock would be off at some
// reading since the last that was kept.
func (r *readings) see(c shm.ClockTuple) {
	b := r.kept[len(r.kept)-1]
	if s := gain(b, c, 0); s < r.least || s > r.most {
		r.add(r.last)
		b = r.last
	}
	r.least, r.most = max(r.least, gain(b, c, -realTolerance)), min(r.most, gain(b, c, realTolerance))
	r.last = c
}

// gain is how fast the real-time clock ran ahead of the raw one between two readings, if the later is off by some
// nanoseconds.
func gain(a, b shm.ClockTuple, off float64) float64 {
	return (float64(int64((b.Real-a.Real)-(b.Raw-a.Raw))) + off) / float64(b.Raw-a.Raw)
}

// tuples are the readings up to now.
func (r *readings) tuples() []experiment.ClockTuple {
	all := make([]experiment.ClockTuple, 0, len(r.kept)+1)
	for _, c := range r.kept {
		all = append(all, experiment.ClockTuple(c))
	}
	if n := len(r.kept); n > 0 && r.last.Ticks > r.kept[n-1].Ticks {
		all = append(all, experiment.ClockTuple(r.last))
	}
	return all
}
