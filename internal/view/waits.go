// SPDX-License-Identifier: Apache-2.0

package view

import "github.com/nccl-otf2/nccl-otf2/otf2"

// waits returns the total time that ranks wait for each other in the view, as scout counts it: in collectives for the
// last member, for the root, or of the root for the last of the others; in messages for the sender and for the
// receiver. Of the messages of a launch scout counts the longest wait for a sender or, only if there is none, the
// longest for a receiver. masked sums by how much the waits for receivers exceed the waits for senders that hide them.
func (j *job) waits() (sum, masked uint64) {
	for _, c := range j.comms {
		if len(c.present) < 2 {
			continue
		}
		c.eachCollective(func(parts []*part) { sum += c.collectiveWaits(parts) })
		for _, r := range c.present {
			for u := r.unitAt(0); u.from < u.to; u = r.unitAt(u.to) {
				if r.parts[u.from].isMessage() {
					forSender, forReceiver := r.messageWaits(u)
					if forSender > 0 {
						sum += forSender
						masked += max(forReceiver, forSender) - forSender
					} else {
						sum += forReceiver
					}
				}
			}
		}
	}
	return sum, masked
}

func (c *comm) collectiveWaits(parts []*part) (sum uint64) {
	f := parts[0].function()
	last, others, root := otf2.Timestamp(0), otf2.Timestamp(0), -1
	for i, p := range parts {
		if !p.hasArrival() {
			return 0
		}
		last = max(last, p.begin)
		if f.Rooted() && int(p.peer) == c.present[i].rank {
			root = i
		} else {
			others = max(others, p.begin)
		}
	}
	for i, p := range parts {
		until := last
		switch {
		case !f.Rooted():
		case f.Role == otf2.RegionRoleCollOne2All:
			until = parts[root].begin
		case i == root:
			until = others
		default:
			continue
		}
		sum += waited(p, until)
	}
	return sum
}

// waited returns how long a part waits until a time, at most to its own end.
func waited(p *part, until otf2.Timestamp) uint64 {
	if until = min(until, p.end); until > p.begin {
		return uint64(until - p.begin)
	}
	return 0
}

// messageWaits returns the longest wait of a launch's receives, and of its sends.
func (r *row) messageWaits(u unit) (forSender, forReceiver uint64) {
	for i := u.from; i < u.to; i++ {
		p := &r.parts[i]
		if p.is(flagDropped | flagUntimed) {
			continue
		}
		to, k := r.otherEnd(p)
		switch other := to.parts[k].begin; {
		case p.fn == fnRecv:
			forSender = max(forSender, waited(p, other))
		case !p.is(flagQuiet) && other < p.end:
			forReceiver = max(forReceiver, waited(p, other))
		}
	}
	return forSender, forReceiver
}
