// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Who is to blame for the waits in one collective, and for what.

// blame is a member that came late.
type blame struct {
	member   int32   // index
	charge   float64 // ns that the members waited for it
	delay    float64 // ns by which the operation would have begun earlier without it, at most
	by       int32   // index of the member that it is compared with
	asked    bool    // why it was late
	from, to int     // in Engine.found: the answer, in shares; empty: not known
	through  float64 // share of it that was waiting in operations of another paradigm
}

// leastBlame is the part of the greatest charge below which is not asked why.
const leastBlame = 1.0 / 32

// collective looks at a collective. What came before it on its members has been looked at.
func (e *Engine) collective(op *Operation, members []Member) {
	e.arrived, e.came = slices.Grow(e.arrived[:0], len(members))[:len(members)], e.came[:0]
	of := series{op.Comm, op.Function}
	for i := range members {
		m := &members[i]
		e.arrive(&e.arrived[i], &m.Local, m.Begin, of)
		e.called(&m.Local, of)
		e.computed(&m.Local, m.Begin, of)
		e.costless(&m.Local, &e.arrived[i])
		e.came = append(e.came, m.Arrival)
	}
	e.blames = e.blames[:0]
	startUp := e.begun.AddCollective(op.Comm, op.Ordinal)
	c := e.comms[op.Comm]
	met := c != nil && c.met
	var compared *facts.Lateness
	late, ok := facts.Arrive(op.Kind, e.came, op.Unstated)
	if e.lateness = late; ok {
		compared = &e.lateness
		if met {
			e.ideal(compared)
		}
		e.compared(op, members, compared, startUp)
		e.goOnLate(op, members, !met)
	}
	if e.follower != nil {
		e.follower.Collective(op, members, e.came, compared, e.delays(members), startUp)
	}
	for i := range members {
		m, s := &members[i], &e.arrived[i]
		took := uint64(m.End - min(m.Begin, m.End))
		rest := float64(took - min(took, e.came[i].Wait))
		if ok && m.Source == late.Source {
			rest = e.slowed(op, s, rest, uint64(late.End-min(m.End, late.End)))
		}
		s.transfer += rest
		s.gpu.moved += rest
		s.waited[worldOf(m.Source)] += float64(e.came[i].Wait)
		e.leave(&m.Local, s)
	}
}

// slowed adds to what a member has waited for what the operation took longer because of slow transfers, and gives the
// rest of what it took on that member. One that ended earlier than the last was held up by so much less.
func (e *Engine) slowed(op *Operation, s *state, took float64, earlier uint64) (rest float64) {
	all := uint64(0)
	for i := range op.Slow {
		all += op.Slow[i].Excess
	}
	held := min(float64(facts.HeldUp(all, earlier)), took)
	if held <= 0 {
		return took
	}
	e.sum.clear()
	e.sum.addAll(s.waits, 1)
	for i := range op.Slow {
		x := &op.Slow[i]
		kind := x.Kind
		if kind == Moving {
			kind = e.turns(x.Rank, kind, float64(x.Excess), x.Steps)
		}
		e.sum.add(e.causes.of(x.Rank, kind), held*float64(x.Excess)/float64(all))
	}
	s.waits = e.sum.amounts(e.causes.unknown())
	s.wait += held
	s.gpu.waited += held
	return took - held
}

// compared looks at a collective whose members' times compare, and adds their waits to what they have arrived with.
func (e *Engine) compared(op *Operation, members []Member, late *facts.Lateness, startUp bool) {
	e.order = e.order[:0]
	for i := range members {
		if e.came[i].Source == late.Source && members[i].Local.Rank >= 0 {
			e.order = append(e.order, int32(i))
		}
	}
	slices.SortFunc(e.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(e.came[a].Begin, e.came[b].Begin), cmp.Compare(e.came[a].Rank, e.came[b].Rank))
	})
	c := e.comm(op.Comm, op.Members)
	e.ledger.time(members)
	if !c.met {
		c.met = true
		c.see(members)
		e.connect(c, late, members, startUp)
		return
	}
	if !members[0].Outside {
		c.calls[op.Function]++
	}
	e.ledger.waited += float64(late.Caused)
	first, last := &members[e.order[0]], &members[late.Last]
	if late.Caused == 0 || first.Stated && last.Stated &&
		uint64(last.Begin-first.Begin) <= first.Uncertainty+last.Uncertainty {
		e.ledger.costs[e.causes.unknown()] += float64(late.Caused)
		e.ledger.small += float64(late.Caused)
		for _, i := range e.order {
			c.members[e.came[i].Rank].meet(&e.arrived[i], &members[i].Local)
			e.arrived[i].loose += float64(e.came[i].Wait)
		}
		return
	}
	e.blame(op, members, late)
	e.explain(c, members)
	e.settle(op, c, members)
	e.pass(c, late, members)
}

