// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// maxPendingParts limits the parts kept for collectives that some members have not ended. Beyond it, the oldest
// collectives of the communicator that got the latest part are abandoned.
const maxPendingParts = 1 << 21

// Assembly brings together the members' parts of operations. It calls finish with the parts of an operation that all
// members have ended, and abandon with those of one that some members have not ended.
type Assembly struct {
	finish, abandon func(members []Operation)
	Most            int // limit on pending parts

	sequences map[sequenceKey]*partSequence
	last      *partSequence // sequence of the last part
	order     map[otf2.CommRef]*partOrder
	Parts     int // number of pending parts
	// free has unused room by the magnitude of the number of members, so that large room is not used for small
	// operations.
	free  [33][]*pendingParts
	empty []map[uint64]*pendingParts // for sequences without pending operations
}

// PartKey identifies an operation of an archive. Sequence is the function of a collective, or Operation.Sequence of a
// message.
type PartKey struct {
	Comm     otf2.CommRef
	Sequence string
	Ordinal  uint64
}

type sequenceKey struct {
	comm otf2.CommRef
	name string
}

// partSequence has the pending operations of a sequence, by ordinal.
type partSequence struct {
	key     sequenceKey
	order   *partOrder
	pending map[uint64]*pendingParts // nil: none
}

// pendingParts has the parts of an operation that some members have ended.
type pendingParts struct {
	members      []Operation
	sequence     *partSequence
	ordinal      uint64
	magnitude    int           // bit length of the number of members
	older, newer *pendingParts // neighbors among the communicator's pending operations
}

// partOrder lists the pending operations of a communicator in the order of their first parts.
type partOrder struct{ oldest, newest *pendingParts }

// NewAssembly returns an assembly without any parts. The arguments of finish and abandon are valid until these return.
func NewAssembly(finish, abandon func([]Operation)) *Assembly {
	return &Assembly{
		finish: finish, abandon: abandon, Most: maxPendingParts,
		sequences: make(map[sequenceKey]*partSequence), order: make(map[otf2.CommRef]*partOrder),
	}
}

// MembersWithData counts the members of each communicator whose locations have events.
func MembersWithData(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator) map[otf2.CommRef]int {
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

// Add adds one member's part of an operation that expected members have.
func (as *Assembly) Add(key PartKey, op *Operation, expected int) {
	q := as.sequence(sequenceKey{key.Comm, key.Sequence})
	p := q.pending[key.Ordinal]
	if p == nil {
		p = as.begin(q, key.Ordinal, bits.Len32(uint32(expected)))
	}
	p.members = append(p.members, *op)
	as.Parts++
	if len(p.members) >= expected {
		as.end(p, as.finish)
		return
	}
	for as.Parts > as.Most && q.order.oldest != q.order.newest {
		as.end(q.order.oldest, as.abandon)
	}
}

// sequence returns the pending operations of a sequence. Consecutive parts often belong to the same sequence.
func (as *Assembly) sequence(key sequenceKey) *partSequence {
	if as.last != nil && as.last.key == key {
		return as.last
	}
	q := keyed.EntryMade(as.sequences, key, func() *partSequence {
		return &partSequence{key: key, order: keyed.Entry(as.order, key.comm)}
	})
	as.last = q
	return q
}

// begin adds a pending operation.
func (as *Assembly) begin(q *partSequence, ordinal uint64, magnitude int) *pendingParts {
	var p *pendingParts
	free := &as.free[magnitude]
	if n := len(*free); n > 0 {
		p, *free = (*free)[n-1], (*free)[:n-1]
	} else {
		p = new(pendingParts)
	}
	*p = pendingParts{members: p.members[:0], sequence: q, ordinal: ordinal, magnitude: magnitude,
		older: q.order.newest}
	if p.older == nil {
		q.order.oldest = p
	} else {
		p.older.newer = p
	}
	q.order.newest = p
	if q.pending == nil {
		q.pending = as.emptyMap()
	}
	q.pending[ordinal] = p
	return p
}

// emptyMap returns a map for the pending operations of a sequence. Maps are reused, because of many communicators only
// few have pending operations at any time.
func (as *Assembly) emptyMap() map[uint64]*pendingParts {
	n := len(as.empty)
	if n == 0 {
		return make(map[uint64]*pendingParts)
	}
	m := as.empty[n-1]
	as.empty = as.empty[:n-1]
	return m
}

// end removes a pending operation and passes it to a function.
func (as *Assembly) end(p *pendingParts, to func([]Operation)) {
	o := p.sequence.order
	if p.older == nil {
		o.oldest = p.newer
	} else {
		p.older.newer = p.newer
	}
	if p.newer == nil {
		o.newest = p.older
	} else {
		p.newer.older = p.older
	}
	q := p.sequence
	delete(q.pending, p.ordinal)
	if len(q.pending) == 0 {
		as.empty, q.pending = append(as.empty, q.pending), nil
	}
	as.Parts -= len(p.members)
	to(p.members)
	as.free[p.magnitude] = append(as.free[p.magnitude], p)
}

// AbandonBefore abandons the operations whose first part ended before a time.
func (as *Assembly) AbandonBefore(t otf2.Timestamp) {
	as.abandonIf(func(p *pendingParts) bool { return p.members[0].End < t })
}

// End abandons everything that is pending.
func (as *Assembly) End() { as.abandonIf(func(*pendingParts) bool { return true }) }

func (as *Assembly) abandonIf(is func(*pendingParts) bool) {
	for _, ref := range slices.Sorted(maps.Keys(as.order)) {
		for p := as.order[ref].oldest; p != nil; {
			next := p.newer
			if is(p) {
				as.end(p, as.abandon)
			}
			p = next
		}
	}
}
