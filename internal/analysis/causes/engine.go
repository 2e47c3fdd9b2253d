// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overtime"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The order in which operations are analyzed: each after everything before it on its members. A member's earlier
// operations are known from its timeline; an operation is held back until the last one before it on each member has
// been analyzed.

// Operation is a collective that all its members have ended.
type Operation struct {
	Comm     otf2.CommRef
	Members  int // number of members of the communicator
	Function string
	Ordinal  uint64
	Kind     lateness.WaitKind
	Unstated bool // the archive does not state sources of times, so all count as one source
	Slow     []Slow
}

// Slow is how much longer an operation took because of a rank's transfers.
type Slow struct {
	Rank   int32  // in the world
	Kind   Kind   // Link or Moving
	Excess uint64 // ns
	Steps  uint64 // steps of a slow GPU: each may have waited for the turns of others
}

// Member is one member's part in an operation.
type Member struct {
	lateness.Arrival
	// There is when a message was ready for its other end; Begin is when its rank was ready for this message alone.
	There       otf2.Timestamp
	Uncertainty uint64 // of Begin and End, ns
	Stated      bool   // Uncertainty is known
	Work        uint64 // ns that it worked since its operation before: after the end of that, and beside it
	Begins      bool   // it is the first message of a pair
	Local
}

// Engine attributes waits to causes.
type Engine struct {
	causes causesOf
	ranks  []rank
	comms  map[otf2.CommRef]*comm
	begun  facts.StartUps
	ledger ledger
	// aside is the ledger for unselected operations; while one is analyzed, both ledgers are swapped. It is filled
	// only if there are any.
	aside  ledger
	ready  []*held // operations that are no longer held back
	free   []*held
	unused *behind

	launches []*launch // launches for reuse
	ways     map[way]*receives

	sharing   Sharing
	orders    map[functions]*order
	followers []Follower // receive what is analyzed
	others    []Other    // passed to them
	lateness  lateness.Result

	// State of the operation that is being analyzed, by member:
	arrived []state // states on arrival
	came    []lateness.Arrival
	order   []int32      // indices of members with comparable times, in the order of arrival
	blames  []blame      // in that order
	struck  []lateMember // who was late by itself
	found   []amount     // reasons for all of them

	window, sum, waits, late *scratch
}

// NewEngine returns an engine for a number of ranks of the world.
func NewEngine(ranks int) *Engine {
	n := causesOf(ranks)
	e := &Engine{causes: n, ranks: make([]rank, ranks), comms: make(map[otf2.CommRef]*comm),
		begun: make(facts.StartUps), orders: make(map[functions]*order), ways: make(map[way]*receives)}
	for _, s := range []**scratch{&e.window, &e.sum, &e.waits, &e.late} {
		*s = newScratch(n.all())
	}
	e.ledger, e.aside = newLedger(n), ledger{own: make([]float64, n), ownBy: make([][ownKinds]float64, n)}
	return e
}

// OnCharge sets a function that receives each part of the waiting between two times that a rank caused by what it did
// itself: ns is the sum over all that waited, of is the kind. The charges for one operation come in direct succession.
func (e *Engine) OnCharge(see func(rank int, of Kind, begin, end otf2.Timestamp, ns float64)) {
	e.ledger.charged = see
}

// SetTimeLine sets a line that receives each part of the waiting that a rank caused by what it did itself.
func (e *Engine) SetTimeLine(l *overtime.Line) { e.ledger.over = l }

// state is what a rank's time was made of along the chain that leads to a moment, ns.
type state struct {
	own      [ownKinds]float64
	transfer float64
	waited   [worlds]float64 // in operations of each paradigm
	loose    float64         // waits that are too small to be divided by cause
	waits    amounts
	turned   float64 // part of its GPU's lateness that the turns of others may explain
	floating
}

// rank has the last parts of a rank, by their sequence.
type rank struct {
	parts []part // the size is a power of two
	first uint32 // first part that is kept
	known uint32 // all parts before it have been analyzed
	next  uint32
	hosts []hostTimes // times between calls, by series
}

type part struct {
	known  bool // it has been analyzed
	left   state
	ended  otf2.Timestamp // Local.Ended of its operation
	held   *held          // its operation, if that is held back, and not of messages
	behind *behind        // operations that wait for it
	launch *launch        // a launch of messages that has not been analyzed
}

