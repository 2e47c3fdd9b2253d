// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Follower is told what the engine looks at, in the same order: each operation after what came before it on its
// members. What it is given is valid until it returns.
type Follower interface {
	// Collective takes a collective. came are its members' arrivals with their waits, late is nil where their times do
	// not compare. startUp: it is the communicator's first one, see facts.StartUps.
	Collective(op *Operation, members []Member, came []facts.Arrival, late *facts.Lateness, delays []Delay,
		startUp bool)
	// Launch takes a launch of messages, all with this function, with those at the other ends of them, in the order of
	// their begins.
	Launch(comm otf2.CommRef, function string, l *Member, others []*Member)
	// Alone takes an operation that is not compared.
	Alone(l *Local, begin, end otf2.Timestamp)
}

// Delay is how much later one member of a collective came than another because of what it did itself.
type Delay struct {
	Member, By int32   // indices of both
	Own        float64 // ns
}

// Followed has f told of all that is looked at from now on.
func (e *Engine) Followed(f Follower) { e.follower = f }

// delays lists the members that were late by themselves, of those that matter.
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

// Own divides the time from a moment, not before the end of what was before, to the operation's begin by kinds.
func (l *Local) Own(from, begin otf2.Timestamp) (own [ownKinds]uint64) {
	at := *l
	at.Ended = max(l.Ended, from)
	for k, ns := range at.own(begin) {
		own[k] = uint64(ns)
	}
	return own
}
