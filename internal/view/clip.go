// SPDX-License-Identifier: Apache-2.0

package view

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// each calls f for the location's units in the order shown.
func (l *location) each(f func(r *row, u unit)) {
	for _, p := range l.order {
		if u := p.row.kept(p.unit); u.from < u.to {
			f(p.row, u)
		}
	}
}

// fuse marks the operations of a plan that do not have its time, as NCCL stamps a plan as a whole: of one with
// collectives all but the first collective, as in reports.
func (r *row) fuse() {
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

// clipped is what putting a location's units one after the other cost.
type clipped struct {
	units   uint64
	nothing uint64 // of them, those that have no length any more
	moved   uint64 // units that begin later
	ticks   uint64
}

// clip puts the units of a location one after the other in the order shown. Where they overlap, a unit ends when the
// next one begins: what waits for a rank depends on when it begins, so begins stay, and an end that is too early can
// only hide waiting. Only where the order is not that of the begins, the later one's begin is moved up to the
// earlier one's; it is marked, and shown without wait states on all ranks. Fused units get the end of what they
// belong to.
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
		last.row.set(last.unit, begin, end)
		at := end
		for _, p := range points {
			at = max(at, min(p.row.parts[p.from].end, next))
			p.row.set(p.unit, at, at)
		}
		points = points[:0]
	}
	l.each(func(r *row, u unit) {
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

func (r *row) set(u unit, begin, end otf2.Timestamp) {
	for i := u.from; i < u.to; i++ {
		r.parts[i].begin, r.parts[i].end = begin, end
	}
}

// timed tells whether the part's begin is when its rank came to the operation.
func (p *part) timed() bool { return p.is(flagComparable) && !p.is(flagMoved|flagFused) }

// untime marks what must not show wait states: operations of which one member's begin is not known, or not as shown.
func (j *job) untime() {
	for _, c := range j.comms {
		if len(c.present) < 2 {
			continue
		}
		c.eachCollective(func(parts []*part) {
			j.count.Collectives++
			for _, p := range parts {
				if p.timed() {
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
				to, k := r.mate(p)
				if q := &to.parts[k]; !p.timed() || !q.timed() {
					p.flags |= flagUntimed
					q.flags |= flagUntimed
					j.count.Untimed.Messages++
				}
			}
		}
	}
}

// dropUntimed drops the collectives that not all members have comparable times of.
func (j *job) dropUntimed() {
	for _, c := range j.comms {
		if len(c.present) < 2 {
			continue
		}
		c.eachCollective(func(parts []*part) {
			for _, p := range parts {
				if !p.is(flagComparable) {
					dropAll(parts)
					j.count.drop(ReasonUntimed, 1)
					return
				}
			}
		})
	}
}