// behind is the last element of a circular list of operations; its next one is the first. Few parts have a list at a
// time, so the room is not part of them.
type behind struct {
	held *held
	next *behind
}

const (
	leastParts = 16
	mostParts  = 1 << 12
)

// held is an operation that is held back.
type held struct {
	op      Operation
	members []Member
	launch  *launch // nil: a collective
	missing int     // number of missing parts
	givenUp bool    // it is not compared
}

// comm is a communicator.
type comm struct {
	met     bool // it has had an operation
	members []meeting
	commLedger

	pairs map[pairKey]*pair // pairs that have exchanged messages
	ends  *commLedger       // for messages, nil: there are none
}

// meeting is a member's state on its arrival at the last operation.
type meeting struct {
	state                 // on arrival
	late   amounts        // lateness after the first arrival, by cause
	ready  otf2.Timestamp // time of the call
	seq    uint32         // of its part
	called bool           // ready is known
}

// meet sets the meeting to a member's state on arrival.
func (m *meeting) meet(s *state, l *Local) {
	m.state, m.late, m.ready, m.seq, m.called = *s, nil, l.Ready, l.Seq, l.Called
}

// partAt returns a part, nil if it is no longer kept.
func (r *rank) partAt(seq uint32) *part {
	if seq < r.first || seq >= r.next {
		return nil
	}
	return &r.parts[seq&uint32(len(r.parts)-1)]
}

// AddPart adds a member's part that has ended. The parts of a rank come in the order of Local.Seq, and each of them
// partBefore its operation, or before the call of Alone for it.
func (e *Engine) AddPart(l *Local) {
	if l.Rank < 0 {
		return
	}
	r := &e.ranks[l.Rank]
	if r.parts == nil {
		r.parts, r.first, r.next = make([]part, leastParts), l.Seq, l.Seq
	}
	for ; r.next <= l.Seq; r.next++ {
		if r.next-r.first == uint32(len(r.parts)) {
			e.makeRoom(r)
		}
		r.parts[r.next&uint32(len(r.parts)-1)] = part{}
	}
	r.partAt(l.Seq).ended = l.Ended
	e.goOn()
}

// makeRoom drops the oldest part, or grows the room if that part has not been analyzed.
func (e *Engine) makeRoom(r *rank) {
	old := r.partAt(r.first)
	if !r.settled() && len(r.parts) < mostParts {
		more := make([]part, 2*len(r.parts))
		for seq := r.first; seq < r.next; seq++ {
			more[seq&uint32(len(more)-1)] = *r.partAt(seq)
		}
		r.parts = more
		return
	}
	e.release(old)
	r.first++
}

// settled reports whether the oldest part is no longer needed: it has been analyzed, and so have the parts that may
// have begun right after it.
func (r *rank) settled() bool {
	until := min(r.first+leastParts/2, r.next)
	for r.known = max(r.known, r.first); r.known < until; r.known++ {
		if !r.partAt(r.known).known {
			return false
		}
	}
	return true
}

// Collective adds a collective that all its members with data have ended.
func (e *Engine) Collective(op *Operation, members []Member) {
	missing := 0
	for i := range members {
		if p := e.partBefore(&members[i].Local); p != nil && !p.known {
			missing++
		}
	}
	if missing == 0 {
		e.collectiveIn(op, members)
		e.goOn()
		return
	}
	h := e.hold()
	h.op, h.members, h.missing = *op, append(h.members[:0], members...), missing
	for i := range members {
		if p := e.partOf(&members[i].Local); p != nil {
			p.held = h
		}
		if p := e.partBefore(&members[i].Local); p != nil && !p.known {
			e.wait(p, h)
		}
	}
}

// collectiveIn analyzes a collective, with the ledger that it belongs to.
func (e *Engine) collectiveIn(op *Operation, members []Member) {
	if members[0].Outside {
		e.swap()
		defer e.swap()
	}
	e.collective(op, members)
}

// swap exchanges both ledgers.
func (e *Engine) swap() {
	if e.aside.costs == nil {
		e.aside = newLedger(e.causes)
	}
	e.ledger, e.aside = e.aside, e.ledger
}

func (e *Engine) hold() *held {
	n := len(e.free)
	if n == 0 {
		return new(held)
	}
	h := e.free[n-1]
	e.free = e.free[:n-1]
	return h
}

