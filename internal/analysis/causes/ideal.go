// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The run with an ideal network, in which an operation ends on a member as soon as all members that it waits for have
// come. For each rank it is calculated how much earlier it would be. The times of what it did itself do not change,
// nor do those of communicators' first operations, and of operations that are not comparable.

// ended is the state of a rank's last operation.
type ended struct {
	seq   uint32
	saved float64
}

func (e *ended) see(seq uint32, saved float64) {
	if seq >= e.seq {
		e.seq, e.saved = seq, saved
	}
}

// ideal calculates how much earlier the members of a collective would leave it.
func (e *Engine) ideal(late *facts.Lateness) {
	base := late.First
	come := func(i int) float64 { return float64(e.came[i].Begin-base) - e.arrived[i].saved }
	all, others, root := math.Inf(-1), math.Inf(-1), math.Inf(-1) // when the last of them would come
	for i := range e.came {
		if e.came[i].Source != late.Source {
			continue
		}
		at := come(i)
		all = max(all, at)
		if e.came[i].Root {
			root = at
		} else {
			others = max(others, at)
		}
	}
	for i := range e.came {
		m := &e.came[i]
		if m.Source != late.Source || m.End < m.Begin {
			continue
		}
		until := come(i)
		switch {
		case late.Kind == facts.WaitCollective || m.Wait > 0 &&
			m.Begin+otf2.Timestamp(m.Wait) == e.came[late.Last].Begin:
			until = all
		case late.Kind == facts.WaitLateBroadcast:
			until = max(until, root)
		case late.Kind == facts.WaitEarlyReduce && m.Root:
			until = max(until, others)
		}
		e.arrived[i].saved = max(float64(m.End-base)-until, 0)
	}
}

// idealLaunch does the same for a launch of messages, which ends when those that it waited for have come.
func (e *Engine) idealLaunch(l *launch, s *state) {
	if len(l.others) == 0 || l.End < l.Begin {
		return
	}
	until := -s.saved
	for _, o := range l.others {
		if !l.waitsFor(o) { // what came before that one may not be known yet
			continue
		}
		saved := 0.0
		if p := e.before(&o.Local); p != nil {
			saved = p.left.saved
		}
		until = max(until, float64(o.There-l.Begin)-saved)
	}
	s.saved = max(float64(l.End-l.Begin)-until, 0)
}
