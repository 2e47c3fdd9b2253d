// SPDX-License-Identifier: Apache-2.0

package view

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// eachUnit calls f for the location's units in the order shown.
func (l *location) eachUnit(f func(r *row, u unit)) {
	for _, p := range l.order {
		if u := p.row.remaining(p.unit); u.from < u.to {
			f(p.row, u)
		}
	}
}

// markFused marks the operations of a plan that do not have the plan's time. NCCL stamps a plan as a whole: where it
// has collectives, its time is that of the first one, as in reports.
func (r *row) markFused() {
	for from := 0; from < len(r.parts); {
		to := from + 1
		for to < len(r.parts) && !r.parts[to].is(flagPlan) {
			to++
		}
		if lead := r.nextCollective(from); lead < to {
			for i := from; i < to; i++ {
				if i != lead {
					r.parts[i].flags |= flagFused
				}
			}
		}
		from = to
	}
}

// clipped counts what clip changed.
type clipped struct {
	units   uint64
	nothing uint64 // of units: without length afterwards
	moved   uint64 // units that begin later than recorded
	ticks   uint64
}

// clip puts the units of a location one after the other in the order shown. A unit that overlaps the next one ends when
// the next one begins. Waiting for a rank depends on when the rank begins, so begins stay, and an early end can only
// hide waiting. Where the order is not that of the begins, the later unit's begin moves to the earlier one's; flagMoved
// marks it, and all ranks show the operation without wait states. Fused units get the end of the unit they were
// launched with.
func (l *location) clip() (cost clipped) {
	var last placed
	var points []placed
	begin := otf2.Timestamp(0) // of last
	finish := func(next otf2.Timestamp) {
		if last.row == nil {
			return
		}
		first := &last.row.parts[last.from]
		end := max(begin, min(first.end, next))
		if end < first.end {
			cost.units++
			cost.ticks += uint64(first.end - max(end, first.begin))
			if end == begin {
				cost.nothing++
			}
		}
		last.row.setTimes(last.unit, begin, end)
		at := end
		for _, p := range points {
			at = max(at, min(p.row.parts[p.from].end, next))
			p.row.setTimes(p.unit, at, at)
		}
		points = points[:0]
	}
	l.eachUnit(func(r *row, u unit) {
		p := &r.parts[u.from]
		if p.is(flagFused) {
			points = append(points, placed{r, u})
			return
		}
		b := max(begin, p.begin)
		finish(b)
		if b > p.begin {
			cost.moved++
			for i := u.from; i < u.to; i++ {
				r.parts[i].flags |= flagMoved
			}
		}
		last, begin = placed{r, u}, b
	})
	finish(math.MaxUint64)
	return cost
}

func (r *row) setTimes(u unit, begin, end otf2.Timestamp) {
	for i := u.from; i < u.to; i++ {
		r.parts[i].begin, r.parts[i].end = begin, end
	}
}

// hasArrival reports whether the part's begin is when its rank arrived at the operation.
func (p *part) hasArrival() bool { return p.is(flagComparable) && !p.is(flagMoved|flagFused) }

// markUntimed marks operations that must not show wait states: those in which some member's begin is unknown or moved.
func (j *job) markUntimed() {
	for _, c := range j.comms {
		if len(c.present) < 2 {
			continue
		}
		c.eachCollective(func(parts []*part) {
			j.count.Collectives++
			for _, p := range parts {
				if p.hasArrival() {
					continue
				}
				switch {
				case !p.is(flagComparable):
					j.count.Untimed.NoTimes++
				case p.is(flagFused):
					j.count.Untimed.Fused++
				default:
					j.count.Untimed.Moved++
				}
				for _, q := range parts {
					q.flags |= flagUntimed
				}
				return
			}
		})
		for _, r := range c.present {
			for i := range r.parts {
				p := &r.parts[i]
				if p.is(flagDropped) || p.fn != fnSend {
					continue
				}
				j.count.Messages++
				to, k := r.otherEnd(p)
				if q := &to.parts[k]; !p.hasArrival() || !q.hasArrival() {
					p.flags |= flagUntimed
					q.flags |= flagUntimed
					j.count.Untimed.Messages++
				}
			}
		}
	}
}

// dropUntimed drops the collectives that lack comparable times of some member.
func (j *job) dropUntimed() {
	for _, c := range j.comms {
		if len(c.present) < 2 {
			continue
		}
		c.eachCollective(func(parts []*part) {
			for _, p := range parts {
				if !p.is(flagComparable) {
					dropAll(parts)
					j.count.countDropped(ReasonUntimed, 1)
					return
				}
			}
		})
	}
}
