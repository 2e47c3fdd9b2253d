// SPDX-License-Identifier: Apache-2.0

package gpuclock

// Plan holds NCCL's reports of one kernel launch: the stamps of its channels.
type Plan struct {
	Number    uint64   // from 1 on, in the order in which the communicator rank's plans were enqueued
	Kernels   []Kernel // those that have begun and ended, in any order
	Unstamped int      // those that ended without a stamp
	Reported  uint64   // host time of the last report
	// largest number of works by which NCCL's stamps were shifted; Kernels then has the plan's own stamps
	Realigned int

	verdict verdict
	behind  int     // operations enqueued after it when its last report came, up to ringPlaces
	placed  *placed // nil: it is not realigned
}

// Kernel is the share of one channel: stamps, and the host times at which NCCL reported them.
type Kernel struct {
	Channel      uint8
	Operation    int32  // index of the plan's operation
	Begin, End   uint64 // by the GPU's clock; 0: never read
	Began, Ended uint64
}

// Bounds are the known bounds of a plan's times, apart from its stamps. Host times.
type Bounds struct {
	Start    uint64 // its enqueueing
	Launched uint64 // none of its kernels can have begun before this
	Replayed bool   // Launched is not that of a launch, as for a replayed graph: kernels may begin long after it
	NetStop  uint64 // when all its network traffic was over; 0: not known, or there was none
}

// Interval is when something ran on a GPU, by the host's clock: each of Begin and End is at most Uncertainty (ns) from
// the true time, in at least 95 of 100 cases.
type Interval struct{ Begin, End, Uncertainty uint64 }

// verdict is the filter's judgment of a plan's stamps.
type verdict uint8

const (
	unjudged verdict = iota
	plausible
	early // begins before its launch by the clock as it is known
	implausible
)

// planEnds are the extremes of a plan's kernels, by the GPU's clock, and their reports' host times.
type planEnds struct {
	first, last  uint64
	began, ended uint64
}

func (p *Plan) planEnds() planEnds {
	k := &p.Kernels[0]
	s := planEnds{first: k.Begin, last: k.End, began: k.Began, ended: k.Ended}
	for i := range p.Kernels[1:] {
		k := &p.Kernels[i+1]
		s.first, s.last = min(s.first, k.Begin), max(s.last, k.End)
		// All kernels have begun after the first and ended before the last.
		s.began, s.ended = min(s.began, k.Began), max(s.ended, k.Ended)
	}
	return s
}
