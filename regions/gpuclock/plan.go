// SPDX-License-Identifier: Apache-2.0

package gpuclock

// Plan is what NCCL reported of one kernel launch: the stamps of its channels.
type Plan struct {
	Number    uint64   // its place, from 1 on, in the order in which the communicator rank's plans were enqueued
	Kernels   []Kernel // those that have begun and ended, in any order
	Unstamped int      // those that ended without a stamp
	Reported  uint64   // host time of the last report
	// by so many works at most NCCL's stamps were those of earlier ones; Kernels are then the plan's own
	Realigned int

	verdict verdict
	behind  int     // operations enqueued behind it when its last report came, as far as they are of interest
	placed  *placed // nil: it has no place among those that are realigned
}

// Kernel is the share of one channel: stamps, and the host times at which NCCL reported them.
type Kernel struct {
	Channel      uint8
	Operation    int32  // which of the plan's operations, from 0 on
	Begin, End   uint64 // by the GPU's clock; 0: never read
	Began, Ended uint64
}

// Bounds are what is known of a plan beside its stamps. Host times.
type Bounds struct {
	Start    uint64 // its enqueueing
	Launched uint64 // none of its kernels can have begun before
	Replayed bool   // Launched is no launch's, as of a replayed graph: that kernels began long after it tells nothing
	NetStop  uint64 // when all its network traffic was over; 0: not known, or there was none
}

// Interval is when something ran on a GPU, by the host's clock: each of Begin and End is at most Uncertainty (ns) from
// the true time, in 95 of 100 cases at least.
type Interval struct{ Begin, End, Uncertainty uint64 }

// verdict is what is thought of a plan's stamps.
type verdict uint8

const (
	unjudged verdict = iota
	plausible
	early // begins before its launch, as far as the clock is known
	implausible
)

// planEnds are the ends of a plan's kernels, by the GPU's clock, and when NCCL reported them.
type planEnds struct {
	first, last  uint64
	began, ended uint64
}

func (p *Plan) ends() planEnds {
	k := &p.Kernels[0]
	s := planEnds{first: k.Begin, last: k.End, began: k.Began, ended: k.Ended}
	for i := range p.Kernels[1:] {
		k := &p.Kernels[i+1]
		s.first, s.last = min(s.first, k.Begin), max(s.last, k.End)
		// All have begun after the first and ended before the last.
		s.began, s.ended = min(s.began, k.Began), max(s.ended, k.Ended)
	}
	return s
}