// partBefore returns the part before a given one on its rank, nil if there is none, or it is not kept.
func (e *Engine) partBefore(l *Local) *part {
	if l.Rank < 0 || l.Before == 0 {
		return nil
	}
	return e.ranks[l.Rank].partAt(l.Before)
}

// release continues what was held back by a part.
func (e *Engine) release(p *part) {
	last := p.behind
	if last == nil {
		return
	}
	p.behind = nil
	for b := last.next; ; b = b.next {
		if b.held.missing--; b.held.missing == 0 {
			e.ready = append(e.ready, b.held)
		}
		b.held = nil
		if b == last {
			break
		}
	}
	last.next, e.unused = e.unused, last.next
}

// wait makes an operation wait for a part.
func (e *Engine) wait(p *part, h *held) {
	b := e.unused
	if b == nil {
		b = new(behind)
	} else {
		e.unused = b.next
	}
	b.held, b.next = h, b
	if p.behind != nil {
		b.next, p.behind.next = p.behind.next, b
	}
	p.behind = b
}

// goOn analyzes the operations that are no longer held back.
func (e *Engine) goOn() {
	for len(e.ready) > 0 {
		n := len(e.ready) - 1
		h := e.ready[n]
		e.ready = e.ready[:n]
		switch l := h.launch; {
		case l != nil && !l.left:
			e.messages(l)
		case l == nil && !h.givenUp:
			e.collectiveIn(&h.op, h.members)
		}
		h.launch, h.givenUp = nil, false
		e.free = append(e.free, h)
	}
}

// finish analyzes what is still held back when everything has been added. Where times are uncertain, one rank may seem
// to have begun an operation after another one, and another rank the other way round: then neither is the first that
// can be analyzed. The earliest operation that others wait for is not compared, until all have been analyzed. If little
// is left, it is all left out: operations without a certain order show little of what others would have done.
func (e *Engine) finish() {
	const little = 0.1
	all, left := 0, 0
	for i := range e.ranks {
		r := &e.ranks[i]
		all += int(r.next)
		for seq := r.first; seq < r.next; seq++ {
			if p := r.partAt(seq); p.held != nil || p.launch != nil {
				left++
			}
		}
	}
	if float64(left) < little*float64(all) {
		e.leaveOut()
		return
	}
	next := make([]uint32, len(e.ranks)) // by rank: all parts before it are analyzed, or nothing waits for them
	for {
		var earliest *part
		for i := range e.ranks {
			r := &e.ranks[i]
			next[i] = max(next[i], r.first)
			for next[i] < r.next && (r.partAt(next[i]).known || r.partAt(next[i]).behind == nil) {
				next[i]++
			}
			if p := r.partAt(next[i]); p != nil && (earliest == nil || p.ended < earliest.ended) {
				earliest = p
			}
		}
		if earliest == nil {
			return
		}
		e.giveUp(earliest)
		e.goOn()
	}
}

// leaveOut counts the waits in operations that are still held back as of unknown cause.
func (e *Engine) leaveOut() {
	for i := range e.ranks {
		r := &e.ranks[i]
		for seq := r.first; seq < r.next; seq++ {
			switch p := r.partAt(seq); {
			case p.held != nil && !p.held.givenUp:
				e.leaveWaitsUnknown(p.held)
			case p.launch != nil:
				e.leaveLaunchUnknown(p.launch)
			}
		}
	}
}

// giveUp does not compare the operation of a part.
func (e *Engine) giveUp(p *part) {
	switch h, l := p.held, p.launch; {
	case h != nil:
		e.leaveWaitsUnknown(h)
		for i := range h.members {
			m := &h.members[i]
			e.addUncompared(&m.Local, m.Begin, m.End)
		}
	case l != nil:
		e.leaveLaunchUnknown(l)
		e.addUncompared(&l.Local, l.Begin, l.End)
	default: // its operation was never added
		p.known = true
		e.release(p)
	}
}

