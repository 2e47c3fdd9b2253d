// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Follower receives what the engine analyzes, in the same order: each operation after everything before it on its
// members. Arguments are valid until a method returns.
type Follower interface {
	// Collective takes a collective. came has its members' arrivals with their waits; late is nil if their times are
	// not comparable. startUp: it is the communicator's first one, see facts.StartUps.
	Collective(op *Operation, members []Member, came []lateness.Arrival, late *lateness.Result, startUp bool)
	// Launch takes a launch of messages, all with the operation's function. others are the launches at the other ends,
	// in the order of their begins; room is nil if the launch did not wait for it.
	Launch(op *Operation, l *Member, others []Other, room *Room)
	// Alone takes an operation that is not compared, of a member with only Begin, End, Local and Work.
	Alone(m *Member)
}

// Other is a launch at the other end of messages.
type Other struct {
	*Member
	Function string
}

// AddFollower adds a follower of everything that is analyzed from now on.
func (e *Engine) AddFollower(f Follower) { e.followers = append(e.followers, f) }

// work returns how long a rank worked since the operation before, in ns: since its end, and beside it.
func (e *Engine) work(l *Local, came *state) uint64 {
	ns := sum(came.own[:])
	if p := e.partBefore(l); p != nil {
		ns -= sum(p.left.own[:])
	}
	return uint64(max(ns, 0))
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
