// SPDX-License-Identifier: Apache-2.0

package view

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// settle finds what can be compared, by the rule that reports go by: the members of a collective by the best kind of
// times that two of them have, the ends of a message by times of one kind. scout has all members take part in a
// collective: those without such times come to it when the one comes that the others wait for, and leave at once. So
// they do not wait, and nobody waits for them.
//
// Messages of other times are dropped: scout would look for waiting in them, and find messages that are received before
// they are sent.
func (j *job) settle() {
	placed := make(map[*part]otf2.Timestamp)
	for _, c := range j.comms {
		if len(c.present) < 2 {
			continue
		}
		members := make([]facts.Arrival, len(c.present))
		c.eachCollective(func(parts []*part) { c.compare(parts, members, placed) })
		for _, r := range c.present {
			j.settleMessages(r)
		}
		for _, r := range c.present {
			r.straighten(placed)
		}
	}
}

// compare compares the members of a collective, and says when those come to it that cannot be compared. members is for
// its use.
func (c *comm) compare(parts []*part, members []facts.Arrival, placed map[*part]otf2.Timestamp) {
	f, fused := parts[0].function(), false
	for i, p := range parts {
		fused = fused || p.is(flagFused)
		members[i] = facts.Arrival{Rank: c.present[i].rank, Begin: p.begin, End: p.end, Source: p.source,
			Root: f.Rooted() && int(p.peer) == c.present[i].rank}
	}
	l, ok := facts.Arrive(facts.WaitKindOf(&f.Collective), members, false)
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

// settleMessages looks at the messages that the row sends.
func (j *job) settleMessages(r *row) {
	for i := range r.parts {
		p := &r.parts[i]
		if p.fn != fnSend || p.is(flagDropped) {
			continue
		}
		to, k := r.mate(p)
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
		j.count.drop(why, 1)
	}
}

// straighten keeps a row's operations in order where some of them have other times than recorded. Those with times of
// their own stay; one that was placed before or behind these in the wrong order is as it was recorded, and not
// compared; what is not compared makes room.
func (r *row) straighten(placed map[*part]otf2.Timestamp) {
	fixed := func(p *part) bool { return p.is(flagComparable) && !p.is(flagPlaced) }
	// limits[i] is when the first operation at or behind part i begins that stays.
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
	last := otf2.Timestamp(0) // end of what was before
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
	// Those that were launched with an operation are at its time.
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
