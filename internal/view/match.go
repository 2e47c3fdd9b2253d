// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"sort"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
)

// Reason is why operations are not in the view.
type Reason string

const (
	ReasonDiffers   Reason = "recorded_differently" // according to the archive, the members recorded them differently
	ReasonMissing   Reason = "not_on_every_member"  // some member with data lacks the operation
	ReasonOrder     Reason = "order_differs"        // a member has them in another order
	ReasonRoot      Reason = "root_differs"         // the members name different roots, or one without data
	ReasonUnmatched Reason = "message_unmatched"    // only one end of the message was recorded
	ReasonUnplaced  Reason = "not_placed"           // it has no end, or a peer outside the communicator
	ReasonCycle     Reason = "order_has_cycle"      // no order of the communicators' operations suits all ranks
	ReasonUntimed   Reason = "no_comparable_times"  // the ends have times of different kinds
	// messages of a launch whose time is that of its first collective
	ReasonFused Reason = "launched_with_collectives"
)

// match keeps the operations that every member of a communicator has, in the order that all have, and pairs the two
// ends of messages.
func (j *job) match() {
	for _, c := range j.comms {
		for _, r := range c.present {
			j.count.countDropped(ReasonUnplaced, r.unplaced)
		}
		if len(c.present) < 2 {
			for _, r := range c.present {
				j.count.countDropped(ReasonMissing, uint64(len(r.parts)))
				r.parts = nil
			}
			continue
		}
		j.dropDiffering(c)
		if !c.aligned() {
			j.align(c)
		}
		j.dropRootMismatches(c)
		j.matchMessages(c)
	}
}

// dropDiffering drops what the members recorded differently according to the archive. A collective counts once, a
// message once per end.
func (j *job) dropDiffering(c *comm) {
	if len(j.stretches) == 0 {
		return
	}
	distinct := make(map[opKey]bool)
	for _, r := range c.present {
		for i := range r.parts {
			p := &r.parts[i]
			if p.isMessage() {
				src, dst := r.rank, int(p.peer)
				if p.fn == fnRecv {
					src, dst = dst, src
				}
				if j.differs(c, facts.PairName(src, dst), p.ordinal) {
					p.flags |= flagDropped
					j.count.countDropped(ReasonDiffers, 1)
				}
			} else if j.differs(c, p.function().Name, p.ordinal) {
				p.flags |= flagDropped
				distinct[p.key()] = true
			}
		}
	}
	j.count.countDropped(ReasonDiffers, uint64(len(distinct)))
}

// opKey identifies a collective on its communicator.
type opKey struct {
	fn      uint8
	ordinal uint64
}

func (p *part) key() opKey { return opKey{p.fn, p.ordinal} }

// nextCollective returns the index of the first collective at or after i that is in the view.
func (r *row) nextCollective(i int) int {
	for i < len(r.parts) && (r.parts[i].isMessage() || r.parts[i].is(flagDropped)) {
		i++
	}
	return i
}

// aligned reports whether all members have the same collectives in the same order.
func (c *comm) aligned() bool {
	first := c.present[0]
	for _, r := range c.present[1:] {
		a, b := first.nextCollective(0), r.nextCollective(0)
		for ; a < len(first.parts) && b < len(r.parts); a, b = first.nextCollective(a+1), r.nextCollective(b+1) {
			if first.parts[a].key() != r.parts[b].key() {
				return false
			}
		}
		if a < len(first.parts) || b < len(r.parts) {
			return false
		}
	}
	return true
}

// align drops the collectives that some member lacks, then those that a member has in another order than the members
// before it. Per member it drops as few as possible: all but a longest increasing subsequence.
func (j *job) align(c *comm) {
	at := make(map[opKey]int) // position in order of first appearance
	var have []int            // number of members that have it
	var last []int            // the last of these members
	for m, r := range c.present {
		for i := r.nextCollective(0); i < len(r.parts); i = r.nextCollective(i + 1) {
			k, ok := at[r.parts[i].key()]
			switch {
			case !ok:
				at[r.parts[i].key()] = len(have)
				have, last = append(have, 1), append(last, m)
			case last[k] != m:
				have[k]++
				last[k] = m
			default: // the same number again
				r.parts[i].flags |= flagDropped
				j.count.countDropped(ReasonMissing, 1)
			}
		}
	}
	const gone = -1
	for k, n := range have {
		if n < len(c.present) {
			have[k] = gone
			j.count.countDropped(ReasonMissing, 1)
		}
	}
	for _, r := range c.present {
		var order []int
		for i := r.nextCollective(0); i < len(r.parts); i = r.nextCollective(i + 1) {
			if k := at[r.parts[i].key()]; have[k] != gone {
				order = append(order, k)
			}
		}
		keep := longestRise(order)
		for _, k := range order {
			if n := len(keep); n > 0 && keep[0] == k {
				keep = keep[1:]
			} else {
				have[k] = gone
				j.count.countDropped(ReasonOrder, 1)
			}
		}
	}
	for _, r := range c.present {
		for i := r.nextCollective(0); i < len(r.parts); i = r.nextCollective(i + 1) {
			if have[at[r.parts[i].key()]] == gone {
				r.parts[i].flags |= flagDropped
			}
		}
	}
}

