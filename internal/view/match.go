// SPDX-License-Identifier: Apache-2.0

package view

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"slices"
	"sort"
)

// Reason says why operations are not in the view.
type Reason string

const (
	ReasonDiffers   Reason = "recorded_differently"      // the archive says that the members did not record them alike
	ReasonMissing   Reason = "not_on_every_member"       // some member with data has no such operation
	ReasonOrder     Reason = "order_differs"             // the members have them in another order than others
	ReasonRoot      Reason = "root_differs"              // the members name different roots, or one without data
	ReasonUnmatched Reason = "message_unmatched"         // a message of which only one end is there
	ReasonUnplaced  Reason = "not_placed"                // no end, or a peer that the communicator does not have
	ReasonCycle     Reason = "order_has_cycle"           // no order of the communicators' operations suits all ranks
	ReasonUntimed   Reason = "no_comparable_times"       // ends without times of one kind
	ReasonFused     Reason = "launched_with_collectives" // messages of a launch whose time is that of its first collective
)

// match keeps what every member of a communicator has, in the order that all have, and finds the two ends of
// messages.
func (j *job) match() {
	for _, c := range j.comms {
		for _, r := range c.present {
			j.count.drop(ReasonUnplaced, r.unplaced)
		}
		if len(c.present) < 2 {
			for _, r := range c.present {
				j.count.drop(ReasonMissing, uint64(len(r.parts)))
				r.parts = nil
			}
			continue
		}
		j.leaveOut(c)
		if !c.aligned() {
			j.align(c)
		}
		j.roots(c)
		j.messages(c)
	}
}

// leaveOut drops what the archive says the members did not record alike. Of a collective the first member's
// part is counted; of a message each end's.
func (j *job) leaveOut(c *comm) {
	if len(j.stretches) == 0 {
		return
	}
	distinct := make(map[opKey]bool)
	for _, r := range c.present {
		for i := range r.parts {
			p := &r.parts[i]
			if p.message() {
				src, dst := r.rank, int(p.peer)
				if p.fn == fnRecv {
					src, dst = dst, src
				}
				if j.differs(c, facts.PairName(src, dst), p.ordinal) {
					p.flags |= flagDropped
					j.count.drop(ReasonDiffers, 1)
				}
			} else if j.differs(c, p.function().Name, p.ordinal) {
				p.flags |= flagDropped
				distinct[p.key()] = true
			}
		}
	}
	j.count.drop(ReasonDiffers, uint64(len(distinct)))
}

// opKey names a collective on its communicator.
type opKey struct {
	fn      uint8
	ordinal uint64
}

func (p *part) key() opKey { return opKey{p.fn, p.ordinal} }

// nextCollective is the index of the first collective at or after i that is in the view.
func (r *row) nextCollective(i int) int {
	for i < len(r.parts) && (r.parts[i].message() || r.parts[i].is(flagDropped)) {
		i++
	}
	return i
}

// aligned tells whether all members have the same collectives in the same order.
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

// align drops the collectives that not every member has, then those that a member has in another order: of each
// member as few as possible (all but a longest run that is in the order of the members before it).
func (j *job) align(c *comm) {
	at := make(map[opKey]int) // position in the order in which they are seen first
	var have []int            // members that have it
	var last []int            // the last of them
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
			default: // a second one of that number
				r.parts[i].flags |= flagDropped
				j.count.drop(ReasonMissing, 1)
			}
		}
	}
	const gone = -1
	for k, n := range have {
		if n < len(c.present) {
			have[k] = gone
			j.count.drop(ReasonMissing, 1)
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
				j.count.drop(ReasonOrder, 1)
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

// longestRise is a longest ascending subsequence of distinct numbers (patience sorting).
func longestRise(of []int) []int {
	if slices.IsSorted(of) {
		return of
	}
	var tails []int // index of the smallest end of the runs of each length
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

// roots drops collectives whose members do not agree on the root, or whose root left no data.
func (j *job) roots(c *comm) {
	c.eachCollective(func(parts []*part) {
		root := parts[0].peer
		agree := !parts[0].function().Rooted() || c.rank[root] >= 0
		for _, p := range parts {
			agree = agree && p.peer == root
		}
		if !agree {
			dropAll(parts)
			j.count.drop(ReasonRoot, 1)
		}
	})
}

func dropAll(parts []*part) {
	for _, p := range parts {
		p.flags |= flagDropped
	}
}

// messages gives each end of a message the index of the other one, by pair and ordinal, and drops ends that have
// none. The messages of a pair are in one order on both sides then, as MPI has it.
func (j *job) messages(c *comm) {
	type pair struct{ src, dst int32 }
	type ends struct{ sends, receives []int }
	all := make(map[pair]*ends)
	for _, r := range c.present {
		for i := range r.parts {
			p := &r.parts[i]
			if !p.message() || p.is(flagDropped) {
				continue
			}
			key := pair{int32(r.rank), p.peer}
			if p.fn == fnRecv {
				key = pair{p.peer, int32(r.rank)}
			}
			e := all[key]
			if e == nil {
				e = new(ends)
				all[key] = e
			}
			if p.fn == fnSend {
				e.sends = append(e.sends, i)
			} else {
				e.receives = append(e.receives, i)
			}
		}
	}
	for key, e := range all {
		j.mates(c.rows[key.src], e.sends, c.rows[key.dst], e.receives)
	}
}

// mates brings the ends of a pair's messages together. A rank without data has no row, and no ends.
func (j *job) mates(src *row, sends []int, dst *row, receives []int) {
	for len(sends) > 0 || len(receives) > 0 {
		switch {
		case len(receives) == 0 || len(sends) > 0 && src.parts[sends[0]].ordinal < dst.parts[receives[0]].ordinal:
			j.unmatched(src, sends[0])
			sends = sends[1:]
		case len(sends) == 0 || src.parts[sends[0]].ordinal > dst.parts[receives[0]].ordinal:
			j.unmatched(dst, receives[0])
			receives = receives[1:]
		default:
			src.parts[sends[0]].ordinal, dst.parts[receives[0]].ordinal = uint64(receives[0]), uint64(sends[0])
			sends, receives = sends[1:], receives[1:]
		}
	}
}

func (j *job) unmatched(r *row, i int) {
	r.parts[i].flags |= flagDropped
	j.count.drop(ReasonUnmatched, 1)
}

// mate is the other end of a message that is in the view.
func (r *row) mate(p *part) (*row, int) { return r.comm.rows[p.peer], int(p.ordinal) }
