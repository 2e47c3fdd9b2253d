// SPDX-License-Identifier: Apache-2.0

package criticalpath

import "github.com/nccl-otf2/nccl-otf2/otf2"

// departure describes how a rank left an operation: on which path.
type departure struct {
	seq  uint32 // causes.Local.Seq; 0: none
	node int32  // the path up to the operation's last arrival
	what int32  // the operation, from there to end
	rank int32  // the rank of what; nobody for operations
	end  otf2.Timestamp
}

// rank has the departures of a rank of the world from its last operations.
type rank struct {
	left    []departure    // by seq; the size is a power of two
	covered otf2.Timestamp // its time is in totals up to here
}

const (
	leastParts = 16
	mostLeft   = 64 // causes.Lane looks back as far
)

// find returns the departure with a seq; ok is false if it is not kept.
func (r *rank) find(seq uint32) (p *departure, ok bool) {
	if seq == 0 || len(r.left) == 0 {
		return nil, false
	}
	if p = &r.left[seq&uint32(len(r.left)-1)]; p.seq == seq {
		return p, true
	}
	if len(r.left) < mostLeft && p.seq > seq {
		r.grow(2 * len(r.left))
	}
	return nil, false
}

func (r *rank) grow(n int) {
	old := r.left
	r.left = make([]departure, n)
	for i := range r.left {
		r.left[i].node = noNode
	}
	for i := range old {
		if old[i].seq != 0 {
			r.left[old[i].seq&uint32(n-1)] = old[i]
		}
	}
}

// storeDeparture stores a departure in place of an older one.
func (p *Path) storeDeparture(at int32, x departure) {
	r := &p.ranks[at]
	if r.left == nil {
		r.grow(leastParts)
	}
	old := &r.left[x.seq&uint32(len(r.left)-1)]
	p.tree.addUser(x.node)
	if old.seq >= x.seq {
		p.tree.drop(x.node)
		return
	}
	before := *old
	*old = x
	if before.seq != 0 {
		p.tree.drop(before.node)
	}
}

// latest returns the rank's last departure; nil if it had no operation.
func (r *rank) latest() (last *departure) {
	for i := range r.left {
		if x := &r.left[i]; x.seq != 0 && (last == nil || x.end > last.end) {
			last = x
		}
	}
	return last
}
