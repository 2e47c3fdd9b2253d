// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// How much of a rank's lateness in a burst arose anew, instead of being carried along. A rank that is late anew each
// time slows the job down: it takes longer from one operation to the next than outside of its bursts. A rank that is
// late to nearly all operations has no such other times; for it, the variation of its lateness decides. Lateness that
// is carried along changes from one operation to the next by how much longer or shorter each of them takes, so it
// drifts; lateness that arises anew varies about a mean.

// newLatenessShares returns, for each rank, the part of its lateness in bursts that arose anew.
func (l *ledger) newLatenessShares() []float64 {
	all := make([]float64, len(l.bursts))
	for i := range all {
		l.endBurst(int32(i))
		l.paces[i].countLastStep(&l.bursts[i])
		part, ok := l.fresh[i].newShare()
		if !ok {
			part, ok = l.paces[i].newShare()
		}
		if !ok {
			part = l.rows[i].newShare()
		}
		all[i] = part
	}
	return all
}

// freshness sums up, over operations in bursts, how much of the rank's lateness its host's work since it met the others
// makes, weighted by cost.
type freshness struct{ all, known, fresh float64 }

// add counts an operation. before is how long the rank had worked when it was last late: what made it late then
// is not new, although it has not met these others since.
func (f *freshness) add(s *lateOccasion, before float64) {
	f.all += s.cost
	if s.fresh.known {
		f.known, f.fresh = f.known+s.cost, f.fresh+s.cost*min(s.fresh.part, max(s.worked-before, 0)/max(s.late, 1))
	}
}

// newLatenessShares returns the part of the lateness that arose anew; ok is false if that is not known for most of it.
func (f *freshness) newShare() (part float64, ok bool) {
	return f.fresh / max(f.known, 1), f.known > 0 && f.known >= mostFresh*f.all
}

// known returns a share that rests on hosts that wait for the operation before they call a function; not known if times
// have not shown that they do.
func (e *Engine) known(s share, function string) share {
	if o := e.orders[functions{of: function}]; o == nil || !o.isBehind() {
		return share{}
	}
	return s
}

// mostFresh is the part of the cost for which the host's work must be known to decide.
const mostFresh = 0.5

// pace measures how long a rank takes from the begin of one operation to the begin of the next.
type pace struct {
	seq   uint32 // part of the last operation, 0: none
	begin otf2.Timestamp
	last  series
	steps []*step
	open  *step   // to the last operation; the next one shows whether it belongs to a burst; nil: none
	took  float64 // ns, of open
	// ns that it waited in the last operation, and in the one with which open begins
	waited, held float64
	// ns by which the other end came later to the last operation, a send that did not wait: the rank may have been late
	// without being waited for.
	unseen float64
}

// step is the time from an operation of one series to one of another.
type step struct {
	from, to series
	in, out  mean    // within bursts except for their first operations, weighted by lateness, and outside of them
	late     float64 // ns², sum of squared lateness within bursts
	waited   float64 // ns that the rank waited for others, outside
}

// mean is a geometric mean, so that single long times have little influence.
type mean struct{ n, weight, logs float64 }

func (m *mean) add(ns, weight float64) {
	m.n, m.weight, m.logs = m.n+1, m.weight+weight, m.logs+weight*math.Log(ns)
}
func (m *mean) value() float64 { return math.Exp(m.logs / m.weight) }

const mostSteps = 16 // for a rank

// addOperation adds the next operation. Everything about the previous one is known by now.
func (p *pace) addOperation(l *Local, to series, begin otf2.Timestamp, waited, unseen float64, b *burst) {
	p.countLastStep(b)
	if p.seq > 0 && l.Before == p.seq && begin > p.begin {
		p.open, p.took, p.held = p.step(p.last, to), float64(begin-p.begin), p.waited
	}
	p.seq, p.begin, p.last, p.waited, p.unseen = l.Seq, begin, to, waited, unseen
}

// countLastStep counts the step to the last operation. The step to the first one of a burst is longer by what made the
// rank late.
func (p *pace) countLastStep(b *burst) {
	s := p.open
	p.open = nil
	switch at := p.seq; {
	case s == nil:
	case at == b.first:
		s.addOutsideBursts(p.took-b.stretch.late, p.held)
	case at == b.past.first:
		s.addOutsideBursts(p.took-b.past.late, p.held)
	case at > b.first && at <= b.until, at > b.past.first && at <= b.past.until:
		s.addInBurst(p.took, b.lateness())
	default:
		s.addOutsideBursts(p.took, max(p.held, p.unseen))
	}
}