// longestRise returns a longest increasing subsequence of distinct numbers (patience sorting).
func longestRise(of []int) []int {
	if slices.IsSorted(of) {
		return of
	}
	var tails []int // by length, the index of the smallest end of the subsequences found
	before := make([]int, len(of))
	for i, v := range of {
		n := sort.Search(len(tails), func(k int) bool { return of[tails[k]] >= v })
		before[i] = -1
		if n > 0 {
			before[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	run := make([]int, len(tails))
	for i, n := tails[len(tails)-1], len(run)-1; n >= 0; i, n = before[i], n-1 {
		run[n] = of[i]
	}
	return run
}

// eachCollective calls f with the members' parts of every collective of an aligned communicator.
func (c *comm) eachCollective(f func(parts []*part)) {
	next := make([]int, len(c.present))
	parts := make([]*part, len(c.present))
	for {
		for m, r := range c.present {
			i := r.nextCollective(next[m])
			if i == len(r.parts) {
				return
			}
			parts[m], next[m] = &r.parts[i], i+1
		}
		f(parts)
	}
}

// dropRootMismatches drops collectives whose members disagree on the root, or whose root left no data.
func (j *job) dropRootMismatches(c *comm) {
	c.eachCollective(func(parts []*part) {
		root := parts[0].peer
		agree := !parts[0].function().Rooted() || c.rank[root] >= 0
		for _, p := range parts {
			agree = agree && p.peer == root
		}
		if !agree {
			dropAll(parts)
			j.count.countDropped(ReasonRoot, 1)
		}
	})
}

func dropAll(parts []*part) {
	for _, p := range parts {
		p.flags |= flagDropped
	}
}

// matchMessages gives each end of a message the index of the other end, by pair and ordinal, and drops ends without
// another. Both sides of a pair then have its messages in one order, as MPI requires.
func (j *job) matchMessages(c *comm) {
	type pair struct{ src, dst int32 }
	type ends struct{ sends, receives []int }
	all := make(map[pair]*ends)
	for _, r := range c.present {
		for i := range r.parts {
			p := &r.parts[i]
			if !p.isMessage() || p.is(flagDropped) {
				continue
			}
			key := pair{int32(r.rank), p.peer}
			if p.fn == fnRecv {
				key = pair{p.peer, int32(r.rank)}
			}
			e := keyed.Entry(all, key)
			if p.fn == fnSend {
				e.sends = append(e.sends, i)
			} else {
				e.receives = append(e.receives, i)
			}
		}
	}
	for key, e := range all {
		j.matchPair(c.rows[key.src], e.sends, c.rows[key.dst], e.receives)
	}
}

// matchPair pairs the ends of two ranks' messages. A rank without data has no row and no ends.
func (j *job) matchPair(src *row, sends []int, dst *row, receives []int) {
	for len(sends) > 0 || len(receives) > 0 {
		switch {
		case len(receives) == 0 || len(sends) > 0 && src.parts[sends[0]].ordinal < dst.parts[receives[0]].ordinal:
			j.dropUnmatched(src, sends[0])
			sends = sends[1:]
		case len(sends) == 0 || src.parts[sends[0]].ordinal > dst.parts[receives[0]].ordinal:
			j.dropUnmatched(dst, receives[0])
			receives = receives[1:]
		default:
			src.parts[sends[0]].ordinal, dst.parts[receives[0]].ordinal = uint64(receives[0]), uint64(sends[0])
			sends, receives = sends[1:], receives[1:]
		}
	}
}

func (j *job) dropUnmatched(r *row, i int) {
	r.parts[i].flags |= flagDropped
	j.count.countDropped(ReasonUnmatched, 1)
}

// otherEnd returns the row and the index of the other end of a message in the view.
func (r *row) otherEnd(p *part) (*row, int) { return r.comm.rows[p.peer], int(p.ordinal) }
