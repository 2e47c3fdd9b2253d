// SPDX-License-Identifier: Apache-2.0

package view

// noticeReplay removes senders' waiting for receivers where scout's replay would hang on it.
//
// To find what delayed a late receiver, scout sends a notice from the posting of the receive to the end of the send,
// against the direction of the message. This works while the ranks' times agree. But recorded times may be wrong by
// some microseconds, and clipped ends are early; by its times, a rank may have finished what its peer has yet to begin,
// and a notice can be part of a cycle. noticeReplay therefore carries out what the ranks will do, notices included.
// Whenever that is stuck, the earliest send that waits for a notice goes without (flagQuiet). Without notices no rank
// is stuck: the order guarantees that.
type noticeReplay struct {
	*job
	cursors []cursor // by location
	ready   []*location
}

// cursor walks a location's units in the order shown.
type cursor struct {
	at      int  // index into order of the next unit
	row     *row // nil: no unit is left
	unit    unit
	waiting bool // for the other members, or for other ends of messages
}

func (c *cursor) step(l *location) {
	c.row, c.waiting = nil, false
	for ; c.row == nil && c.at < len(l.order); c.at++ {
		p := l.order[c.at]
		if c.unit = p.row.remaining(p.unit); c.unit.from < c.unit.to {
			c.row = p.row
		}
	}
}

// notices is the state that noticeReplay keeps for a row.
type notices struct {
	posted  int // parts before this one are posted
	need    int // messages of the present unit whose other end is not posted
	arrived int // in the communicator's first row: members at the present collective
}

// waitsForReceiver reports whether scout sees a send wait for its receiver: the receive is posted while the send is in
// its wait region. Source: PatternMPI_LateReceiver of Scalasca 2.6.
func (r *row) waitsForReceiver(p *part) bool {
	if p.fn != fnSend || p.is(flagDropped|flagUntimed|flagQuiet) {
		return false
	}
	to, k := r.otherEnd(p)
	begin := to.parts[k].begin
	return p.begin < begin && begin < p.end
}

// needsOtherEnd reports whether a part cannot end before its other end is posted.
func (r *row) needsOtherEnd(p *part) bool {
	return !p.is(flagDropped) && (p.fn == fnRecv || r.waitsForReceiver(p))
}

func (j *job) breakNotices() {
	found := false
	for _, r := range j.rows {
		for i := range r.parts {
			found = found || r.waitsForReceiver(&r.parts[i])
		}
	}
	if !found {
		return
	}
	v := &noticeReplay{job: j, cursors: make([]cursor, len(j.locations))}
	for _, r := range j.rows {
		r.notices = notices{}
	}
	for i, l := range j.locations {
		v.cursors[i].step(l)
		v.ready = append(v.ready, l)
	}
	for len(v.ready) > 0 || v.skipNotices() {
		if len(v.ready) == 0 {
			continue // the unit that goes without a notice still waits for the other ends of other messages
		}
		l := v.ready[len(v.ready)-1]
		v.ready = v.ready[:len(v.ready)-1]
		v.run(l)
	}
}

// run carries out a location's units until one has to wait. What the present unit waited for has happened.
func (v *noticeReplay) run(l *location) {
	c := &v.cursors[l.id]
	if c.waiting {
		c.step(l)
	}
	for ; c.row != nil; c.step(l) {
		if c.row.parts[c.unit.from].isMessage() {
			c.waiting = v.postMessages(c.row, c.unit) > 0
		} else {
			c.waiting = !v.joinCollective(c.row)
		}
		if c.waiting {
			return
		}
	}
}

// joinCollective brings a member to its collective; the last member lets the others continue.
func (v *noticeReplay) joinCollective(r *row) bool {
	all := r.comm.present
	arrived := &all[0].notices.arrived
	if *arrived++; *arrived < len(all) {
		return false
	}
	*arrived = 0
	for _, m := range all {
		if m != r {
			v.ready = append(v.ready, m.location)
		}
	}
	return true
}

// postMessages posts a unit's messages and returns how many of them wait for their other ends.
func (v *noticeReplay) postMessages(r *row, u unit) int {
	r.notices.posted, r.notices.need = u.to, 0
	for i := u.from; i < u.to; i++ {
		p := &r.parts[i]
		if p.is(flagDropped) {
			continue
		}
		to, k := r.otherEnd(p)
		if k >= to.notices.posted {
			if r.needsOtherEnd(p) {
				r.notices.need++
			}
			continue
		}
		c := &v.cursors[to.location.id]
		if c.row == to && c.waiting && c.unit.from <= k && k < c.unit.to && to.needsOtherEnd(&to.parts[k]) {
			v.completeMessage(to)
		}
	}
	return r.notices.need
}

// completeMessage counts that a message of the row's unit has its other end.
func (v *noticeReplay) completeMessage(r *row) {
	if r.notices.need--; r.notices.need == 0 {
		v.ready = append(v.ready, r.location)
	}
}

// skipNotices lets the earliest unit that waits for notices go on without them; it reports whether there is such a
// unit.
func (v *noticeReplay) skipNotices() bool {
	var first *cursor
	for i := range v.cursors {
		c := &v.cursors[i]
		if c.row == nil || !v.waitsForNotice(c) {
			continue
		}
		if first == nil || c.row.parts[c.unit.from].begin < first.row.parts[first.unit.from].begin {
			first = c
		}
	}
	if first == nil {
		return false
	}
	r := first.row
	for i := first.unit.from; i < first.unit.to; i++ {
		p := &r.parts[i]
		if !r.waitsForReceiver(p) {
			continue
		}
		if to, k := r.otherEnd(p); k >= to.notices.posted {
			p.flags |= flagQuiet
			v.count.Untimed.Receivers++
			v.completeMessage(r)
		}
	}
	return true
}

func (v *noticeReplay) waitsForNotice(c *cursor) bool {
	for i := c.unit.from; i < c.unit.to; i++ {
		p := &c.row.parts[i]
		if !c.row.waitsForReceiver(p) {
			continue
		}
		if to, k := c.row.otherEnd(p); k >= to.notices.posted {
			return true
		}
	}
	return false
}