// goOnLate looks which members are still late that were so before.
func (e *Engine) goOnLate(op *Operation, members []Member, first bool) {
	if members[0].Outside {
		return
	}
	middle := &members[e.order[(len(e.order)-1)/2]]
	for _, i := range e.order {
		m := &members[i]
		e.ledger.goesOn(&m.Local, &middle.Local, series{op.Comm, op.Function}, m.Begin,
			float64(m.Begin)-float64(middle.Begin))
		if first { // what comes next has waited for connecting
			e.ledger.paces[m.Local.Rank].forget()
		}
	}
}

// connect takes the first operation of a communicator that is compared: there is none before it to compare it with. Its
// waits go back to start-up; where recording began later it is not known what they go back to.
func (e *Engine) connect(c *comm, late *facts.Lateness, members []Member, startUp bool) {
	begin, why := e.came[e.order[0]].Begin, e.causes.startUp()
	if !startUp {
		why = e.causes.unknown()
		e.ledger.waited += float64(late.Caused)
		e.ledger.costs[why] += float64(late.Caused)
	}
	for _, i := range e.order {
		m, s := &e.came[i], &e.arrived[i]
		c.members[m.Rank].meet(s, &members[i].Local)
		if late := m.Begin - begin; late > 0 {
			c.members[m.Rank].late = amounts{{why, float64(late)}}
		}
		if m.Wait > 0 {
			s.waits = e.added(s.waits, amounts{{why, float64(m.Wait)}}, 1)
			if startUp {
				e.ledger.startUp += float64(m.Wait)
			}
			s.wait += float64(m.Wait)
			s.gpu.waited += float64(m.Wait)
		}
	}
}

// added is the sum of amounts.
func (e *Engine) added(to, more amounts, factor float64) amounts {
	e.sum.clear()
	e.sum.addAll(to, 1)
	e.sum.addAll(more, factor)
	return e.sum.amounts(e.causes.unknown())
}

// scaled is amounts times something, each of another cause.
func (e *Engine) scaled(all amounts, factor float64) amounts {
	if len(all) > mostCauses {
		return e.added(nil, all, factor)
	}
	more := make(amounts, len(all))
	for i, a := range all {
		more[i] = amount{a.of, factor * a.ns}
	}
	return more
}

// blame charges the waits to members: at each instant to all that have not come, in equal parts.
func (e *Engine) blame(op *Operation, members []Member, late *facts.Lateness) {
	last, n := e.came[late.Last].Begin, len(e.order)
	e.blames = e.blames[:0]
	var charge, delay float64 // of all that come later
	waiting := 0
	for k, i := range e.order {
		e.blames = append(e.blames, blame{member: i, charge: charge, delay: delay})
		m := &e.came[i]
		if m.Wait > 0 && m.Begin+otf2.Timestamp(m.Wait) == last {
			waiting++
		}
		if k+1 < n {
			distance := float64(e.came[e.order[k+1]].Begin-m.Begin) / float64(n-k-1)
			charge += float64(waiting) * distance
			if waiting > 0 {
				delay += distance
			}
		}
	}
	for _, i := range e.order { // those that did not wait until the last one came
		if m := &e.came[i]; m.Wait > 0 && m.Begin+otf2.Timestamp(m.Wait) != last {
			b := &e.blames[e.awaited(op, late, i)]
			b.charge += float64(m.Wait)
			b.delay = max(b.delay, float64(m.Wait))
		}
	}
}

// awaited is the place in the order of arrivals of whom a member waited for that did not wait for the last one.
func (e *Engine) awaited(op *Operation, late *facts.Lateness, waits int32) int {
	until := e.came[waits].Begin + otf2.Timestamp(e.came[waits].Wait)
	for k := len(e.order) - 1; k >= 0; k-- {
		m := &e.came[e.order[k]]
		switch {
		case op.Kind == facts.WaitLateBroadcast && m.Root,
			op.Kind == facts.WaitEarlyReduce && m.Begin <= until && !m.Root, op.Kind == facts.WaitCollective:
			return k
		}
	}
	return len(e.order) - 1
}

