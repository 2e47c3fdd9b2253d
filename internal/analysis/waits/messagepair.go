// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// MessageEnd is one end of a message whose other end has not come yet.
type MessageEnd struct {
	Send   bool
	source facts.Source
	Begin  otf2.Timestamp // when this end was ready
	since  otf2.Timestamp // when its rank was ready for this end alone, see facts.Operation
	Plan   *messagePlan

	Rank, peer int // in the communicator
	Ordinal    uint64
	size       uint64
	outside    bool // it is not selected

	// carried is the network traffic: for a send that of the link, and for the first message of a launch what its GPU
	// held up.
	carried facts.Carried
}

type messageEndKey struct {
	comm     otf2.CommRef
	src, dst int
	ordinal  uint64
	send     bool
}

// messagePlan has the messages of one launch, which share one time. Its wait is the longest of their waits.
type messagePlan struct {
	part
	local    causes.Local
	Location otf2.LocationRef
	number   uint64
	Comm     *membership.Communicator
	function string
	source   facts.Source
	own      uint64 // uncertainty of its own begin
	ownKnown bool
	silent   bool // its time has been counted with a collective
	open     int  // messages whose other end has not come
	messages int
	compared bool
	sealed   bool // no more messages follow
	kind     lateness.WaitKind
	culprit  int
	awaited  analysis.Occasion // phase in which the culprit called
	at       otf2.Timestamp
	ordinal  uint64 // of the message to peer that waited longest
	peer     int
	since    otf2.Timestamp // begin of this end
	held     []heldUp       // in its messages
	unjudged int            // messages whose transfers have not been compared with others
	settled  bool           // its waits are known
}

// Outside reports whether the message is not selected.
func (e *MessageEnd) Outside() bool { return e.outside }

// messageTable keeps ends of messages. It forgets the oldest ends whose other end never comes.
type messageTable struct{ young, old map[messageEndKey]MessageEnd }

const maxYoungMessages = 1 << 18

// Message adds one end of a message.
func (w *Counter) Message(op *analysis.Operation) {
	p := w.plans[op.Location]
	if p == nil || op.Launch == 0 || p.number != op.Launch {
		w.markComplete(p)
		p = &messagePlan{
			part: part{
				Rank: w.Of[op.Location], member: op.Rank, place: placeOf(op), during: op.During, Begin: op.Since,
				Time: uint64(op.End - op.Since),
			},
			local: op.Local, Location: op.Location, number: op.Launch, Comm: op.Communicator,
			function: named(op.Communicator, op.Function), source: op.Source,
			own: op.Uncertainty, ownKnown: op.Stated, silent: op.Follows, kind: waitMessages, culprit: -1,
		}
		w.plans[op.Location] = p
	}
	p.local.Outside = p.local.Outside && op.Local.Outside // a launch is selected if any of its messages is
	if p.messages++; p.messages > 1 {
		p.function, p.place.Grouped = named(op.Communicator, facts.SendAndRecv), true
	}
	if op.Peer == op.Rank {
		return // a copy on the GPU
	}
	p.open++
	key := messageEndKey{comm: op.Communicator.Ref, src: op.Rank, dst: op.Peer, ordinal: op.Ordinal, send: true}
	if op.Function != "Send" {
		key.src, key.dst, key.send = op.Peer, op.Rank, false
	}
	end := MessageEnd{Send: key.send, source: op.Source, Begin: op.Begin, since: op.Since, Plan: p, Rank: op.Rank,
		peer: op.Peer, Ordinal: op.Ordinal, size: op.Size, outside: op.Local.Outside,
		carried: facts.Carried{Link: op.Carried.Link}}
	if p.messages == 1 {
		end.carried = op.Carried
	}
	other := key
	other.send = !key.send
	if o, ok := w.messages.takeEnd(other); ok {
		w.match(&end, &o)
		return
	}
	w.forgetEnds(w.messages.addEnd(key, end))
}

