// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Consecutive operations to which a rank was late. A rank that was delayed once comes late to several operations if
// nothing lets it catch up: hosts do not wait for their GPUs, computations do not wait for communication. As long as
// its lateness does not grow, that is one burst.

// burst is a sequence of operations to which a rank was late by itself.
type burst struct {
	// The parts of the first operation, and of the last one to which the rank was still late, waited for or not; 0:
	// there is no burst.
	stretch
	past   stretch     // the previous burst
	seq    uint32      // part of the last operation
	late   float64     // ns, to that operation or the last one that shows the lateness
	called float64     // ns that it was called late; if less than half of late, that is not the reason
	ops    float64     // number of operations
	cost   float64     // ns, over all operations
	last   float64     // ns, of the last operation
	worked float64     // ns, by itself until the last operation
	most   float64     // ns, of the most expensive operation
	ledger *commLedger // of the first operation
	member int         // in that ledger

	began, later [ownKinds]float64 // ns of cost by kinds, of the first operation and of the others
	waiters      []waiter          // of messages
	row          row
	// origin has the causes of the initial lateness, in shares; nil: the rank itself, in the ways given by began.
	origin amounts
}

// inheritedLateness is lateness that others caused on a rank, by transfers or because it waited for them. The rank may
// carry it along.
type inheritedLateness struct {
	seq          uint32 // part, 0: none
	late, called float64
	origin       amounts // in shares
}

// continues reports whether a late rank still carries along the lateness that others caused in the previous operation.
func (p *inheritedLateness) continues(s *lateOccasion) bool {
	return p.seq > 0 && s.local.Before <= p.seq && s.local.Seq > p.seq &&
		(s.late <= grown*p.late || s.host() && s.called <= grown*p.called)
}

// addInheritedLateness records lateness that the rank did not cause itself; why holds the share of each cause.
func (l *ledger) addInheritedLateness(s *lateOccasion, why amounts) {
	b := &l.bursts[s.local.Rank]
	if b.first > 0 && s.local.Seq > b.seq && s.late > b.late/2 {
		l.endBurst(s.local.Rank)
	}
	if p := &l.passed[s.local.Rank]; s.local.Seq > p.seq || s.late > p.late {
		*p = inheritedLateness{s.local.Seq, s.late, s.called, append(p.origin[:0], why...)}
	}
}

// stretch is a range of parts of a rank.
type stretch struct {
	first, until uint32
	late         float64 // ns, to the first part
}

// waiter is a member that waited for messages.
type waiter struct {
	member int
	ops    float64
}

const mostWaiters = 64 // for a burst

// grown is the factor above which a rank's lateness must have a new cause.
const grown = 1.25

// continues reports whether a late rank comes to an operation in a burst: it was late to the one before, by at least
// about as much.
func (b *burst) continues(s *lateOccasion) bool {
	if b.first == 0 || s.local.Before > b.until {
		return false
	}
	return s.late <= grown*b.late || s.host() && s.called <= grown*b.called
}

// lateness returns the host's lateness if that is the reason, otherwise the rank's.
func (b *burst) lateness() float64 {
	if b.called >= b.late/2 {
		return b.called
	}
	return b.late
}

// extendBurst extends a rank's burst over an operation in which nobody waited for the rank because of its own lateness,
// if the rank still began, or was called, as late after another rank as before.
func (l *ledger) extendBurst(late, by *Local, of series, begin otf2.Timestamp, waited, distance float64) {
	b := &l.bursts[late.Rank]
	if b.first > 0 && late.Seq > b.until && late.Before <= b.until && b.stillLate(late, by, distance) {
		b.until = late.Seq
	}
	l.paces[late.Rank].addOperation(late, of, begin, waited, max(-distance-waited, 0), b)
}