// explain asks why the members were late that matter.
func (e *Engine) explain(c *comm, members []Member) {
	most := 0.0
	for k := range e.blames {
		most = max(most, e.blames[k].charge)
	}
	e.found = e.found[:0]
	first := e.came[e.order[0]].Begin
	early := 0 // the last one that came in the first half of the time that k came late
	for k := range e.blames {
		b := &e.blames[k]
		begin := e.came[b.member].Begin
		for early+1 < k && e.came[e.order[early+1]].Begin-first <= (begin-first)/2 {
			early++
		}
		if b.charge <= 0 || b.charge < most*leastBlame {
			continue
		}
		b.by = e.order[early/2]
		if b.by == b.member {
			continue
		}
		b.asked, b.from = true, len(e.found)
		party := func(i int32) party {
			return party{&members[i].Local, &c.members[e.came[i].Rank], &e.arrived[i]}
		}
		b.through = e.compare(party(b.member), party(b.by), members[b.member].Source)
		b.to = len(e.found)
	}
}

// party is one of two ranks that are compared.
type party struct {
	*Local
	met *meeting // how it came to what they did together before
	now *state
}

// worlds are the paradigms that are told apart: NCCL, and MPI's calls. worldOf is that of an operation with times of a
// source.
const worlds = 2

func worldOf(s facts.Source) int {
	if s == facts.SourceCall {
		return 1
	}
	return 0
}

// compare appends to found why one rank came later than another to an operation with times of a source, and gives the
// share of that which was waiting in operations of another paradigm.
func (e *Engine) compare(late, early party, source facts.Source) (through float64) {
	w := e.window
	w.clear()
	w.addAll(late.now.waits, 1)
	w.addAll(late.met.waits, -1)
	w.addAll(late.met.late, 1)
	w.addAll(early.now.waits, -1)
	w.addAll(early.met.waits, 1)
	w.addAll(early.met.late, -1)
	s, l, t, m := late.now, late.met, early.now, early.met
	var more [ownKinds]float64
	sum := 0.0
	for k := range more {
		more[k] = (s.own[k] - l.own[k]) - (t.own[k] - m.own[k])
	}
	if ahead := e.withoutHeadStart(late, early, &more); ahead > 0 {
		w.add(e.causes.unknown(), ahead-e.headStart(late, early, ahead))
	}
	for k := range more {
		sum += more[k]
	}
	who, sign := late, 1.0
	if sum < 0 {
		who, sign = early, -1
	}
	parts := 0.0
	for k := range more {
		parts += max(sign*more[k], 0)
	}
	onGPU := sum / parts * (max(sign*more[GPU], 0) + max(sign*more[Own], 0))
	for k := range more {
		if part := max(sign*more[k], 0); part > 0 {
			kind := Kind(k)
			if kind == GPU || kind == Own {
				kind = e.turns(who.Rank, kind, onGPU, who.since())
			}
			w.add(e.causes.of(who.Rank, kind), sum*part/parts)
		}
	}
	switch transfer := (s.transfer - l.transfer) - (t.transfer - m.transfer); {
	case transfer > 0:
		w.add(e.causes.of(late.Rank, e.turns(late.Rank, Transfer, transfer, e.hops(&late))), transfer)
	case transfer < 0:
		w.add(e.causes.of(early.Rank, e.turns(early.Rank, Transfer, transfer, e.hops(&early))), transfer)
	}
	w.add(e.causes.unknown(), (s.loose-l.loose)-(t.loose-m.loose))
	all := w.positive()
	if all <= 0 {
		return 0
	}
	for _, of := range w.touched {
		if ns := w.ns[of]; ns > 0 {
			e.found = append(e.found, amount{of, ns / all})
		}
	}
	other := worlds - 1 - worldOf(source)
	return min(max((s.waited[other]-l.waited[other])-(t.waited[other]-m.waited[other]), 0)/all, 1)
}

