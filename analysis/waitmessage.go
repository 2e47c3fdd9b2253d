// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// messageEnd is one end of a message whose other end has not come yet.
type messageEnd struct {
	send   bool
	source facts.Source
	begin  otf2.Timestamp
	plan   *messagePlan

	rank, peer int // in the communicator
	ordinal    uint64
}

type messageEndKey struct {
	comm     otf2.CommRef
	src, dst int
	ordinal  uint64
	send     bool
}

// messagePlan is the messages of one launch, which have one time. What it waited is the longest of their waits.
type messagePlan struct {
	part
	location otf2.LocationRef
	number   uint64
	comm     *facts.Communicator
	function string
	source   facts.Source
	own      uint64 // uncertainty of its own begin
	ownKnown bool
	silent   bool // its time has been counted with a collective
	open     int  // messages whose other end has not come
	messages int
	compared bool
	sealed   bool // no more messages will come
	kind     facts.WaitKind
	culprit  int
	at       otf2.Timestamp
	ordinal  uint64 // of the message that waited longest, with peer
	peer     int
}

// groupedMessages is the operation of launches with several messages.
const groupedMessages = "Send and Recv"

// messageTable remembers ends of messages. Of those whose other end never comes it forgets the oldest.
type messageTable struct{ young, old map[messageEndKey]messageEnd }

const maxYoungMessages = 1 << 18

// message takes one end of a message.
func (w *waitCounter) message(op *operation) {
	p := w.plans[op.Location]
	if p == nil || op.Launch == 0 || p.number != op.Launch {
		w.seal(p)
		p = &messagePlan{
			part: part{
				rank: w.of[op.Location], member: op.rank, place: placeOf(op), phase: op.phase, begin: op.Begin, time: op.Duration(),
			},
			location: op.Location, number: op.Launch, comm: op.comm, function: op.Function, source: op.Source,
			own: op.Uncertainty, ownKnown: op.Stated, silent: op.Follows, kind: waitMessages, culprit: -1,
		}
		w.plans[op.Location] = p
	}
	if p.messages++; p.messages > 1 {
		p.function, p.place.Grouped = groupedMessages, true
	}
	if op.Peer == op.rank {
		return // a copy on the GPU
	}
	p.open++
	key := messageEndKey{comm: op.comm.Ref, src: op.rank, dst: op.Peer, ordinal: op.Ordinal, send: true}
	if op.Function != "Send" {
		key.src, key.dst, key.send = op.Peer, op.rank, false
	}
	end := messageEnd{send: key.send, source: op.Source, begin: op.Begin, plan: p, rank: op.rank, peer: op.Peer, ordinal: op.Ordinal}
	other := key
	other.send = !key.send
	if o, ok := w.messages.take(other); ok {
		w.match(&end, &o)
		return
	}
	w.forget(w.messages.put(key, end))
}

// match compares the two ends of a message.
func (w *waitCounter) match(a, b *messageEnd) {
	if a.begin > b.begin {
		a, b = b, a
	}
	if w.paired != nil {
		w.paired(a, b)
	}
	if w.unknown || a.source == b.source && a.source.HasPlace() {
		w.out.Messages++
		w.out.Times[timesName(a.source)]++
		kind := facts.WaitLateReceiver
		if b.send {
			kind = facts.WaitLateSender
		}
		b.plan.compared = true
		a.plan.waited(kind, a, b)
	} else {
		w.out.NotCompared.Messages++
	}
	for _, p := range [...]*messagePlan{a.plan, b.plan} {
		p.open--
		w.settle(p)
	}
}

// waited notes that a message of the plan waited for its other end.
func (p *messagePlan) waited(kind facts.WaitKind, own, other *messageEnd) {
	p.compared = true
	wait := min(uint64(other.begin-p.begin), p.time)
	if wait <= p.waits {
		return
	}
	o := other.plan
	p.ordinal, p.peer = own.ordinal, own.peer
	p.waits, p.kind, p.culprit, p.at = wait, kind, o.rank, other.begin
	p.uncertainty, p.stated = p.own+o.own, p.ownKnown && o.ownKnown
}

// seal tells that all messages of a plan have been seen.
func (w *waitCounter) seal(p *messagePlan) {
	if p != nil && !p.sealed {
		p.sealed = true
		w.settle(p)
	}
}

// settle counts a plan of which nothing is to come.
func (w *waitCounter) settle(p *messagePlan) {
	if !p.sealed || p.open > 0 || !p.compared || p.silent {
		return
	}
	for _, g := range [...]*WaitGroup{at(w.comms, p.comm.Ref), at(w.operations, p.function), &w.kinds[p.kind]} {
		g.add(&p.part)
	}
	w.rows[p.rank].add(&p.part)
	w.inPhases(&p.part)
	if p.waits > 0 {
		if w.see != nil {
			w.see(p.wait())
		}
		w.rows[p.culprit].blame(p.waits, p.at)
	}
}

func (t *messageTable) take(k messageEndKey) (messageEnd, bool) {
	for _, m := range []map[messageEndKey]messageEnd{t.young, t.old} {
		if e, ok := m[k]; ok {
			delete(m, k)
			return e, true
		}
	}
	return messageEnd{}, false
}

// put returns those that had to be forgotten.
func (t *messageTable) put(k messageEndKey, e messageEnd) (forgotten map[messageEndKey]messageEnd) {
	if t.young == nil || len(t.young) >= maxYoungMessages {
		forgotten = t.old
		t.young, t.old = make(map[messageEndKey]messageEnd), t.young
	}
	t.young[k] = e
	return forgotten
}

func (w *waitCounter) forget(all map[messageEndKey]messageEnd) {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b messageEndKey) int {
		return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst), cmp.Compare(a.ordinal, b.ordinal))
	})
	for _, k := range keys {
		e := all[k]
		w.out.NotCompared.Unmatched++
		e.plan.open--
		w.settle(e.plan)
	}
}

// endMessages settles what is left when the data has ended.
func (w *waitCounter) endMessages() {
	for _, l := range slices.Sorted(maps.Keys(w.plans)) {
		p := w.plans[l]
		if !p.sealed {
			p.sealed = true
			if p.open == 0 {
				w.settle(p)
			}
		}
	}
	w.forget(w.messages.old)
	w.forget(w.messages.young)
	w.messages = messageTable{}
	clear(w.plans)
}
