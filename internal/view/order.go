// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// scheduler puts the operations of all communicators into an order in which every rank can carry them out one after the
// other. It simulates a replay with blocking collectives and buffered messages and records on each rank what was done.
// A row issues its units in recorded order: collectives, or the messages of a plan. A location has the rows of a rank's
// communicators and does one unit at a time.
//
// A unit can begin on its location if no other row's unfinished unit lies wholly before it. Units that overlap may be
// done in either order. Of the units that can be done, the one whose last member (or partner) began first is done
// first: the time at which ranks wait in it is then, so this is the order in which things happened.
//
//   - A collective is done when it is the next unit of all members and can begin on all their locations.
//   - A unit of messages is begun together with the units that send what it receives, those that send what these
//     receive, and so on; all are done at once.
//   - If the only units left are sends to a unit that must end before it can receive (a Send and a Recv one after the
//     other on one side, in a group on the other), the senders are begun and stay open. Their locations do nothing else
//     until they are done.
//   - Otherwise times and orders of the ranks contradict each other: following what each unit waits for ends in a
//     cycle. Of its units the one with the fewest parts is dropped, on all ranks.
//
// In the order of the steps every message is sent before it is received, and a collective is one step, so a replay of
// the ranks' sequences cannot deadlock: the first unfinished step can always be done. This also holds for notices from
// receivers to senders, because the ends of a unit's sends come before those of its receives.
//
// The cost is linear in the number of parts, times the number of communicators in use at one time on a rank, times the
// logarithm of the number of units that could be done at the same time.
type scheduler struct {
	*job
	ready    steps
	deferred []*row // roots of steps whose location is occupied by an open unit
	left     int    // rows that are not done
	mark     int    // number of the present search
}

// schedule is the scheduler's state of a location.
type schedule struct {
	active  []*row // rows with units that have begun and are not done
	pending []*row // rows that begin later, by their first begin
	open    *row   // row whose unit is begun and not done; nil: none
}

// state is the scheduler's state of a row.
type state struct {
	unit  unit
	begin otf2.Timestamp
	end   otf2.Timestamp

	can    bool // the unit can begin
	begun  bool // the unit is open
	ending bool // the unit has all that it receives
	done   bool // no unit is left
	queued bool // the row is in the heap
	need   int  // messages to receive whose sender has not begun and cannot begin
	seen   int  // number of the last search that visited the row
}

// commState is the scheduler's state of a communicator.
type commState struct {
	can int // members whose next unit is a collective that can begin
}

// step can be done next: the collective of the row's communicator, or the row's messages.
type step struct {
	row *row
	key otf2.Timestamp
}

type steps []step

func (s steps) Len() int { return len(s) }
func (s steps) Less(i, k int) bool {
	a, b := s[i], s[k]
	if a.key != b.key {
		return a.key < b.key
	}
	if a.row.comm.ref != b.row.comm.ref {
		return a.row.comm.ref < b.row.comm.ref
	}
	return a.row.rank < b.row.rank
}
func (s steps) Swap(i, k int) { s[i], s[k] = s[k], s[i] }
func (s *steps) Push(x any)   { *s = append(*s, x.(step)) }
func (s *steps) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// orderUnits fills location.order for all locations. It returns false if no order suits all ranks and drop is false.
func (j *job) orderUnits(drop bool, progress func(done, total int)) bool {
	s := &scheduler{job: j}
	total := 0
	for _, c := range j.comms {
		c.state = commState{}
	}
	for _, l := range j.locations {
		for _, r := range l.rows {
			total += len(r.parts)
		}
	}
	for _, r := range j.rows {
		r.state = state{}
		s.loadUnit(r, 0)
		if !r.done {
			s.left++
		}
	}
	s.findReady()
	done, reported := 0, 0
	for s.left > 0 {
		switch {
		case s.ready.Len() > 0:
			done += s.runStep(heap.Pop(&s.ready).(step).row)
		case s.beginSenders():
		case !drop:
			return false
		default:
			s.breakCycle()
		}
		if done-reported > 1<<16 {
			reported = done
			progress(done, total)
		}
	}
	progress(total, total)
	for _, l := range j.locations {
		l.schedule = schedule{}
	}
	return true
}

// loadUnit makes the unit at or after part i the row's next.
func (s *scheduler) loadUnit(r *row, i int) {
	r.unit = r.unitAt(i)
	r.can, r.begun, r.ending, r.queued, r.need = false, false, false, false, 0
	if r.done = r.unit.from == len(r.parts); !r.done {
		r.begin, r.end = r.parts[r.unit.from].begin, r.parts[r.unit.from].end
	}
}