// withoutHeadStart corrects what the later one has more of by the times of calls. Where the early one's host had gone
// ahead of its GPU, it took as long for its calls, too, and only by how much longer the later one took from call to
// call has its host been slower: the rest is a head start, which it returns. And where the later one's call came later
// by as much as its GPU, that was its host, which launches what the GPU has to do before: unless turns on a shared GPU
// explain that, for which hosts wait, too.
func (e *Engine) withoutHeadStart(late, early party, more *[ownKinds]float64) (ahead float64) {
	if !late.Called || !early.Called || !late.met.called || !early.met.called {
		return 0
	}
	slower := max(0, (float64(late.Ready)-float64(late.met.ready))-(float64(early.Ready)-float64(early.met.ready)))
	longer := max(slower, (late.now.host-late.met.host)-(early.now.host-early.met.host))
	if more[Host] > 0 && early.Ready < early.Ended {
		ahead = max(0, more[Host]-longer)
		more[Host] -= ahead
	}
	slower = longer
	if slower -= max(more[Host], 0); more[GPU] > 0 && late.Ready > early.Ready && slower >= more[GPU]/2 &&
		!e.sharing.Explains(int(late.Rank), more[GPU], late.since()) {
		moved := min(more[GPU], slower)
		more[Host] += moved
		more[GPU] -= moved
	}
	return ahead
}

// headStart charges a head start of the early one's host that it had when both met to what made the other one late
// there: who was called late then, and only partly waited for, is waited for now. It returns how much of it is charged.
func (e *Engine) headStart(late, early party, ahead float64) (charged float64) {
	all := 0.0
	for _, why := range late.met.late {
		all += max(0, why.ns)
	}
	if all == 0 {
		return 0
	}
	charged = min(ahead, max(0, float64(late.met.ready)-float64(early.met.ready)))
	for _, why := range late.met.late {
		e.window.add(why.of, charged*max(0, why.ns)/all)
	}
	return charged
}

// why gives the causes of a blame, in shares.
func (e *Engine) why(b *blame) amounts {
	if b.from == b.to {
		return amounts{{e.causes.unknown(), 1}}
	}
	return amounts(e.found[b.from:b.to])
}

// pass adds the waits, by their causes, to what the members have arrived with, and keeps how they met.
func (e *Engine) pass(c *comm, late *facts.Lateness, members []Member) {
	first, last := e.came[e.order[0]].Begin, e.came[late.Last].Begin
	for _, i := range e.order {
		c.members[e.came[i].Rank].meet(&e.arrived[i], &members[i].Local)
		if m := &e.came[i]; m.Wait > 0 {
			e.ledger.waits.add(members[i].Local.Rank, m.Begin, m.Wait)
		}
	}
	// From the last one back: what one waits for that comes at a time, and by whom of those that count.
	e.waits.clear()
	e.late.clear()
	next, behind := last, 0
	for k := len(e.blames) - 1; k >= 0; k-- {
		b := &e.blames[k]
		m := &e.came[b.member]
		distance := float64(next - m.Begin)
		if m.Wait > 0 && m.Wait >= uint64(last-first)/smallWait {
			e.arrived[b.member].wait += float64(m.Wait)
			e.arrived[b.member].gpu.waited += float64(m.Wait)
			if m.Begin+otf2.Timestamp(m.Wait) == last {
				e.sum.clear()
				e.sum.addAll(e.arrived[b.member].waits, 1)
				e.sum.addScratch(e.waits, 1)
				e.sum.addScratch(e.late, distance/float64(max(behind, 1)))
				e.arrived[b.member].waits = e.sum.amounts(e.causes.unknown())
			} else {
				by := &e.blames[len(e.blames)-1]
				e.arrived[b.member].waits = e.added(e.arrived[b.member].waits, e.why(by), float64(m.Wait))
			}
		} else {
			e.arrived[b.member].loose += float64(m.Wait)
		}
		if !b.asked {
			continue
		}
		e.waits.addScratch(e.late, distance/float64(max(behind, 1)))
		next = m.Begin
		e.late.addAll(e.why(b), 1)
		e.waits.bound(e.causes.unknown())
		e.late.bound(e.causes.unknown())
		behind++
		c.members[m.Rank].late = e.scaled(e.why(b), float64(m.Begin-first))
	}
}

// smallWait is the part of the time between the first and the last arrival as which waits are not told apart by causes.
const smallWait = 64
