// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// How much of a rank's lateness in a burst arose anew, and was not carried along. Who is late anew each time makes the
// job go slower by that: it takes longer from one operation to the next than it does outside of its bursts. A rank that
// is late to nearly all operations has no such times; of it tells how its lateness varies. What is carried along
// changes from one operation to the next by what each of them takes more or less, and drifts; what arises anew varies
// about a mean.

// anew is the part of what a rank was late in bursts that arose anew, for each rank.
func (l *ledger) anew() []float64 {
	all := make([]float64, len(l.bursts))
	for i := range all {
		l.endBurst(int32(i))
		l.paces[i].close(&l.bursts[i])
		part, ok := l.paces[i].anew()
		if !ok {
			part = l.rows[i].anew()
		}
		all[i] = part
	}
	return all
}

// pace is how long a rank takes from the begin of one operation to that of the next.
type pace struct {
	seq   uint32 // part of the last one, 0: none
	begin otf2.Timestamp
	last  series
	steps []*step
	open  *step   // to the last one: whether that is of a burst is known when the next one comes; nil: there is none
	took  float64 // ns, of open
}

// step is from an operation of a series to one of another one.
type step struct {
	from, to series
	in, out  mean    // within bursts but for their first operations, each as much as it was late, and outside of them
	late     float64 // ns², the squares of how much it was late within
}

// mean is a geometric one: single long times are not to matter.
type mean struct{ n, weight, logs float64 }

func (m *mean) add(ns, weight float64) {
	m.n, m.weight, m.logs = m.n+1, m.weight+weight, m.logs+weight*math.Log(ns)
}
func (m *mean) value() float64 { return math.Exp(m.logs / m.weight) }

const mostSteps = 16 // of a rank

// see takes the next operation; of the one before all is known now.
func (p *pace) see(l *Local, to series, begin otf2.Timestamp, b *burst) {
	p.close(b)
	if p.seq > 0 && l.Before == p.seq && begin > p.begin {
		p.open, p.took = p.step(p.last, to), float64(begin-p.begin)
	}
	p.seq, p.begin, p.last = l.Seq, begin, to
}

// close counts the step to the last operation. That to the first one of a burst is longer by what made the rank late.
func (p *pace) close(b *burst) {
	s := p.open
	p.open = nil
	switch at := p.seq; {
	case s == nil:
	case at == b.first:
		s.out.add(max(p.took-b.stretch.late, 1), 1)
	case at == b.past.first:
		s.out.add(max(p.took-b.past.late, 1), 1)
	case at > b.first && at <= b.until, at > b.past.first && at <= b.past.until:
		s.within(p.took, b.lateness())
	default:
		s.out.add(p.took, 1)
	}
}

// within counts a step within a burst. It counts as much as the rank was late: what it takes by chance, and as steps
// within bursts are others than those outside of them, is not to matter where it was hardly late.
func (s *step) within(took, late float64) {
	s.in.add(took, max(late, 1))
	s.late += late * late
}

// forget leaves out the step to the next operation, which has waited for connecting.
func (p *pace) forget() { p.seq, p.open = 0, nil }

func (p *pace) step(from, to series) *step {
	for i := range p.steps {
		if s := p.steps[i]; s.to == to && s.from == from {
			return s
		}
	}
	if len(p.steps) == mostSteps {
		return nil
	}
	s := &step{from: from, to: to}
	p.steps = append(p.steps, s)
	return s
}

// anew is the part of the lateness within bursts that arose anew: a rank that is late anew each time takes longer by
// that from one operation to the next, and what it carries along does not. ok is false if that cannot be told: it is
// too seldom in time, or takes longer by more than it is late.
func (p *pace) anew() (part float64, ok bool) {
	all := 0.0
	for i := range p.steps {
		all += p.steps[i].late
	}
	if all <= 0 {
		return 0, true
	}
	// better from steps that are well known, if these are enough
	for _, known := range [...]struct{ most, least, part float64 }{{8, 3, 0.75}, {16, 2, 0.25}} {
		longer, late := 0.0, 0.0
		for i := range p.steps {
			if s := p.steps[i]; s.in.n > 0 && s.out.n >= max(known.least, s.in.n/known.most) {
				longer += min(max(s.longer(), 0), s.late)
				late += s.late
			}
		}
		if late >= all*known.part {
			return min(max(longer/late, 0), 1), longer <= 2*late
		}
	}
	return 0, false
}

// longer is by how much steps within bursts took longer, each times how much the rank was late.
func (s *step) longer() float64 { return s.in.weight * (s.in.value() - s.out.value()) }

// row is latenesses one after the other, each about the same as the one before.
type row struct{ n, last, sum, squares, steps float64 }

// steadiness is what the rows of a rank have come to.
type steadiness struct {
	steps, squares   float64 // sums of squares: from one to the next, about the mean of the row
	number, drifting float64 // what these would be, in units, of lateness that is carried along
}

// rowTolerance is the part of a lateness by which the next one may differ, for both to be of one row.
const rowTolerance = 0.25

func (r *row) add(late float64, s *steadiness) {
	if r.n > 0 && abs(late-r.last) > rowTolerance*max(late, r.last) {
		r.end(s)
	}
	if r.n > 0 {
		r.steps += (late - r.last) * (late - r.last)
	}
	r.n, r.last, r.sum, r.squares = r.n+1, late, r.sum+late, r.squares+late*late
}

func (r *row) end(s *steadiness) {
	if r.n > 2 {
		s.steps += r.steps
		s.squares += max(r.squares-r.sum*r.sum/r.n, 0)
		s.number += r.n - 1
		s.drifting += (r.n*r.n - 1) / 6
	}
	*r = row{}
}

// anew is the part of the operations of bursts to which the rank was late anew: 0 if lateness drifted, 1 if it varied
// about a mean. Of independent values the squares of steps are twice those about the mean, of sums of n independent
// steps 6/(n+1) times.
func (s *steadiness) anew() float64 {
	switch {
	case s.number <= 0:
		return 0
	case s.squares <= 0: // always the same
		return 1
	}
	drift := s.number / s.drifting
	if drift >= 2 {
		return 0
	}
	return min(max((s.steps/s.squares-drift)/(2-drift), 0), 1)
}

func abs(x float64) float64 { return max(x, -x) }
