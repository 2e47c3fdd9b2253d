// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/experiment/jobs"
)

// Which operations are not complete, and where their members stand: from the numbers of operations that ranks have begun and ended, and what is
// under way.

// operation is a collective, or a message, that not all its members have ended: a node of the graph.
type operation struct {
	comm    *jobs.JobCommunicator
	name    string // "AllReduce", "Send from rank 0 to rank 3"
	ordinal uint64 // in its sequence
	parts   []part // the members; of a message sender and receiver

	waits []edge
}

// part is where a member of an operation stands.
type part struct {
	member  *jobs.JobRank // nil: no data of it
	rank    int           // in the communicator
	key     string        // of its sequence
	state   state
	pending *experiment.Pending // nil unless it is in the operation
}

// state is how far a member has come with an operation.
type state int

const (
	noData  state = iota
	missing       // has not called it
	called        // has called it, and its GPU is not known to have begun
	running       // its GPU, or its network, has
	done          // has ended it
)

// words name the operation in sentences.
func (o *operation) words() string { return fmt.Sprintf("%s %d on %s", o.name, o.ordinal, o.comm.Name) }

// in is the part of a process's member that is in the operation; nil if none is.
func (o *operation) in(p *jobs.JobProcess) *part {
	for i := range o.parts {
		if q := &o.parts[i]; q.member != nil && q.member.Process == p && q.pending != nil {
			return q
		}
	}
	return nil
}

// trackKey names a sequence of operations that members must have alike.
type trackKey struct {
	name string
	keys [2]string // of a message: its sender's and its receiver's
	pair [2]int
}

// operationsOf lists the operations of a communicator that may not be complete: those that a member has under way, and of each sequence the
// first that not all have begun.
func operationsOf(c *jobs.JobCommunicator) (all []*operation) {
	for _, t := range tracksOf(c) {
		for _, ordinal := range t.suspects(c) {
			if o := t.operation(c, ordinal); o != nil {
				all = append(all, o)
			}
		}
	}
	return all
}

func tracksOf(c *jobs.JobCommunicator) (all []trackKey) {
	seen := make(map[trackKey]bool)
	for rank, r := range c.Ranks {
		if r == nil {
			continue
		}
		for key := range r.Reached {
			t := trackKey{name: key}
			if strings.ContainsAny(key, "<>") {
				peer := -1
				if _, err := fmt.Sscanf(key[len(experiment.FunctionOf(key))+1:], "%d", &peer); err != nil || peer < 0 || peer >= c.Size || peer == rank {
					continue
				}
				t.pair = [2]int{rank, peer}
				if experiment.FunctionOf(key) == "Recv" {
					t.pair = [2]int{peer, rank}
				}
				t.keys = [2]string{fmt.Sprintf("Send>%d", t.pair[1]), fmt.Sprintf("Recv<%d", t.pair[0])}
				t.name = fmt.Sprintf("Send from %s to %s", c.Names[t.pair[0]], c.Names[t.pair[1]])
			} else if key == "Send" || key == "Recv" { // only called: the other end is not known
				continue
			}
			if !seen[t] {
				seen[t] = true
				all = append(all, t)
			}
		}
	}
	slices.SortFunc(all, func(a, b trackKey) int { return cmp.Compare(a.name, b.name) })
	return all
}

// members yields the ranks that must have the sequence alike, and their names of it.
func (t *trackKey) members(c *jobs.JobCommunicator) func(yield func(rank int, key string) bool) {
	return func(yield func(int, string) bool) {
		if t.keys[0] != "" {
			_ = yield(t.pair[0], t.keys[0]) && yield(t.pair[1], t.keys[1])
			return
		}
		for rank := range c.Size {
			if !yield(rank, t.name) {
				return
			}
		}
	}
}

func (t *trackKey) suspects(c *jobs.JobCommunicator) (all []uint64) {
	least, most, known := uint64(0), uint64(0), false
	for rank, key := range t.members(c) {
		r := c.Ranks[rank]
		if r == nil {
			continue
		}
		n := r.Reached[key]
		if !known || n < least {
			least = n
		}
		most, known = max(most, n), true
		for _, p := range r.Pending {
			if p.Function == key {
				all = append(all, p.Ordinal)
			}
		}
	}
	if least < most {
		all = append(all, least)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// operation describes one; nil if nothing speaks against its being complete: all that are in it have left the communicator, or have only
// called it and NCCL does not say when such operations end.
func (t *trackKey) operation(c *jobs.JobCommunicator, ordinal uint64) *operation {
	o := &operation{comm: c, name: t.name, ordinal: ordinal}
	left, absent, begun := true, false, false
	for rank, key := range t.members(c) {
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
	return o
}

func partOf(r *jobs.JobRank, rank int, key string, ordinal uint64) part {
	p := part{member: r, rank: rank, key: key}
	if r == nil {
		return p
	}
	for i := range r.Pending {
		if q := &r.Pending[i]; q.Function == key && q.Ordinal == ordinal {
			p.pending, p.state = q, called
			if q.State == "running" {
				p.state = running
			}
			return p
		}
	}
	switch {
	case ordinal >= r.Reached[key]:
		p.state = missing
	case r.Process.Ends:
		p.state = done
	default:
		p.state = called // nobody records when it ends
	}
	return p
}
