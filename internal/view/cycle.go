// SPDX-License-Identifier: Apache-2.0

package view

// breakCycle drops one unit of a cycle of units that wait for each other: the one with the fewest parts, of equals
// the one that began last. It is called when nothing can be done, so each unit waits for one.
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
			continue // waits for one of the cycle that is not
		}
		if victim == nil || r.weight() < victim.weight() || r.weight() == victim.weight() && r.begin > victim.begin {
			victim = r
		}
	}
	s.drop(victim)
}

// node names what the row's unit is a part of.
func (r *row) node() any {
	if r.isMessages() {
		return r
	}
	return r.comm
}

// weight is the number of parts that are lost with the row's unit.
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

// blocker is a row whose unit must be begun or done before r's can be.
func (s *scheduler) blocker(r *row) *row {
	if !r.isMessages() {
		for _, m := range r.comm.present {
			switch {
			case m.isMessages():
				return m
			case !m.can:
				return m.earlier()
			case m.location.schedule.open != nil:
				return m.location.schedule.open
			}
		}
		panic("view: a collective that can be done is not")
	}
	switch {
	case r.begun:
		return r.awaited()
	case !r.can:
		return r.earlier()
	case r.need > 0:
		return s.silent(r)
	}
	all, ok := s.together(r)
	if !ok {
		for _, m := range all {
			if m.need > 0 {
				return s.silent(m)
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

// earlier is a row of the location whose unit lies before r's.
func (r *row) earlier() *row {
	for _, z := range r.location.schedule.active {
		if z != r && !z.done && before(z, r) {
			return z
		}
	}
	panic("view: a unit that nothing lies before cannot begin")
}

// silent is the sender of a message to r that can neither begin nor has begun.
func (s *scheduler) silent(r *row) *row {
	for i := r.unit.from; i < r.unit.to; i++ {
		if p := &r.parts[i]; p.fn == fnRecv && !p.is(flagDropped) && !s.sends(r, p) {
			from, _ := r.mate(p)
			return from
		}
	}
	panic("view: messages that all can be sent cannot be received")
}

// drop takes the row's unit out of the view, on all ranks.
func (s *scheduler) drop(r *row) {
	if r.isMessages() {
		for i := r.unit.from; i < r.unit.to; i++ {
			p := &r.parts[i]
			if p.is(flagDropped) {
				continue
			}
			to, k := r.mate(p)
			p.flags |= flagDropped
			to.parts[k].flags |= flagDropped
			s.count.drop(ReasonCycle, 1)
		}
	} else {
		for _, m := range r.comm.present {
			m.parts[m.nextCollective(m.unit.from)].flags |= flagDropped
		}
		s.count.drop(ReasonCycle, 1)
	}
	for _, m := range s.rows {
		switch {
		case m.done:
		case !m.begun:
			s.load(m, m.unit.from)
		case m.awaited() == nil:
			m.location.schedule.open = nil
			s.load(m, m.unit.to)
		}
	}
	s.start()
}