// match compares the two ends of a message.
func (w *Counter) match(a, b *MessageEnd) {
	if b.since < a.Begin {
		a, b = b, a
	}
	if w.Paired != nil {
		w.Paired(a, b)
	}
	compared := w.unknown || a.source == b.source && a.source.HasPlace()
	if w.Met != nil {
		w.Met(&a.Plan.local, &b.Plan.local, compared)
	}
	if compared {
		if !a.outside {
			w.out.Messages++
			w.out.Times[timesName(a.source)]++
		}
		if !a.outside && a.source != facts.SourceCall {
			w.slow.message(a, b)
		}
		kind := lateness.WaitLateReceiver
		if b.Send {
			kind = lateness.WaitLateSender
		}
		b.Plan.compared = true
		a.Plan.waited(kind, a, b)
	} else if !a.outside {
		w.out.NotCompared.Messages++
		w.enqueuedMessage(a, b)
	}
	for _, p := range [...]*messagePlan{a.Plan, b.Plan} {
		p.open--
		w.countPlan(p)
	}
}

// waited adds the wait of one of the plan's messages for its other end.
func (p *messagePlan) waited(kind lateness.WaitKind, own, other *MessageEnd) {
	p.compared = true
	if other.Begin <= p.Begin {
		return
	}
	wait := uint64(other.Begin - p.Begin)
	if wait > p.Time {
		if own.source == facts.SourceCall {
			return // the data was buffered, so nobody waited
		}
		wait = p.Time
	}
	if wait <= p.Waits {
		return
	}
	o := other.Plan
	p.ordinal, p.peer, p.since = own.Ordinal, own.peer, own.Begin
	p.Waits, p.kind, p.culprit, p.at, p.awaited = wait, kind, o.Rank, other.Begin, o.during
	p.uncertainty, p.stated = p.own+o.own, p.ownKnown && o.ownKnown
}

// markComplete marks a plan whose messages have all been seen.
func (w *Counter) markComplete(p *messagePlan) {
	if p != nil && !p.sealed {
		p.sealed = true
		w.countPlan(p)
	}
}

// countPlan counts a plan that is complete.
func (w *Counter) countPlan(p *messagePlan) {
	if !p.sealed || p.open > 0 || !p.compared || p.silent || p.local.Outside {
		return
	}
	for _, g := range w.groups(p.Comm, p.function, p.kind) {
		g.add(&p.part)
	}
	w.rows[p.Rank].add(&p.part)
	w.inPhases(&p.part)
	if p.source != facts.SourceCall {
		w.slow.countHeldUp(p)
	}
	if p.Waits > 0 {
		w.Over.Add(p.Begin, p.Waits)
		w.rememberLaunch(p)
		if w.See != nil {
			w.See(p.wait())
		}
		w.rows[p.culprit].blame(p.Waits, p.at)
	}
}

func (t *messageTable) takeEnd(k messageEndKey) (MessageEnd, bool) {
	for _, m := range []map[messageEndKey]MessageEnd{t.young, t.old} {
		if e, ok := m[k]; ok {
			delete(m, k)
			return e, true
		}
	}
	return MessageEnd{}, false
}

// addEnd returns the ends that had to be forgotten.
func (t *messageTable) addEnd(k messageEndKey, e MessageEnd) (forgotten map[messageEndKey]MessageEnd) {
	if t.young == nil || len(t.young) >= maxYoungMessages {
		forgotten = t.old
		t.young, t.old = make(map[messageEndKey]MessageEnd), t.young
	}
	t.young[k] = e
	return forgotten
}

func (w *Counter) forgetEnds(all map[messageEndKey]MessageEnd) {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b messageEndKey) int {
		return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst),
			cmp.Compare(a.ordinal, b.ordinal))
	})
	for _, k := range keys {
		e := all[k]
		if !e.outside {
			w.out.NotCompared.Unmatched++
		}
		e.Plan.open--
		if w.Lost != nil {
			w.Lost(&e.Plan.local)
		}
		w.countPlan(e.Plan)
	}
}

// endMessages settles everything that is left when the data has ended.
func (w *Counter) endMessages() {
	for _, l := range slices.Sorted(maps.Keys(w.plans)) {
		p := w.plans[l]
		if !p.sealed {
			p.sealed = true
			if p.open == 0 {
				w.countPlan(p)
			}
		}
	}
	w.forgetEnds(w.messages.old)
	w.forgetEnds(w.messages.young)
	w.messages = messageTable{}
	clear(w.plans)
}
