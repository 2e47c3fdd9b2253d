// SPDX-License-Identifier: Apache-2.0

package transfers

import (
	"cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
)

// Counter examines an archive's operations. Operations of different communicators may come in any order; those of one
// communicator come in the order of their ordinals, because earlier ones define what is usual.
type Counter struct {
	history  history
	usual    map[Sort]*usual
	last     *usual // result of the last call of usualOf
	lastSort Sort   // of last
	begun    facts.StartUps
	tallies  map[resource]*tally
	work     Work

	suspects []suspect // of the current operation
	rates    []float64
	charges  []Charge
}

// Work counts the operations that were examined.
type Work struct {
	Operations uint64  `json:"operations"` // without the first of each communicator
	Seen       uint64  `json:"seen"`       // those whose transfers over the network were recorded
	Taken      float64 `json:"taken_ns"`   // summed over their members, without waits for others
	Longer     float64 `json:"longer_ns"`  // total time by which operations were longer than expected, for any reason
	Hidden     uint64  `json:"hidden"`     // in which a GPU may have waited for another one of its node, and is not named
}

// tally counts in how many operations a link or GPU could be compared with others, and in how many it was slow.
type tally struct {
	operations uint64
	slow       []excessLevel // by the size of the excess, unordered
	delay      float64       // ns by which operations ended later
	cost       float64       // ns that members were held up
}

// maxSorts bounds the number of sorts of operations whose usual time is kept.
const maxSorts = 1 << 14

// maxTallies bounds the number of links and GPUs that are counted individually.
const maxTallies = 1 << 17

// New makes a counter.
func New() *Counter {
	return &Counter{
		history: make(history), usual: make(map[Sort]*usual), begun: make(facts.StartUps),
		tallies: make(map[resource]*tally),
	}
}

// Add examines an operation and returns which links and GPUs made it longer, and by how much; the sum is at most its
// Transfer. The first operation of a communicator connects its ranks and is not charged. The result is valid until the
// next call.
func (c *Counter) Add(op *Operation) []Charge {
	c.charges = c.charges[:0]
	if c.begun.AddCollective(op.Comm, op.Ordinal) {
		return c.charges
	}
	c.work.Operations++
	left := op.Transfer
	c.links(op)
	left = c.chargeSlow(op, left)
	hidden := c.gpus(op)
	left = c.chargeSlow(op, left)
	if hidden {
		c.work.Hidden++
	}
	if op.anyMember(func(m *Member) bool { return m.Known }) {
		c.work.Seen++
	}
	for i := range c.charges {
		charge := &c.charges[i]
		c.work.Longer += float64(charge.Excess)
		if t := c.tallies[resource{charge.Kind, charge.Rank, charge.Peer}]; t != nil {
			t.delay += float64(charge.Excess)
		}
	}
	u := c.usualOf(op.Sort)
	if u == nil {
		return c.charges
	}
	if longer := u.longer(op.Transfer); longer > op.Transfer-left {
		c.charges = append(c.charges, Charge{Unknown, Nobody, Nobody, longer - (op.Transfer - left), 0})
		c.work.Longer += float64(longer - (op.Transfer - left))
	}
	u.add(float64(op.Transfer))
	return c.charges
}

// Expect takes the times of an operation's links and GPUs as those of earlier operations, before any is added.
func (c *Counter) Expect(op *Operation) {
	for _, list := range [...]func(*Operation){c.links, func(op *Operation) { c.gpus(op) }} {
		list(op)
		for i := range c.suspects {
			if s := &c.suspects[i]; !s.least {
				c.history.add(s)
			}
		}
	}
}

// Took counts how long a member was in operations, without its waits for others.
func (c *Counter) Took(ns uint64) { c.work.Taken += float64(ns) }

// HeldUp counts how much of that time a slow link or GPU caused.
func (c *Counter) HeldUp(by *Charge, ns float64) {
	if t := c.tallies[resource{by.Kind, by.Rank, by.Peer}]; t != nil {
		t.cost += ns
	}
}

// usualOf returns the usual time of a sort of operations, nil if it is not kept. It remembers the last sort because
// operations of one sort often follow each other.
func (c *Counter) usualOf(sort Sort) *usual {
	if c.last != nil && c.lastSort == sort {
		return c.last
	}
	u := c.usual[sort]
	if u == nil && len(c.usual) < maxSorts {
		u = new(usual)
		c.usual[sort] = u
	}
	c.last, c.lastSort = u, sort
	return u
}

// seen counts a suspect that could be compared with others, and by how many ns it was slow.
func (c *Counter) seen(s *suspect, excess uint64) {
	t := c.tallies[s.resource]
	if t == nil && len(c.tallies) < maxTallies {
		t = new(tally)
		c.tallies[s.resource] = t
	}
	if t == nil {
		return
	}
	t.operations++
	if excess > 0 {
		steps := float64(s.steps)
		t.addExcess(excess, excessLevel{took: float64(s.took), usual: s.usual * steps, steps: steps})
	}
}

func (r resource) compare(o resource) int {
	return cmp.Or(cmp.Compare(r.kind, o.kind), cmp.Compare(r.rank, o.rank), cmp.Compare(r.peer, o.peer))
}
