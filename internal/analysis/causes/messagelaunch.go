// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The messages of one launch share one time, so it is the launch that waits: for other ends of its messages that have
// not begun. A launch is analyzed when the other ends of all its messages are known.

// End is one end of a message that has ended.
type End struct {
	Member   // Arrival.Rank is the rank in the communicator
	Comm     otf2.CommRef
	Members  int // of the communicator
	Function string
	Ordinal  uint64 // in the pair's sequence of messages
	Last     bool   // the last one of its launch
	Paired   bool   // a call of Pair or Lost for it will follow
	Follows  bool   // its launch also has collectives, which have the launch's time
}

// launch is a launch with messages.
type launch struct {
	Member
	comm     otf2.CommRef
	members  int
	function string
	nth      uint64 // number among those of this function on its rank and communicator
	open     int    // ends whose other end is unknown
	sealed   bool   // all ends are known
	follows  bool
	others   []*launch // launches at the other ends
	room     Room      // of sends that waited for it
	unmet    int       // launches that have it among their others, and have not been analyzed
	left     bool      // it has been analyzed
}

// pairKey identifies two members of a communicator, the lower rank first.
type pairKey struct{ a, b int32 }

// pair has the states of two members at their last message.
type pair struct{ a, b meeting }

// mostPairs limits the pairs of a communicator that are distinguished.
const mostPairs = 1 << 14

// Message adds an end of a message. Those of a launch come one after the other on its rank.
func (e *Engine) Message(end *End) {
	p := e.partOf(&end.Local)
	if p == nil || p.known {
		return
	}
	l := p.launch
	if l == nil {
		l = e.newLaunch(end)
		p.launch = l
	}
	l.Outside = l.Outside && end.Outside // a launch is selected if any of its messages is
	l.Begins = l.Begins || facts.IsStartUp(true, end.Ordinal)
	if l.function != end.Function {
		l.function = facts.SendAndRecv // both ends
	}
	if end.Paired {
		l.open++
	}
	if end.Last && !l.sealed {
		l.sealed = true
		if ends := e.comm(l.comm, l.members).ledgerOfEnds(); !l.Outside {
			l.nth = ends.call(l)
		}
	}
	e.settleLaunch(l)
	e.goOn()
}

func (e *Engine) newLaunch(end *End) *launch {
	l := new(launch)
	if n := len(e.launches); n > 0 {
		l, e.launches = e.launches[n-1], e.launches[:n-1]
	}
	*l = launch{Member: end.Member, comm: end.Comm, members: end.Members, function: end.Function, follows: end.Follows,
		others: l.others[:0]}
	return l
}

func (e *Engine) partOf(l *Local) *part {
	if l.Rank < 0 {
		return nil
	}
	return e.ranks[l.Rank].partAt(l.Seq)
}

// launchOf returns a launch that has not been analyzed.
func (e *Engine) launchOf(l *Local) *launch {
	if p := e.partOf(l); p != nil {
		return p.launch
	}
	return nil
}

// AddMessagePair takes two ends of one message; compared says whether their times are comparable.
func (e *Engine) AddMessagePair(a, b *Local, compared bool) {
	x, y := e.launchOf(a), e.launchOf(b)
	if x != nil && y != nil && compared {
		x.others, y.others = append(x.others, y), append(y.others, x)
		x.unmet++
		y.unmet++
		e.received(x, y)
		e.received(y, x)
	}
	for _, l := range [...]*launch{x, y} {
		if l != nil {
			l.open--
			e.settleLaunch(l)
		}
	}
	e.goOn()
}

// AddLostEnd takes an end of a message whose other end will not come.
func (e *Engine) AddLostEnd(at *Local) {
	if l := e.launchOf(at); l != nil {
		l.open--
		e.settleLaunch(l)
		e.goOn()
	}
}

// settleLaunch analyzes a launch once all of it, and everything before it, is known.
func (e *Engine) settleLaunch(l *launch) {
	if !l.sealed || l.open > 0 || l.follows {
		return
	}
	e.findRoom(l)
	missing := 0
	e.awaits(l, func(*part) { missing++ })
	if missing == 0 {
		e.messages(l)
		return
	}
	h := e.hold()
	h.launch, h.missing = l, missing
	e.awaits(l, func(p *part) { e.wait(p, h) })
}

