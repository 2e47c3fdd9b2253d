// SPDX-License-Identifier: Apache-2.0

package view

// breakCycle drops one unit of a cycle of units that wait for each other: the one with the fewest parts or, among
// equals, the one that began last. It is called when no unit can be done, so every unit waits for another.
func (s *scheduler) breakCycle() {
	var r *row
	for _, r = range s.rows {
		if !r.done {
			break
		}
	}
	var path []*row
	at := make(map[any]int)
	for {
		if n, again := at[r.node()]; again {
			path = path[n:]
			break
		}
		at[r.node()] = len(path)
		path = append(path, r)
		r = s.blocker(r)
	}
	var victim *row
	for _, r := range path {
		if r.begun {
			continue // it waits for a unit of the cycle that has not begun
		}
		if victim == nil || r.weight() < victim.weight() || r.weight() == victim.weight() && r.begin > victim.begin {
			victim = r
		}
	}
	s.dropUnit(victim)
}

// node identifies what the row's unit is a part of.
func (r *row) node() any {
	if r.isMessages() {
		return r
	}
	return r.comm
}

// weight is the number of parts that dropping the row's unit loses.
func (r *row) weight() int {
	if !r.isMessages() {
		return len(r.comm.present)
	}
	n := 0
	for i := r.unit.from; i < r.unit.to; i++ {
		if !r.parts[i].is(flagDropped) {
			n += 2
		}
	}
	return n
}

// blocker returns a row whose unit must be begun or done before r's can be.
func (s *scheduler) blocker(r *row) *row {
	if !r.isMessages() {
		for _, m := range r.comm.present {
			switch {
			case m.isMessages():
				return m
			case !m.can:
				return m.earlierRow()
			case m.location.schedule.open != nil:
				return m.location.schedule.open
			}
		}
		panic("view: a collective that can be done is not")
	}
	switch {
	case r.begun:
		return r.awaitedSender()
	case !r.can:
		return r.earlierRow()
	case r.need > 0:
		return s.blockedSender(r)
	}
	all, ok := s.jointRows(r)
	if !ok {
		for _, m := range all {
			if m.need > 0 {
				return s.blockedSender(m)
			}
		}
	}
	for _, m := range all {
		if open := m.location.schedule.open; open != nil {
			return open
		}
	}
	panic("view: messages that can be done are not")
}

// earlierRow returns a row of the location whose unit lies before r's.
func (r *row) earlierRow() *row {
	for _, z := range r.location.schedule.active {
		if z != r && !z.done && liesBefore(z, r) {
			return z
		}
	}
	panic("view: a unit that nothing lies before cannot begin")
}

// blockedSender returns the sender of a message to r that has not begun and cannot begin.
func (s *scheduler) blockedSender(r *row) *row {
	for i := r.unit.from; i < r.unit.to; i++ {
		if p := &r.parts[i]; p.fn == fnRecv && !p.is(flagDropped) && !s.canSend(r, p) {
			from, _ := r.otherEnd(p)
			return from
		}
	}
	panic("view: messages that all can be sent cannot be received")
}

// dropUnit removes the row's unit from the view, on all ranks.
func (s *scheduler) dropUnit(r *row) {
	if r.isMessages() {
		for i := r.unit.from; i < r.unit.to; i++ {
			p := &r.parts[i]
			if p.is(flagDropped) {
				continue
			}
			to, k := r.otherEnd(p)
			p.flags |= flagDropped
			to.parts[k].flags |= flagDropped
			s.count.countDropped(ReasonCycle, 1)
		}
	} else {
		for _, m := range r.comm.present {
			m.parts[m.nextCollective(m.unit.from)].flags |= flagDropped
		}
		s.count.countDropped(ReasonCycle, 1)
	}
	for _, m := range s.rows {
		switch {
		case m.done:
		case !m.begun:
			s.loadUnit(m, m.unit.from)
		case m.awaitedSender() == nil:
			m.location.schedule.open = nil
			s.loadUnit(m, m.unit.to)
		}
	}
	s.findReady()
}
