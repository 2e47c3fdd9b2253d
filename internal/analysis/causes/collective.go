// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Who is to blame for the waits in one collective, and why.

// blame is a member that came late.
type blame struct {
	member   int32   // index
	charge   float64 // ns that the members waited for it
	delay    float64 // upper bound on the ns by which the operation would have begun earlier without it
	by       int32   // index of the member that it is compared with
	asked    bool    // the reason for its lateness is wanted
	from, to int     // range in Engine.found with the reasons, in shares; empty: unknown
	through  float64 // share of the lateness that was waiting in operations of another paradigm
	fresh    share   // of what the member did itself: that it did since both met
}

// share is a part of something, if it is known.
type share struct {
	part  float64
	known bool
}

// leastBlame is the fraction of the greatest charge below which no reasons are determined.
const leastBlame = 1.0 / 32

// collective analyzes a collective. Everything before it on its members has been analyzed.
func (e *Engine) collective(op *Operation, members []Member) {
	e.arrived, e.came = slices.Grow(e.arrived[:0], len(members))[:len(members)], e.came[:0]
	of := series{op.Comm, op.Function}
	for i := range members {
		m := &members[i]
		e.arrive(&e.arrived[i], &m.Local, m.Begin, of)
		e.called(&m.Local, of)
		e.computed(&m.Local, m.Begin, of)
		e.subtractHiddenWaits(&m.Local, &e.arrived[i])
		m.Work = e.work(&m.Local, &e.arrived[i])
		e.came = append(e.came, m.Arrival)
	}
	e.blames = e.blames[:0]
	startUp := e.begun.AddCollective(op.Comm, op.Ordinal)
	c := e.comms[op.Comm]
	met := c != nil && c.met
	var compared *lateness.Result
	late, ok := lateness.Compare(op.Kind, e.came, op.Unstated)
	if e.lateness = late; ok {
		compared = &e.lateness
		e.compared(op, members, compared, startUp)
		e.goOnLate(op, members, !met)
	}
	for _, f := range e.followers {
		f.Collective(op, members, e.came, compared, startUp)
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

// slowed adds, to the waits of a member, how much longer the operation took because of slow transfers, and returns the
// rest of the member's time. A member that ended before the last one was held up correspondingly less.
func (e *Engine) slowed(op *Operation, s *state, took float64, earlier uint64) (rest float64) {
	all := uint64(0)
	for i := range op.Slow {
		all += op.Slow[i].Excess
	}
	held := min(float64(lateness.HeldUp(all, earlier)), took)
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

// compared analyzes a collective whose members' times are comparable, and adds their waits to their states on arrival.
func (e *Engine) compared(op *Operation, members []Member, late *lateness.Result, startUp bool) {
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
	e.blame(op, late)
	e.explain(c, members)
	e.addCosts(op, c, members)
	e.pass(c, late, members)
}

// goOnLate continues the bursts of members that are still late.
func (e *Engine) goOnLate(op *Operation, members []Member, first bool) {
	if members[0].Outside {
		return
	}
	middle := &members[e.order[(len(e.order)-1)/2]]
	for _, i := range e.order {
		m := &members[i]
		e.ledger.extendBurst(&m.Local, &middle.Local, series{op.Comm, op.Function}, m.Begin,
			float64(e.came[i].Wait), float64(m.Begin)-float64(middle.Begin))
		if first { // the next operation has waited for connecting
			e.ledger.paces[m.Local.Rank].skipNextStep()
		}
	}
}

// connect takes the first operation of a communicator that is compared: there is no earlier one to compare it with.
// Its waits are caused by start-up. If recording began later, their cause is unknown.
func (e *Engine) connect(c *comm, late *lateness.Result, members []Member, startUp bool) {
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

// added returns the sum of two amounts, the second one multiplied by factor.
func (e *Engine) added(to, more amounts, factor float64) amounts {
	e.sum.clear()
	e.sum.addAll(to, 1)
	e.sum.addAll(more, factor)
	return e.sum.amounts(e.causes.unknown())
}

// scaled returns amounts multiplied by factor; all must be of different causes.
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

// blame charges the waits to members: at each instant, in equal parts to all members that have not arrived.
func (e *Engine) blame(op *Operation, late *lateness.Result) {
	last, n := e.came[late.Last].Begin, len(e.order)
	e.blames = e.blames[:0]
	var charge, delay float64 // over all later arrivals
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
	for _, i := range e.order { // members that did not wait until the last arrival
		if m := &e.came[i]; m.Wait > 0 && m.Begin+otf2.Timestamp(m.Wait) != last {
			b := &e.blames[e.awaited(op, i)]
			b.charge += float64(m.Wait)
			b.delay = max(b.delay, float64(m.Wait))
		}
	}
}

// awaited returns the place, in the order of arrivals, of the member that another one waited for, if that is not the
// last one.
func (e *Engine) awaited(op *Operation, waits int32) int {
	until := e.came[waits].Begin + otf2.Timestamp(e.came[waits].Wait)
	for k := len(e.order) - 1; k >= 0; k-- {
		m := &e.came[e.order[k]]
		switch {
		case op.Kind == lateness.WaitLateBroadcast && m.Root,
			op.Kind == lateness.WaitEarlyReduce && m.Begin <= until && !m.Root, op.Kind == lateness.WaitCollective:
			return k
		}
	}
	return len(e.order) - 1
}

// explain determines why the members that matter were late.
func (e *Engine) explain(c *comm, members []Member) {
	most := 0.0
	for k := range e.blames {
		most = max(most, e.blames[k].charge)
	}
	e.found = e.found[:0]
	first := e.came[e.order[0]].Begin
	early := 0 // the last one that arrived in the first half of the time by which k was late
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
		b.through, b.fresh = e.compare(party(b.member), party(b.by), members[b.member].Source)
		b.to = len(e.found)
	}
}

// party is one of two ranks that are compared.
type party struct {
	*Local
	met *meeting // its state at their previous common operation
	now *state
}

// worlds is the number of paradigms that are distinguished: NCCL, and MPI's calls. worldOf returns the paradigm of an
// operation by the source of its times.
const worlds = 2

func worldOf(s facts.Source) int {
	if s == facts.SourceCall {
		return 1
	}
	return 0
}

// compare appends to found why one rank came later than another to an operation whose times have the given source. It
// returns the share of the lateness that was waiting in operations of another paradigm, and, of what the late rank did
// itself, the share that it did since both met.
func (e *Engine) compare(late, early party, source facts.Source) (through float64, fresh share) {
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
		return 0, fresh
	}
	fresh = e.fresh(late, early, &more)
	for _, of := range w.touched {
		if ns := w.ns[of]; ns > 0 {
			e.found = append(e.found, amount{of, ns / all})
		}
	}
	other := worlds - 1 - worldOf(source)
	return min(max((s.waited[other]-l.waited[other])-(t.waited[other]-m.waited[other]), 0)/all, 1), fresh
}

// fresh returns the share of a rank's own lateness that its host's longer work (more) since both met makes. It is not
// known where the early rank's host has run ahead of its GPU, calls are not known, or GPUs worked longer.
func (e *Engine) fresh(late, early party, more *[ownKinds]float64) share {
	host, gpu := max(more[Host]+more[Call], 0), max(more[GPU]+more[Own], 0)
	if !late.Called || !early.Called || !late.met.called || !early.met.called || early.Ready < early.Ended ||
		gpu > host {
		return share{}
	}
	own := 0.0
	for _, k := range OwnKinds {
		own += max(e.window.ns[e.causes.of(late.Rank, k)], 0)
	}
	return share{min(host/max(own, 1), 1), own > 0}
}

// withoutHeadStart corrects the later rank's excess (more) by the times of calls. If the early rank's host had run
// ahead of its GPU, its calls took time as well, so the later rank's host was slower only by the difference of the
// times between calls. The rest is a head start, which is returned. And if the later rank's call was later by as much
// as its GPU, the host was the reason, because it launches the GPU's earlier work; unless turns on a shared GPU
// explain it, because hosts wait for turns, too.
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

// headStart charges a head start that the early rank's host already had at their previous common operation to the
// causes of the other rank's lateness there: that rank was called late then, was only partly waited for, and is waited
// for now. It returns how much is charged.
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

// why returns the causes of a blame, in shares.
func (e *Engine) why(b *blame) amounts {
	if b.from == b.to {
		return amounts{{e.causes.unknown(), 1}}
	}
	return amounts(e.found[b.from:b.to])
}

// pass adds the waits, by cause, to the members' states on arrival, and stores their meetings.
func (e *Engine) pass(c *comm, late *lateness.Result, members []Member) {
	first, last := e.came[e.order[0]].Begin, e.came[late.Last].Begin
	for _, i := range e.order {
		c.members[e.came[i].Rank].meet(&e.arrived[i], &members[i].Local)
		if m := &e.came[i]; m.Wait > 0 {
			e.ledger.waits.add(members[i].Local.Rank, m.Begin, m.Wait)
		}
	}
	// From the last arrival back: what is waited for from each arrival on, by the blamed members that matter.
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

// smallWait is the fraction of the time between first and last arrival below which a wait is not divided by cause.
const smallWait = 64