// leaveWaitsUnknown counts the waits in a collective that is not compared.
func (e *Engine) leaveWaitsUnknown(h *held) {
	h.givenUp = true
	e.came = e.came[:0]
	for i := range h.members {
		e.came = append(e.came, h.members[i].Arrival)
	}
	late, ok := lateness.Compare(h.op.Kind, e.came, h.op.Unstated)
	switch startUp := e.begun.AddCollective(h.op.Comm, h.op.Ordinal); {
	case !ok || h.members[0].Outside:
	case startUp:
		e.ledger.startUp += float64(late.Caused)
	default:
		e.addUnknown(float64(late.Caused))
	}
}

// leaveLaunchUnknown counts the wait in a launch of messages that is not compared.
func (e *Engine) leaveLaunchUnknown(l *launch) {
	l.left = true
	wait := 0.0
	for _, o := range l.others {
		if l.waitsFor(o) {
			wait = max(wait, float64(o.There-l.Begin))
		}
	}
	if !l.Outside {
		e.addUnknown(wait)
	}
}

// addUnknown adds waiting whose cause is not known.
func (e *Engine) addUnknown(ns float64) {
	e.ledger.waited += ns
	e.ledger.costs[e.causes.unknown()] += ns
}

// AddUncompared adds a part whose operation is not compared with those of other ranks.
func (e *Engine) AddUncompared(l *Local, begin, end otf2.Timestamp) {
	if l.Rank < 0 {
		return
	}
	e.addUncompared(l, begin, end)
	e.goOn()
}

func (e *Engine) addUncompared(l *Local, begin, end otf2.Timestamp) {
	if l.Outside {
		e.swap()
		defer e.swap()
	}
	if b := &e.ledger.bursts[l.Rank]; b.first > 0 && l.Before <= b.until { // it shows nothing
		b.until = max(b.until, l.Seq)
	}
	var s state
	e.arrive(&s, l, begin, series{})
	m := Member{Arrival: lateness.Arrival{Begin: begin, End: end}, There: begin, Local: *l, Work: e.work(l, &s)}
	for _, f := range e.followers {
		f.Alone(&m)
	}
	s.transfer += float64(end - min(begin, end))
	e.leave(l, &s)
}

// arrive sets a member's state at the begin of an operation.
func (e *Engine) arrive(s *state, l *Local, begin otf2.Timestamp, of series) {
	if p := e.partBefore(l); p != nil {
		*s = p.left
	} else {
		*s = state{}
	}
	own := l.own(begin)
	for k := range own {
		s.own[k] += own[k]
	}
	s.turned += e.sharing.turn(l.Rank, own[GPU]+own[Own])
	if !l.Called {
		s.gpu = computing{}
		return
	}
	t := e.ranks[l.Rank].times(of)
	e.countWorkDuringWait(l, s, t)
	e.computedBeside(l, begin, s, of, t)
}

// worked returns how long the rank worked by itself, by kinds: between operations, and on its host or GPU while it
// waited in one. Time that the turns of others on its GPU may explain is left out.
func (s *state) worked() (own [ownKinds]float64) {
	own = s.own
	own[GPU] -= s.turned
	if own[GPU] < 0 {
		own[Own], own[GPU] = own[Own]+own[GPU], 0
	}
	return own
}

// sumOwn returns how long the rank worked by itself, of all kinds.
func (s *state) sumOwn() (ns float64) {
	for _, own := range s.own {
		ns += own
	}
	return ns
}

// leave sets a member's state at the end of an operation.
func (e *Engine) leave(l *Local, s *state) {
	p := e.ranks[l.Rank].partAt(l.Seq)
	if p == nil || p.known {
		return
	}
	p.known, p.left, p.launch, p.held = true, *s, nil, nil
	if !l.Outside || e.aside.own[l.Rank] == 0 { // later parts that are not selected do not matter
		own := s.worked()
		if worked := sum(own[:]); worked > e.ledger.own[l.Rank] {
			e.ledger.own[l.Rank], e.ledger.ownBy[l.Rank] = worked, own
		}
		if before := e.partBefore(l); before != nil && !l.Outside {
			for k, ns := range before.left.worked() {
				own[k] -= ns
			}
			e.ledger.longest[l.Rank].add(l.Before, own)
		}
	}
	e.release(p)
}

// comm returns the state of a communicator.
func (e *Engine) comm(ref otf2.CommRef, members int) *comm {
	c := keyed.EntryMade(e.comms, ref, func() *comm {
		return &comm{members: make([]meeting, members), commLedger: newCommLedger(members)}
	})
	return c
}
