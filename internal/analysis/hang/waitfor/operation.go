// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Which operations are not complete, and how far their members have come.

// operation is a collective or a message that not all its members have ended: a node of the graph.
type operation struct {
	comm    *progress.Communicator
	name    string // "AllReduce"
	ends    string // "from Rank 0 to Rank 3" for a message, otherwise ""
	lone    bool   // a message of one rank, of which NCCL has not said who the other one is
	ordinal uint64 // in its sequence
	parts   []part // one per member; sender and receiver of a message

	waits []edge
}

// part describes how far one member of an operation has come.
type part struct {
	member  *progress.Rank // nil: there is no data of it
	rank    int            // in the communicator
	state   state
	pending *description.Pending // nil unless it is in the operation, and that is on record
	since   uint64               // when it came, or later; 0 unless it may be in the operation
}

// state is how far a member has come with an operation.
type state int

const (
	noData  state = iota
	missing       // has not called it
	called        // has called it, and its GPU is not known to have begun
	running       // its GPU or its network has begun
	done          // has ended it
)

// words names the operation in sentences.
func (o *operation) words() string {
	if o.lone {
		return fmt.Sprintf("%s %d of %s on %s", o.name, o.ordinal, o.ends, o.comm.Name)
	}
	if o.ends != "" {
		return fmt.Sprintf("message %d %s on %s", o.ordinal, o.ends, o.comm.Name)
	}
	return fmt.Sprintf("%s %d on %s", o.name, o.ordinal, o.comm.Name)
}

// in returns the part of the process's member if that member is in the operation, otherwise nil.
func (o *operation) in(p *progress.Process) *part {
	for i := range o.parts {
		if q := &o.parts[i]; q.member != nil && q.member.Process == p && q.since > 0 {
			return q
		}
	}
	return nil
}

// operationsOf lists the operations of a communicator that may not be complete. Of messages whose other ends are not
// known these are the ones inside NCCL's call.
func operationsOf(c *progress.Communicator) (all []*operation) {
	for _, s := range c.Sequences() {
		if s.Rank >= 0 {
			r := c.Ranks[s.Rank]
			for i := range r.Pending {
				if p := &r.Pending[i]; p.Function == s.Name && p.State == "calling" && !p.Left {
					all = append(all, &operation{comm: c, name: s.Name, ends: c.Names[s.Rank], lone: true,
						ordinal: p.Ordinal, parts: []part{{r, s.Rank, running, p, p.Since}}})
				}
			}
			continue
		}
		for _, ordinal := range s.Incomplete() {
			if o := operationOf(c, &s, ordinal); o != nil {
				all = append(all, o)
			}
		}
	}
	return all
}

// operationOf describes one operation. It returns nil if the operation may well be complete: all members in it have
// left the communicator, or they have only called it and NCCL does not report the end of such operations.
func operationOf(c *progress.Communicator, s *progress.Sequence, ordinal uint64) *operation {
	o := &operation{comm: c, name: s.Name, ordinal: ordinal}
	if s.Pair != nil {
		o.ends = fmt.Sprintf("from %s to %s", c.Names[s.Pair.From], c.Names[s.Pair.To])
	}
	left, absent, begun := true, false, false
	for rank, key := range s.Members {
		p := partOf(c.Ranks[rank], rank, key, ordinal)
		o.parts = append(o.parts, p)
		absent = absent || p.state == missing
		if p.pending != nil {
			left = left && p.pending.Left
			begun = begun || p.pending.State != "called"
		}
	}
	if !absent && (left || !begun) {
		return nil
	}
	f := regions.CollectiveNamed(o.name)
	for i := range o.parts { // nobody leaves it before all have come (of a message, the data may have left the sender)
		if p := &o.parts[i]; absent && p.state == done && (f != nil && !f.Rooted() || s.Pair != nil) {
			p.state, p.since = called, p.member.Begun
		}
	}
	return o
}

// states maps a member's standing to its state.
var states = map[progress.Standing]state{
	progress.StandingUnknown: noData, progress.NotBegun: missing, progress.UnderWay: called,
	progress.Ended: done, progress.Begun: called}

func partOf(r *progress.Rank, rank int, key string, ordinal uint64) part {
	standing, pending := r.Standing(key, ordinal)
	p := part{member: r, rank: rank, state: states[standing], pending: pending}
	switch {
	case pending != nil:
		if p.since = pending.Since; pending.State == "running" {
			p.state = running
		}
	case p.state == called: // its end is not recorded
		p.since = r.Begun
	}
	return p
}
