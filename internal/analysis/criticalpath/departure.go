// SPDX-License-Identifier: Apache-2.0

package criticalpath

import "github.com/nccl-otf2/nccl-otf2/otf2"

// departure is how a rank left an operation: by which path, and how much earlier it would have been for each candidate.
type departure struct {
	seq  uint32 // causes.Local.Seq; 0: none
	node int32  // the path until the operation's last arrival
	what int32  // the operation, from there to end
	rank int32  // of what; nobody of operations
	end  otf2.Timestamp
	gain *gains
	own  uint64 // ns that the rank was not in operations, in all
	wait uint64 // ns that it waited in the operation
}

// rank is how a rank of the world left its last operations.
type rank struct {
	left    []departure    // by seq; as many as a power of two
	covered otf2.Timestamp // of whose time is in totals
}

const (
	leastParts = 16
	mostLeft   = 64 // as far back causes.Lane looks
)

// find gives how a rank left the operation before; ok is false if it is not there.
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

// put keeps a departure, in place of one that is older.
func (p *Path) put(at int32, x departure) {
	r := &p.ranks[at]
	if r.left == nil {
		r.grow(leastParts)
	}
	old := &r.left[x.seq&uint32(len(r.left)-1)]
	p.tree.take(x.node)
	if old.seq >= x.seq {
		p.tree.drop(x.node)
		return
	}
	x.gain.take()
	before := *old
	*old = x
	if before.seq != 0 {
		p.tree.drop(before.node)
		p.release(before.gain)
	}
}

// latest is how a rank left the last of its operations; nil: it had none.
func (r *rank) latest() (last *departure) {
	for i := range r.left {
		if x := &r.left[i]; x.seq != 0 && (last == nil || x.end > last.end) {
			last = x
		}
	}
	return last
}
