// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
)

// extent is the time that an archive's events take, by the processes' present corrections.
type extent struct {
	first, last uint64 // corrected; first > last if there are no events
	spans       []span // that first and last come from
}

// span is a stretch of time on a process's own clock.
type span struct {
	part *jobs.Process
	jobs.Lifespan
}

// measure finds the first and the last time of all events by the processes' present corrections.
func (x *extent) measure() {
	x.first, x.last = math.MaxUint64, 0
	for _, s := range x.spans {
		x.first, x.last = min(x.first, s.part.At(s.Begin)), max(x.last, s.part.At(s.End))
	}
}

// lifespans returns, for each of n groups of processes, the time from its first to its last event; for one without
// events that of all.
func (x *extent) lifespans(of map[*jobs.Process]int, n int) []jobs.Lifespan {
	all := make([]jobs.Lifespan, n)
	for i := range all {
		all[i] = jobs.Lifespan{Begin: math.MaxUint64, End: 0}
	}
	for _, s := range x.spans {
		if n, known := of[s.part]; known {
			l := &all[n]
			l.Begin, l.End = min(l.Begin, s.part.At(s.Begin)), max(l.End, s.part.At(s.End))
		}
	}
	for i := range all {
		if all[i].Begin > all[i].End {
			all[i] = jobs.Lifespan{Begin: x.first, End: x.last}
		}
	}
	return all
}