// awaits calls do for the parts that must be known before a launch is analyzed: those before it on its own rank, and
// on the ranks at the other ends of its messages. Ends that came before the launch count, too: without the delay in
// question, they might have come later than it did.
func (e *Engine) awaits(l *launch, do func(*part)) {
	if p := e.partBefore(&l.Local); p != nil && !p.known {
		do(p)
	}
	for _, o := range l.others {
		if o.There <= l.End {
			if p := e.partBefore(&o.Local); p != nil && !p.known {
				do(p)
			}
		}
	}
	if l.room.Seq > 0 {
		if p := e.ranks[l.room.Rank].partAt(l.room.Seq); p != nil && !p.known {
			do(p)
		}
	}
}

// waitsFor reports whether a launch was held up by one at another end: it began earlier, and ended after that one
// began.
func (l *launch) waitsFor(o *launch) bool { return o.There > l.Begin && o.There <= l.End }

// messages analyzes a launch. Everything before it, and before those that it waited for, has been analyzed.
func (e *Engine) messages(l *launch) {
	if l.Outside {
		e.swap()
		defer e.swap()
	}
	l.left = true
	of := series{l.comm, l.function}
	var s state
	e.arrive(&s, &l.Local, l.Begin, of)
	e.called(&l.Local, of)
	e.computed(&l.Local, l.Begin, of)
	e.subtractHiddenWaits(&l.Local, &s)
	c := e.comm(l.comm, l.members)
	slices.SortFunc(l.others, func(a, b *launch) int {
		return cmp.Or(cmp.Compare(a.There, b.There), cmp.Compare(a.Arrival.Rank, b.Arrival.Rank),
			cmp.Compare(a.Seq, b.Seq))
	})
	l.Work = e.work(&l.Local, &s)
	e.passToFollowers(l)
	late := l.others[:0:0]
	for i, o := range l.others {
		if l.waitsFor(o) && (i == 0 || l.others[i-1] != o) {
			late = append(late, o)
		}
	}
	took := float64(l.End - min(l.Begin, l.End))
	wait := 0.0
	if len(late) > 0 {
		wait = float64(late[len(late)-1].There - l.Begin)
		s.waits = e.heldUp(c, l, late, &s)
		s.wait += wait
		s.gpu.waited += wait
		e.ledger.waits.add(l.Local.Rank, l.Begin, uint64(wait))
	} else {
		e.metOnTime(c, l, &s)
	}
	if len(l.others) > 0 && !l.Outside {
		first := l.others[0]
		e.ledger.extendBurst(&l.Local, &first.Local, of, l.Begin, wait, float64(l.Begin)-float64(first.There))
	}
	s.transfer += took - wait
	s.gpu.moved += took - wait
	s.waited[worldOf(l.Source)] += wait
	for _, o := range l.others {
		o.unmet--
		e.recycle(o)
	}
	l.others = l.others[:0]
	e.leave(&l.Local, &s)
	e.recycle(l)
}

// passToFollowers passes a launch to the followers. What a launch at another end worked is known once everything before
// it is.
func (e *Engine) passToFollowers(l *launch) {
	e.others = e.others[:0]
	for i, o := range l.others {
		if i > 0 && l.others[i-1] == o {
			continue
		}
		if !o.left && o.There <= l.End {
			var t state
			e.arrive(&t, &o.Local, o.Begin, series{o.comm, o.function})
			o.Work = e.work(&o.Local, &t)
		}
		e.others = append(e.others, Other{&o.Member, o.function})
	}
	room := &l.room
	if room.Seq == 0 {
		room = nil
	}
	for _, f := range e.followers {
		f.Launch(&Operation{Comm: l.comm, Members: l.members, Function: l.function}, &l.Member, e.others, room)
	}
}

// recycle keeps a launch for reuse when nothing refers to it any more.
func (e *Engine) recycle(l *launch) {
	if l.left && l.unmet <= 0 {
		e.launches = append(e.launches, l)
		l.left = false
	}
}