// addOutsideBursts counts a step outside of bursts, with the rank's wait in it.
func (s *step) addOutsideBursts(took, waited float64) {
	s.out.add(max(took, 1), 1)
	s.waited += waited
}

// isComparable reports whether the steps outside of bursts can be compared with those within. If the rank waited in
// them for others that were about as late as it is in its bursts, they took as long for another reason: the cause moves
// from rank to rank. If others were that late to what it sent, nobody saw whether it was late.
func (s *step) isComparable() bool {
	return s.waited*s.waited*s.in.n < mostly*mostly*s.late*s.out.n*s.out.n
}

// addInBurst counts a step within a burst, weighted by the rank's lateness. So chance, and other differences between
// steps addInBurst bursts and outside, have no influence where the rank was hardly late.
func (s *step) addInBurst(took, late float64) {
	s.in.add(took, max(late, 1))
	s.late += late * late
}

// skipNextStep leaves out the step to the next operation, which waited for connecting.
func (p *pace) skipNextStep() { p.seq, p.open = 0, nil }

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

// newLatenessShares returns the part of the lateness within bursts that arose anew. A rank that is late anew each time
// takes longer by that from one operation to the next; one that carries lateness along does not. ok is false if this
// cannot be decided: there are too few operations in time, or steps are longer by more than the lateness.
func (p *pace) newShare() (part float64, ok bool) {
	all, restless := 0.0, 0.0
	for _, s := range p.steps {
		if all += s.late; s.in.n > 0 && s.out.n > 0 && !s.isComparable() {
			restless += s.late
		}
	}
	switch {
	case all <= 0:
		return 0, true
	case restless >= all*mostRestless:
		return 0, false
	}
	// Steps that are well known are preferred, if they are enough.
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

// mostRestless is the part of the lateness from which on steps that cannot be compared leave the pace undecided.
const mostRestless = 0.25

// longer returns how much longer steps within bursts took, each multiplied by the lateness.
func (s *step) longer() float64 { return s.in.weight * (s.in.value() - s.out.value()) }

// row is a sequence of latenesses, each about the same as the one before.
type row []float64

// steadiness sums up the rows of a rank.
type steadiness struct {
	steps, squares   float64 // sums of squares: of differences between neighbors, and about the mean of the row
	number, drifting float64 // expected values of these, in units, for lateness that is carried along
}

// rowTolerance is the largest relative difference between consecutive latenesses of one row.
const rowTolerance = 0.25

// longestRow limits what is kept of a row; the next lateness begins another one.
const longestRow = 64

func (r *row) add(late float64, s *steadiness) {
	if n := len(*r); n == longestRow || n > 0 && abs(late-(*r)[n-1]) > rowTolerance*max(late, (*r)[n-1]) {
		r.end(s)
	}
	*r = append(*r, late)
}

// mostOff is the distance from the median of a row, in medians of all such distances, to which greater ones are
// reduced: single operations that were held up say nothing of the others.
const mostOff = 3

func (r *row) end(s *steadiness) {
	n := float64(len(*r))
	if n > 2 {
		all := slices.Clone(*r)
		middle := stats.Median(all)
		for i, late := range all {
			all[i] = abs(late - middle)
		}
		off := mostOff * stats.Median(all)
		sum, squares, last := 0.0, 0.0, 0.0
		for i, late := range *r {
			d := min(max(late-middle, -off), off)
			if i > 0 {
				s.steps += (d - last) * (d - last)
			}
			last, sum, squares = d, sum+d, squares+d*d
		}
		s.squares += max(squares-sum*sum/n, 0)
		s.number += n - 1
		s.drifting += (n*n - 1) / 6
	}
	*r = (*r)[:0]
}

// newLatenessShares returns the part of the operations of bursts to which the rank was late anew: 0 if lateness
// drifted, 1 if it varied about a mean. For independent values, the squares of differences are twice those about the
// mean; for sums of n independent steps they are 6/(n+1) times those.
func (s *steadiness) newShare() float64 {
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
