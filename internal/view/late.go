// SPDX-License-Identifier: Apache-2.0

package view

// receivers takes waiting of senders for receivers away where a replay would hang on it.
//
// To find what delayed a late receiver, scout has the posting of the receive tell the end of the send, though the
// message goes the other way. That can be done as long as the ranks' times agree. But recorded times may be wrong by
// some microseconds, and clipped ends are early; so by its times a rank can have done what its peer has yet to begin,
// and such a notice can be part of a cycle. receivers carries out what the ranks will do, notices included. Where that
// gets stuck, the earliest of the sends that wait for a notice does without (flagQuiet), until all is done.
//
// Without notices nothing gets stuck: that is what the order was made for.
type receivers struct {
	*job
	cursors []cursor // by location
	ready   []*location
}

// cursor walks a location's units in the order shown.
type cursor struct {
	at      int  // index into order of the next unit
	row     *row // nil: there is no unit left
	unit    unit
	waiting bool // for the other members, or for other ends of messages
}

func (c *cursor) step(l *location) {
	c.row, c.waiting = nil, false
	for ; c.row == nil && c.at < len(l.order); c.at++ {
		p := l.order[c.at]
		if c.unit = p.row.kept(p.unit); c.unit.from < c.unit.to {
			c.row = p.row
		}
	}
}

// notices is what receivers keeps of a row.
type notices struct {
	posted  int // parts before this one are
	need    int // messages of the unit under way whose other end is not posted
	arrived int // of the communicator's first row: members that came to the present collective
}

// late tells whether scout sees a send wait for its receiver: the receive is posted while the send is in its wait
// region. Source: PatternMPI_LateReceiver of Scalasca 2.6.
func (r *row) late(p *part) bool {
	if p.fn != fnSend || p.is(flagDropped|flagUntimed|flagQuiet) {
		return false
	}
	to, k := r.mate(p)
	begin := to.parts[k].begin
	return p.begin < begin && begin < p.end
}

// needs tells whether a part cannot end before its other end is posted.
func (r *row) needs(p *part) bool { return !p.is(flagDropped) && (p.fn == fnRecv || r.late(p)) }

func (j *job) receivers() {
	found := false
	for _, r := range j.rows {
		for i := range r.parts {
			found = found || r.late(&r.parts[i])
		}
	}
	if !found {
		return
	}
	v := &receivers{job: j, cursors: make([]cursor, len(j.locations))}
	for _, r := range j.rows {
		r.notices = notices{}
	}
	for i, l := range j.locations {
		v.cursors[i].step(l)
		v.ready = append(v.ready, l)
	}
	for len(v.ready) > 0 || v.silence() {
		if len(v.ready) == 0 {
			continue // what did without a notice waits for others' ends as well, which wait for notices
		}
		l := v.ready[len(v.ready)-1]
		v.ready = v.ready[:len(v.ready)-1]
		v.run(l)
	}
}

// run carries out a location's units until it has to wait. What it waited for is there.
func (v *receivers) run(l *location) {
	c := &v.cursors[l.id]
	if c.waiting {
		c.step(l)
	}
	for ; c.row != nil; c.step(l) {
		if c.row.parts[c.unit.from].message() {
			c.waiting = v.post(c.row, c.unit) > 0
		} else {
			c.waiting = !v.meet(c.row)
		}
		if c.waiting {
			return
		}
	}
}

// meet brings a member to its collective; the last one lets the others go on.
func (v *receivers) meet(r *row) bool {
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

// post posts a unit's messages, and returns how many of them have to wait for their other ends.
func (v *receivers) post(r *row, u unit) int {
	r.notices.posted, r.notices.need = u.to, 0
	for i := u.from; i < u.to; i++ {
		p := &r.parts[i]
		if p.is(flagDropped) {
			continue
		}
		to, k := r.mate(p)
		if k >= to.notices.posted {
			if r.needs(p) {
				r.notices.need++
			}
			continue
		}
		c := &v.cursors[to.location.id]
		if c.row == to && c.waiting && c.unit.from <= k && k < c.unit.to && to.needs(&to.parts[k]) {
			v.arrived(to)
		}
	}
	return r.notices.need
}

// arrived counts that a message of the row's unit has its other end.
func (v *receivers) arrived(r *row) {
	if r.notices.need--; r.notices.need == 0 {
		v.ready = append(v.ready, r.location)
	}
}

// silence lets the earliest of the units that wait for notices do without them; false: none does.
func (v *receivers) silence() bool {
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
		if !r.late(p) {
			continue
		}
		if to, k := r.mate(p); k >= to.notices.posted {
			p.flags |= flagQuiet
			v.count.Untimed.Receivers++
			v.arrived(r)
		}
	}
	return true
}

func (v *receivers) waitsForNotice(c *cursor) bool {
	for i := c.unit.from; i < c.unit.to; i++ {
		p := &c.row.parts[i]
		if !c.row.late(p) {
			continue
		}
		if to, k := c.row.mate(p); k >= to.notices.posted {
			return true
		}
	}
	return false
}