// findReady finds all units that can begin: at first, and after a unit was dropped.
func (s *scheduler) findReady() {
	s.ready, s.deferred = s.ready[:0], nil
	s.left = 0
	for _, c := range s.comms {
		c.state.can = 0
	}
	for _, r := range s.rows {
		r.can, r.queued, r.need = false, false, 0
		if !r.done {
			s.left++
		}
	}
	for _, l := range s.locations {
		l.schedule.active = l.schedule.active[:0]
		l.schedule.pending = l.schedule.pending[:0]
		for _, r := range l.rows {
			if !r.done {
				l.schedule.pending = append(l.schedule.pending, r)
			}
		}
		slices.SortStableFunc(l.schedule.pending, func(a, b *row) int { return cmp.Compare(a.begin, b.begin) })
	}
	for _, l := range s.locations {
		s.updateLocation(l)
	}
}

// liesBefore reports whether x lies wholly before y, by time.
func liesBefore(x, y *row) bool {
	return x.end <= y.begin && (x.begin < y.begin || x.end < y.end)
}

// updateLocation finds the units that can begin on a location after one of its units was done.
func (s *scheduler) updateLocation(l *location) {
	q := &l.schedule
	q.active = slices.DeleteFunc(q.active, func(r *row) bool { return r.done })
	first := otf2.Timestamp(math.MaxUint64)
	for _, r := range q.active {
		first = min(first, r.end)
	}
	// Units that begin after the first end cannot begin now, and lie before none that can.
	for len(q.pending) > 0 && (len(q.active) == 0 || q.pending[0].begin <= first) {
		first = min(first, q.pending[0].end)
		q.active = append(q.active, q.pending[0])
		q.pending = q.pending[1:]
	}
	for _, r := range q.active {
		earlier := func(z *row) bool { return z != r && liesBefore(z, r) }
		if !r.can && !r.begun && !slices.ContainsFunc(q.active, earlier) {
			r.can = true
			s.markReady(r)
		}
	}
}

// isMessages reports whether the row's next unit consists of messages.
func (r *row) isMessages() bool { return r.parts[r.unit.from].isMessage() }

// markReady notes that a row's unit can begin.
func (s *scheduler) markReady(r *row) {
	if !r.isMessages() {
		c := r.comm
		if c.state.can++; c.state.can == len(c.present) {
			key := r.begin
			for _, m := range c.present {
				key = max(key, m.begin)
			}
			heap.Push(&s.ready, step{r, key})
		}
		return
	}
	for i := r.unit.from; i < r.unit.to; i++ {
		if p := &r.parts[i]; p.fn == fnRecv && !p.is(flagDropped) && !s.canSend(r, p) {
			r.need++
		}
	}
	s.eachReceiver(r, func(to *row) { to.need-- })
	s.queueMessages(r)
	s.eachReceiver(r, s.queueMessages)
}

// canSend reports whether the sender of a message to r can begin or has begun.
func (s *scheduler) canSend(r *row, p *part) bool {
	from, i := r.otherEnd(p)
	return i < from.unit.from || i < from.unit.to && (from.can || from.begun)
}

// eachReceiver calls f, once per message, for each message that the row's unit sends to a unit that can begin and waits
// for it.
func (s *scheduler) eachReceiver(r *row, f func(to *row)) {
	for i := r.unit.from; i < r.unit.to; i++ {
		p := &r.parts[i]
		if p.fn != fnSend || p.is(flagDropped) {
			continue
		}
		if to, k := r.otherEnd(p); to != r && !to.done && to.can && to.unit.from <= k && k < to.unit.to {
			f(to)
		}
	}
}

// queueMessages puts the messages of a row into the heap if they can be done together with others.
func (s *scheduler) queueMessages(r *row) {
	if !r.can || r.begun || r.queued || r.need > 0 {
		return
	}
	if all, ok := s.jointRows(r); ok {
		key := otf2.Timestamp(0)
		for _, m := range all {
			key = max(key, m.begin)
		}
		r.queued = true
		heap.Push(&s.ready, step{r, key})
	}
}

// jointRows returns the rows that must be begun with r, r included, so that all can be done. If one of them receives
// from a unit that cannot begin, ok is false and that row is the last one.
func (s *scheduler) jointRows(r *row) (all []*row, ok bool) {
	s.mark++
	all = []*row{r}
	r.seen = s.mark
	for n := 0; n < len(all); n++ {
		m := all[n]
		if m.need > 0 {
			return all, false
		}
		all = s.addSenders(m, all)
	}
	return all, true
}

