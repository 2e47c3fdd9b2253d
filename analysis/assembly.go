// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// maxPendingParts bounds what is kept of collectives that some members have not ended. When there are more, the
// oldest of the communicator that has just got one are given up as unfinished.
const maxPendingParts = 1 << 21

// assembly brings together the parts of operations that several members have. finish is called with those of an
// operation that all have ended, abandon with those of one that some have not.
type assembly struct {
	finish, abandon func(members []operation)
	most            int // parts that are kept

	pending map[partKey]*pendingParts
	order   map[otf2.CommRef]*partOrder
	parts   int // in pending
	free    []*pendingParts
}

// partKey names an operation of an archive. The sequence is a function of collectives, or what pairName says.
type partKey struct {
	comm     otf2.CommRef
	sequence string
	ordinal  uint64
}

// pendingParts is an operation that some members have ended.
type pendingParts struct{ members []operation }

// partOrder lists the pending operations of a communicator in the order in which they were first heard of;
// those that are not pending any more are skipped.
type partOrder struct {
	keys []partKey
	next int
}

func newAssembly(finish, abandon func([]operation)) *assembly {
	return &assembly{
		finish: finish, abandon: abandon, most: maxPendingParts,
		pending: make(map[partKey]*pendingParts), order: make(map[otf2.CommRef]*partOrder),
	}
}

// membersWithData counts the members of each communicator whose locations have events.
func membersWithData(defs *otf2.Definitions, comms map[otf2.CommRef]*facts.Communicator) map[otf2.CommRef]int {
	n := make(map[otf2.CommRef]int, len(comms))
	for ref, c := range comms {
		for _, l := range c.Members {
			if d := defs.Location(l); d != nil && d.Events > 0 {
				n[ref]++
			}
		}
	}
	return n
}

// add takes the part of one of expected members.
func (as *assembly) add(key partKey, op *operation, expected int) {
	p := as.pending[key]
	if p == nil {
		if n := len(as.free); n > 0 {
			p, as.free = as.free[n-1], as.free[:n-1]
		} else {
			p = new(pendingParts)
		}
		p.members = p.members[:0]
		as.pending[key] = p
		q := as.order[key.comm]
		if q == nil {
			q = new(partOrder)
			as.order[key.comm] = q
		}
		q.push(key)
	}
	p.members = append(p.members, *op)
	as.parts++
	if len(p.members) >= expected {
		as.take(key, p)
		as.finish(p.members)
		as.free = append(as.free, p)
		return
	}
	for q := as.order[key.comm]; as.parts > as.most && q.next < len(q.keys)-1; q.next++ {
		if old := as.pending[q.keys[q.next]]; old != nil {
			as.take(q.keys[q.next], old)
			as.abandon(old.members)
		}
	}
}

// take makes an operation pending no more.
func (as *assembly) take(key partKey, p *pendingParts) {
	delete(as.pending, key)
	as.parts -= len(p.members)
	q := as.order[key.comm]
	for q.next < len(q.keys) && as.pending[q.keys[q.next]] == nil {
		q.next++
	}
}

// abandonBefore abandons the operations that somebody ended before a time.
func (as *assembly) abandonBefore(t otf2.Timestamp) {
	for key, p := range as.pending {
		if p.members[0].End < t {
			as.take(key, p)
			as.abandon(p.members)
			as.free = append(as.free, p)
		}
	}
}

// end abandons what is pending.
func (as *assembly) end() {
	for _, p := range as.pending {
		as.abandon(p.members)
	}
	clear(as.pending)
	clear(as.order)
	as.parts = 0
}

func (q *partOrder) push(k partKey) {
	if q.next > 1024 && q.next > len(q.keys)/2 {
		q.keys = q.keys[:copy(q.keys, q.keys[q.next:])]
		q.next = 0
	}
	q.keys = append(q.keys, k)
}
