// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Operations in a row to which a rank was late. One that was kept once comes late to several where nothing lets it
// catch up: hosts that do not wait for their GPUs, computations that do not wait for what is communicated. As long as
// it is late by no more than before it is a burst.

// burst is operations in a row to which a rank was late by itself.
type burst struct {
	// parts of the first of them, and of the last one to which it was still late, waited for or not; 0: there is no
	// burst
	stretch
	past   stretch     // the burst before
	seq    uint32      // part of the last of them
	late   float64     // ns, to that one, or the last one that tells
	called float64     // ns, that it was called late; less than half of late: that is not why
	ops    float64     // how many
	cost   float64     // ns, of all of them
	last   float64     // ns, of the last of them
	most   float64     // ns, of the one that cost the most
	ledger *commLedger // of the operation with which it began
	member int         // there

	began, later [ownKinds]float64 // ns of cost by kinds, of the first operation and of the others
	waiters      []waiter          // of messages
	row          row
	// of the lateness with which it began, in shares; nil: the rank itself, in the way that began tells
	origin amounts
}

// passed is lateness that a rank was given by others: in transfers, or as it waited for them. It may carry it along.
type passed struct {
	seq          uint32 // part, 0: there is none
	late, called float64
	origin       amounts // in shares
}

// continues reports whether a rank that is late by so much still carries along what it was given in the operation
// before.
func (p *passed) continues(s *strike) bool {
	return p.seq > 0 && s.local.Before <= p.seq && s.local.Seq > p.seq &&
		(s.late <= grown*p.late || s.host() && s.called <= grown*p.called)
}

// given notes that a rank was late by more than it was by itself, in shares of the causes.
func (l *ledger) given(s *strike, why amounts) {
	b := &l.bursts[s.local.Rank]
	if b.first > 0 && s.local.Seq > b.seq && s.late > b.late/2 {
		l.endBurst(s.local.Rank)
	}
	if p := &l.passed[s.local.Rank]; s.local.Seq > p.seq || s.late > p.late {
		*p = passed{s.local.Seq, s.late, s.called, append(p.origin[:0], why...)}
	}
}

// stretch is parts of a rank, from one to another one.
type stretch struct {
	first, until uint32
	late         float64 // ns, to the first of them
}

// waiter is a member that waited for messages.
type waiter struct {
	member int
	ops    float64
}

const mostWaiters = 64 // of a burst

// grown is how many times as late as before a rank is if something new was added.
const grown = 1.25

// continues reports whether a rank that is late by so much comes to an operation in a burst: it was late to the one
// before, and by no less.
func (b *burst) continues(s *strike) bool {
	if b.first == 0 || s.local.Before > b.until {
		return false
	}
	return s.late <= grown*b.late || s.host() && s.called <= grown*b.called
}

// lateness is that of the host, if that is why.
func (b *burst) lateness() float64 {
	if b.called >= b.late/2 {
		return b.called
	}
	return b.late
}

// goesOn looks whether a rank is still late that nobody waited for by its own doing: it begins or was called later than
// another one.
func (l *ledger) goesOn(late, by *Local, of series, begin otf2.Timestamp, distance float64) {
	b := &l.bursts[late.Rank]
	if b.first > 0 && late.Seq > b.until && late.Before <= b.until && b.stillLate(late, by, distance) {
		b.until = late.Seq
	}
	l.paces[late.Rank].see(late, of, begin, b)
}

// stillLate reports whether a rank that begins later than another one by so much, or was called later, is as late as in
// the burst.
func (b *burst) stillLate(late, by *Local, distance float64) bool {
	return distance >= b.late/2 || late.Called && by.Called && b.called >= b.late/2 &&
		float64(late.Ready)-float64(by.Ready) >= b.called/2
}

// strike is a time that a rank was late by itself.
type strike struct {
	local  *Local
	late   float64           // ns
	called float64           // ns that it was called later; 0: not known
	cost   float64           // ns
	kinds  [ownKinds]float64 // ns of cost
	kind   Kind              // in which most of it is
	ledger *commLedger
	member int
	waiter int // of messages, −1: a collective
}

// since sets by how much a member came and was called later than another one.
func (s *strike) since(late, early *Member, own float64) {
	s.late = own
	if late.Called && early.Called && late.Ready >= late.Ended { // its GPU had nothing else to do
		s.called = float64(late.Ready) - float64(early.Ready)
	}
}

// host reports whether it is its host that is late.
func (s *strike) host() bool { return s.called >= s.late/2 }

// strike takes the next time of a rank.
func (l *ledger) strike(s *strike) {
	b, p := &l.bursts[s.local.Rank], &l.passed[s.local.Rank]
	carries := p.seq >= b.seq && p.continues(s)
	again := b.first > 0 && s.local.Seq <= b.seq // another member waits for the same messages
	switch seq := s.local.Seq; {
	case again:
		b.late, b.called = max(b.late, s.late), max(b.called, s.called)
	case b.continues(s) && !carries:
		b.row.add(b.lateness(), &l.rows[s.local.Rank])
		b.seq, b.until, b.late, b.called, b.ops = seq, max(seq, b.until), s.late, s.called, b.ops+1
	default:
		l.endBurst(s.local.Rank)
		*b = burst{stretch: stretch{seq, seq, s.late}, past: b.past, seq: seq, late: s.late, called: s.called, ops: 1,
			ledger: s.ledger, member: s.member, waiters: b.waiters[:0]}
		if carries {
			b.first, b.stretch.late, b.origin = p.seq, p.late, slices.Clone(p.origin)
		}
	}
	if !again {
		b.last = 0
	}
	b.cost, b.last = b.cost+s.cost, b.last+s.cost
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

// wait notes a member that waited for the last operation.
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
	waited := 0.0 // in each operation
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
