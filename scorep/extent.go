// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
)

// extent is the range of an archive's event times under the processes' current clock corrections.
type extent struct {
	first, last uint64 // corrected times; first > last if there are no events
	spans       []span // ranges of event times, not yet corrected
}

// span is a range of times on a process's own clock.
type span struct {
	part *jobs.Process
	jobs.Lifespan
}

// measure sets first and last from spans, with the processes' current corrections.
func (x *extent) measure() {
	x.first, x.last = math.MaxUint64, 0
	for _, s := range x.spans {
		x.first, x.last = min(x.first, s.part.At(s.Begin)), max(x.last, s.part.At(s.End))
	}
}

// lifespans returns the range of event times of each of n groups of processes. A group without events gets the range of
// the whole archive.
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
