// SPDX-License-Identifier: Apache-2.0

package view

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// compareTimes decides which times can be compared, by the rule of reports: the members of a collective by the best
// kind of times that two of them have, the ends of a message if their times are of one kind. scout makes all members
// take part in a collective, so members without such times arrive together with the rank that the others wait for, and
// leave at once: they neither wait nor are waited for.
//
// Messages with times of different kinds are dropped: scout would find waiting in them, and messages that are received
// before they are sent.
func (j *job) compareTimes() {
	placed := make(map[*part]otf2.Timestamp)
	for _, c := range j.comms {
		if len(c.present) < 2 {
			continue
		}
		members := make([]lateness.Arrival, len(c.present))
		c.eachCollective(func(parts []*part) { c.compareMembers(parts, members, placed) })
		for _, r := range c.present {
			j.compareMessages(r)
		}
		for _, r := range c.present {
			r.restoreOrder(placed)
		}
	}
}

// compareMembers compares the members of a collective and notes in placed when those without comparable times arrive.
// members is scratch space.
func (c *comm) compareMembers(parts []*part, members []lateness.Arrival, placed map[*part]otf2.Timestamp) {
	f, fused := parts[0].function(), false
	for i, p := range parts {
		fused = fused || p.is(flagFused)
		members[i] = lateness.Arrival{Rank: c.present[i].rank, Begin: p.begin, End: p.end, Source: p.source,
			Root: f.Rooted() && int(p.peer) == c.present[i].rank}
	}
	l, ok := lateness.Compare(lateness.WaitKindOf(&f.Collective), members, false)
	if !ok {
		return
	}
	for _, p := range parts {
		p.flags |= flagComparable
		if p.source != l.Source && !fused {
			p.flags |= flagPlaced
			placed[p] = members[l.Awaited].Begin
		}
	}
}

// compareMessages compares the times of the messages that the row sends.
func (j *job) compareMessages(r *row) {
	for i := range r.parts {
		p := &r.parts[i]
		if p.fn != fnSend || p.is(flagDropped) {
			continue
		}
		to, k := r.otherEnd(p)
		q := &to.parts[k]
		why := ReasonUntimed
		switch {
		case p.is(flagFused) || q.is(flagFused):
			why = ReasonFused
		case p.source == q.source && p.source.HasPlace():
			p.flags |= flagComparable
			q.flags |= flagComparable
			continue
		}
		p.flags |= flagDropped
		q.flags |= flagDropped
		j.count.countDropped(why, 1)
	}
}

// restoreOrder restores the order of a row's operations where some were given other times than recorded. Operations
// with times of their own stay. A placed one that is now out of order returns to its recorded time and is not compared.
// Operations without comparable times make room.
func (r *row) restoreOrder(placed map[*part]otf2.Timestamp) {
	fixed := func(p *part) bool { return p.is(flagComparable) && !p.is(flagPlaced) }
	// limits[i] is the begin of the first fixed operation at or after part i.
	limits := make([]otf2.Timestamp, len(r.parts)+1)
	limits[len(r.parts)] = math.MaxUint64
	moved := false
	for i := len(r.parts) - 1; i >= 0; i-- {
		p := &r.parts[i]
		limits[i] = limits[i+1]
		if p.is(flagDropped | flagFused) {
			continue
		}
		moved = moved || p.is(flagPlaced)
		if fixed(p) {
			limits[i] = min(limits[i], p.begin)
		}
	}
	if !moved {
		return
	}
	last := otf2.Timestamp(0) // end of the operations before
	for i := range r.parts {
		p := &r.parts[i]
		switch {
		case p.is(flagDropped | flagFused):
			continue
		case fixed(p):
		case p.is(flagPlaced) && last <= placed[p] && placed[p] <= limits[i+1]:
			p.begin, p.end = placed[p], placed[p]
		default:
			p.flags &^= flagComparable | flagPlaced
			p.begin = min(max(p.begin, last), limits[i+1])
			p.end = min(max(p.end, p.begin), limits[i+1])
		}
		last = max(last, p.end)
	}
	// Operations launched with another have its time.
	for from := 0; from < len(r.parts); {
		to, lead := from+1, from
		for ; to < len(r.parts) && !r.parts[to].is(flagPlan); to++ {
			if r.parts[lead].is(flagFused) {
				lead = to
			}
		}
		for i := from; i < to; i++ {
			if p := &r.parts[i]; p.is(flagFused) {
				p.begin, p.end = r.parts[lead].begin, r.parts[lead].end
			}
		}
		from = to
	}
}
