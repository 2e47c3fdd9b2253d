// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// readings are the readings of the clocks that a shard keeps, so that others can see how the process's times came
// about. They are the bends of its time line, and readings between them at which the real-time clock has left the
// straight line through its neighbors.
type readings struct {
	kept []shm.ClockTuple
	last shm.ClockTuple // the latest, whether it is kept or not; its Raw is the line's

	// The real-time clock is near the line at all readings since the last one kept if it has gained this much on the
	// raw clock, at the least and at the most (see gain).
	least, most float64
}

// maxReadings is how many are kept. Beyond it every second one is dropped; the line through the others is near what it
// was.
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

// see notes a reading on the straight line. It keeps the one before if the real-time clock would otherwise be off the
// line at some reading since the last one kept.
func (r *readings) see(c shm.ClockTuple) {
	b := r.kept[len(r.kept)-1]
	if s := gain(b, c, 0); s < r.least || s > r.most {
		r.add(r.last)
		b = r.last
	}
	r.least, r.most = max(r.least, gain(b, c, -realTolerance)), min(r.most, gain(b, c, realTolerance))
	r.last = c
}

// gain is how fast the real-time clock gained on the raw one between two readings, if the later reading is off by so
// many nanoseconds.
func gain(a, b shm.ClockTuple, off float64) float64 {
	return (float64(int64((b.Real-a.Real)-(b.Raw-a.Raw))) + off) / float64(b.Raw-a.Raw)
}

// tuples are the readings up to now.
func (r *readings) tuples() []provenance.ClockTuple {
	all := make([]provenance.ClockTuple, 0, len(r.kept)+1)
	for _, c := range r.kept {
		all = append(all, provenance.ClockTuple(c))
	}
	if n := len(r.kept); n > 0 && r.last.Ticks > r.kept[n-1].Ticks {
		all = append(all, provenance.ClockTuple(r.last))
	}
	return all
}