// runStep carries out a step and returns the number of parts done.
func (s *scheduler) runStep(r *row) (parts int) {
	if r.done || !r.can || r.begun {
		return 0 // done with others
	}
	if !r.isMessages() {
		if r.comm.state.can < len(r.comm.present) {
			return 0 // the step's messages were done with others; the present unit comes after them
		}
		for _, m := range r.comm.present {
			if m.location.schedule.open != nil {
				s.deferred = append(s.deferred, r)
				return 0
			}
		}
		r.comm.state.can = 0
		for _, m := range r.comm.present {
			s.recordUnit(m)
		}
		for _, m := range r.comm.present {
			s.loadUnit(m, m.unit.to)
			s.countDone(m)
		}
		for _, m := range r.comm.present {
			s.updateLocation(m.location)
		}
		return len(r.comm.present)
	}
	all, ok := s.jointRows(r)
	if !ok {
		r.queued = false
		return 0
	}
	for _, m := range all {
		if m.location.schedule.open != nil {
			s.deferred = append(s.deferred, r)
			return 0
		}
	}
	return s.beginUnits(all)
}

// recordUnit notes that the row's unit is begun on its location.
func (s *scheduler) recordUnit(r *row) {
	r.location.order = append(r.location.order, placed{r, r.unit})
}

func (s *scheduler) countDone(r *row) {
	if r.done {
		s.left--
	}
}

// beginUnits begins units of messages and ends those that have all they receive.
func (s *scheduler) beginUnits(all []*row) (parts int) {
	var check []*row
	for _, m := range all {
		s.recordUnit(m)
		m.begun, m.can = true, false
		m.location.schedule.open = m
		check = append(check, m)
	}
	begun := len(check)
	for _, m := range all { // open units may have waited for these
		for i := m.unit.from; i < m.unit.to; i++ {
			if p := &m.parts[i]; p.fn == fnSend && !p.is(flagDropped) {
				if to, k := m.otherEnd(p); to.begun && k >= to.unit.from && k < to.unit.to {
					check = append(check, to)
				}
			}
		}
	}
	var ended []*row
	freed := false
	for i, m := range check {
		if !m.ending && m.awaitedSender() == nil {
			m.ending = true
			ended = append(ended, m)
			freed = freed || i >= begun
		}
	}
	var waiting []*row // for the units begun now
	for _, m := range all {
		s.eachReceiver(m, func(to *row) { waiting = append(waiting, to) })
	}
	for _, m := range ended {
		parts += m.unit.to - m.unit.from
		m.location.schedule.open = nil
		s.loadUnit(m, m.unit.to)
		s.countDone(m)
	}
	if freed {
		again := s.deferred
		s.deferred = nil
		for _, r := range again {
			heap.Push(&s.ready, step{r, r.begin})
		}
	}
	for _, m := range ended {
		s.updateLocation(m.location)
	}
	for _, r := range waiting {
		s.queueMessages(r)
	}
	return parts
}

// awaitedSender returns a row that has not begun to send what the unit receives; nil if there is none.
func (r *row) awaitedSender() *row {
	for i := r.unit.from; i < r.unit.to; i++ {
		p := &r.parts[i]
		if p.fn != fnRecv || p.is(flagDropped) {
			continue
		}
		if from, k := r.otherEnd(p); k >= from.unit.from && !(from.begun && k < from.unit.to) {
			return from
		}
	}
	return nil
}

// beginSenders begins a unit of messages with its senders, even if some of these cannot be done yet.
func (s *scheduler) beginSenders() bool {
	var best []*row
	var key otf2.Timestamp
	for _, r := range s.rows {
		if r.done || !r.can || r.begun || r.need > 0 || !r.isMessages() {
			continue
		}
		all, free, begin := s.directSenders(r), true, otf2.Timestamp(0)
		for _, m := range all {
			free = free && m.location.schedule.open == nil
			begin = max(begin, m.begin)
		}
		if free && (best == nil || begin < key) {
			best, key = all, begin
		}
	}
	if best == nil {
		return false
	}
	s.beginUnits(best)
	return true
}

// addSenders adds the rows that send to r's unit, have not begun to, and were not visited by this search.
func (s *scheduler) addSenders(r *row, all []*row) []*row {
	for i := r.unit.from; i < r.unit.to; i++ {
		p := &r.parts[i]
		if p.fn != fnRecv || p.is(flagDropped) {
			continue
		}
		if from, k := r.otherEnd(p); k >= from.unit.from && !from.begun && from.seen != s.mark {
			from.seen = s.mark
			all = append(all, from)
		}
	}
	return all
}

// directSenders lists r and the rows that send to it and have not begun to.
func (s *scheduler) directSenders(r *row) []*row {
	s.mark++
	r.seen = s.mark
	return s.addSenders(r, []*row{r})
}