// stillLate reports whether a rank is still as late as in the burst, by its distance to another rank or by the times
// of their calls.
func (b *burst) stillLate(late, by *Local, distance float64) bool {
	return distance >= b.late/2 || late.Called && by.Called && b.called >= b.late/2 &&
		float64(late.Ready)-float64(by.Ready) >= b.called/2
}

// addLateOccasion is an occasion on which a rank was late by itself.
type lateOccasion struct {
	local  *Local
	late   float64           // ns
	called float64           // ns that it was called later; 0: unknown
	cost   float64           // ns
	kinds  [ownKinds]float64 // ns of cost
	kind   Kind              // the kind with most of the cost
	ledger *commLedger
	member int
	waiter int     // for messages; −1: a collective
	fresh  share   // of its own lateness: that it did since it met the others
	worked float64 // ns, by itself until then
}

// since sets how much later a member came, and was called, than another one.
func (s *lateOccasion) since(late, early *Member, own float64) {
	s.late = own
	if late.Called && early.Called && late.Ready >= late.Ended { // its GPU had nothing else to do
		s.called = float64(late.Ready) - float64(early.Ready)
	}
}

// host reports whether the rank's host is late.
func (s *lateOccasion) host() bool { return s.called >= s.late/2 }

// addLateOccasion adds the next occasion of a rank.
func (l *ledger) addLateOccasion(s *lateOccasion) {
	b, p := &l.bursts[s.local.Rank], &l.passed[s.local.Rank]
	carries := p.seq >= b.seq && p.continues(s)
	again := b.first > 0 && s.local.Seq <= b.seq // another member waits for the same messages
	switch seq := s.local.Seq; {
	case again:
		b.late, b.called = max(b.late, s.late), max(b.called, s.called)
	case b.continues(s) && !carries:
		l.fresh[s.local.Rank].add(s, b.worked)
		b.row.add(b.lateness(), &l.rows[s.local.Rank])
		b.seq, b.until, b.late, b.called, b.ops = seq, max(seq, b.until), s.late, s.called, b.ops+1
	default:
		l.endBurst(s.local.Rank)
		*b = burst{stretch: stretch{seq, seq, s.late}, past: b.past, seq: seq, late: s.late, called: s.called, ops: 1,
			ledger: s.ledger, member: s.member, waiters: b.waiters[:0], row: b.row[:0]}
		if carries {
			b.first, b.stretch.late, b.origin = p.seq, p.late, slices.Clone(p.origin)
		}
	}
	if !again {
		b.last = 0
	}
	b.cost, b.last, b.worked = b.cost+s.cost, b.last+s.cost, s.worked
	b.most = max(b.most, b.last)
	of := &b.later
	if b.origin == nil && s.local.Seq <= b.first {
		of = &b.began
	}
	for k, ns := range s.kinds {
		of[k] += ns
	}
	if s.waiter >= 0 && s.ledger == b.ledger {
		b.wait(s.waiter)
	}
}

// wait records a member that waited for the last operation.
func (b *burst) wait(member int) {
	for i := range b.waiters {
		if b.waiters[i].member == member {
			b.waiters[i].ops++
			return
		}
	}
	if len(b.waiters) < mostWaiters {
		b.waiters = append(b.waiters, waiter{member, 1})
	}
}

// endBurst counts a burst.
func (l *ledger) endBurst(rank int32) {
	b := &l.bursts[rank]
	if b.first == 0 {
		return
	}
	b.row.add(b.lateness(), &l.rows[rank])
	b.row.end(&l.rows[rank])
	l.burstsOf[rank].add(b)
	waited := 0.0 // members that waited in an operation, on average
	for _, w := range b.waiters {
		waited += w.ops / b.ops
	}
	c := b.ledger
	c.struck[b.member].add(b, 1, max(1, waited))
	for _, w := range b.waiters {
		c.lose(b.member, w.member).add(b, min(1, w.ops/b.ops), max(1, waited))
	}
	b.past, b.stretch = b.stretch, stretch{}
}