// heldUp charges the wait of a launch to those that it waited for, and returns its rank's waits including this one, by
// cause.
func (e *Engine) heldUp(c *comm, l *launch, late []*launch, s *state) amounts {
	e.found, e.blames = e.found[:0], e.blames[:0]
	wait := float64(late[len(late)-1].There - l.Begin)
	ends := c.ledgerOfEnds()
	charge, at := 0.0, l.Begin
	e.late.clear()
	var starting float64
	e.struck = e.struck[:0]
	significant := !l.Stated || wait > float64(l.Uncertainty+late[len(late)-1].Uncertainty)
	for k, o := range late {
		charge += float64(o.There-at) / float64(len(late)-k)
		at = o.There
		var t state
		e.arrive(&t, &o.Local, o.There, series{o.comm, o.function})
		mine, others, met := c.pair(int32(l.Arrival.Rank), int32(o.Arrival.Rank))
		b := blame{charge: charge, delay: charge, asked: significant}
		if !met {
			why := e.causes.startUp()
			if l.Begins {
				starting += charge
			} else { // recording began later
				why = e.causes.unknown()
				e.ledger.costs[why] += charge
			}
			e.late.add(why, charge)
			e.ledger.paces[l.Local.Rank].skipNextStep()
			e.ledger.paces[o.Local.Rank].skipNextStep()
			others.meet(&t, &o.Local)
			mine.meet(s, &l.Local)
			others.late = amounts{{why, float64(o.There - l.Begin)}}
			continue
		}
		if significant {
			b.from = len(e.found)
			b.through, b.fresh = e.compare(party{&o.Local, others, &t}, party{&l.Local, mine, s}, l.Source)
			b.to = len(e.found)
		}
		x := e.charge(&b, o.Local.Rank, l.Begin, o.There)
		e.ledger.through[worldOf(l.Source)] += charge * b.through
		if x.local = &o.Local; x.cost < charge/2 && !l.Outside && e.byOthers(&b, o.Local.Rank) >= mostly {
			x.since(&o.Member, &l.Member, float64(o.There-l.Begin))
			e.ledger.addInheritedLateness(&x, e.why(&b))
		}
		if x.cost > 0 && !l.Outside {
			x.local, x.ledger, x.member, x.waiter = &o.Local, ends, int(o.Arrival.Rank), int(l.Arrival.Rank)
			x.since(&o.Member, &l.Member, x.cost/charge*float64(o.There-l.Begin))
			x.fresh, x.worked = e.known(b.fresh, l.function), t.sumOwn()
			ends.ranks[l.Arrival.Rank], ends.ranks[o.Arrival.Rank] = l.Local.Rank, o.Local.Rank
			e.ledger.addLateOccasion(&x)
			e.struck = append(e.struck, lateMember{x, &o.Member, &l.Member, o.function, o.nth})
		}
		e.late.addAll(e.why(&b), charge)
		others.meet(&t, &o.Local)
		mine.meet(s, &l.Local)
		others.late = e.added(nil, e.why(&b), float64(o.There-l.Begin))
	}
	e.ledger.startUp += starting
	e.ledger.waited += wait - starting
	e.remember(l.comm, 0)
	e.sum.clear()
	e.sum.addAll(s.waits, 1)
	e.sum.addScratch(e.late, 1)
	return e.sum.amounts(e.causes.unknown())
}

// metOnTime records that a launch met others without waiting for them.
func (e *Engine) metOnTime(c *comm, l *launch, s *state) {
	for _, o := range l.others {
		if o.Begin == l.Begin && !o.left {
			mine, _, _ := c.pair(int32(l.Arrival.Rank), int32(o.Arrival.Rank))
			mine.meet(s, &l.Local)
		}
	}
}

// pair returns the states of two members at their last message, or, if there are too many pairs, at the communicator's
// last collective; met reports whether there was one.
func (c *comm) pair(a, b int32) (of, other *meeting, met bool) {
	key := pairKey{min(a, b), max(a, b)}
	p := c.pairs[key]
	if p == nil {
		if len(c.pairs) >= mostPairs {
			return &c.members[a], &c.members[b], true
		}
		if c.pairs == nil {
			c.pairs = make(map[pairKey]*pair)
		}
		p = new(pair)
		c.pairs[key] = p
	} else {
		met = true
	}
	if a == key.a {
		return &p.a, &p.b, met
	}
	return &p.b, &p.a, met
}

// ledgerOfEnds returns the ledger of messages' launches.
func (c *comm) ledgerOfEnds() *commLedger {
	if c.ends == nil {
		l := newCommLedger(len(c.members))
		l.made = make(map[ownCalls]uint64)
		l.lost = make(map[pairKey]*counted)
		c.ends = &l
	}
	return c.ends
}

// lose returns the occasions on which one member waited for another one; pairs beyond the limit are not distinguished.
func (c *commLedger) lose(late, waited int) *counted {
	key := pairKey{int32(late), int32(waited)}
	n := c.lost[key]
	if n == nil {
		n = new(counted)
		if len(c.lost) < mostPairs {
			c.lost[key] = n
		}
	}
	return n
}

// ownCalls identifies a function that a member called.
type ownCalls struct {
	member   int
	function string
}

// call counts a launch among those of its function on its rank.
func (c *commLedger) call(l *launch) uint64 {
	key := ownCalls{l.Arrival.Rank, l.function}
	c.made[key]++
	return c.made[key]
}
