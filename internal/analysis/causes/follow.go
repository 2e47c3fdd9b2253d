// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Follower receives what the engine analyzes, in the same order: each operation after everything before it on its
// members. Arguments are valid until a method returns.
type Follower interface {
	// Collective takes a collective. came has its members' arrivals with their waits; late is nil if their times are
	// not comparable. startUp: it is the communicator's first one, see facts.StartUps.
	Collective(op *Operation, members []Member, came []facts.Arrival, late *facts.Lateness, delays []Delay,
		startUp bool)
	// Launch takes a launch of messages, all with this function. others are the members at the other ends, in the
	// order of their begins.
	Launch(comm otf2.CommRef, function string, l *Member, others []*Member)
	// Alone takes an operation that is not compared.
	Alone(l *Local, begin, end otf2.Timestamp)
}

// Delay is how much later one member of a collective came than another because of what it did itself.
type Delay struct {
	Member, By int32   // indices of both members
	Own        float64 // ns
}

// Followed sets the follower for everything that is analyzed from now on.
func (e *Engine) Followed(f Follower) { e.follower = f }

// delays lists the members that matter and were late by themselves.
func (e *Engine) delays(members []Member) []Delay {
	e.own = e.own[:0]
	for k := range e.blames {
		b := &e.blames[k]
		if !b.asked || b.from == b.to {
			continue
		}
		own := 0.0
		for _, why := range e.why(b) {
			if r, kind, ok := e.causes.rank(why.of); ok && int(members[b.member].Local.Rank) == r &&
				int(kind) < ownKinds {
				own += why.ns
			}
		}
		if own > 0 {
			e.own = append(e.own, Delay{b.member, b.by, own * float64(e.came[b.member].Begin-e.came[b.by].Begin)})
		}
	}
	return e.own
}

// Own divides the time between a moment (not before the end of the previous operation) and the operation's begin by
// kinds.
func (l *Local) Own(from, begin otf2.Timestamp) (own [ownKinds]uint64) {
	at := *l
	at.Ended = max(l.Ended, from)
	for k, ns := range at.own(begin) {
		own[k] = uint64(ns)
	}
	return own
}
