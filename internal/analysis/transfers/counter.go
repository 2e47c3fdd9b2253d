// SPDX-License-Identifier: Apache-2.0

package transfers

import (
	"cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
)

// Counter takes an archive's operations, in any order of communicators, and of each in the order of its ordinals as far
// as it matters what is usual.
type Counter struct {
	history  history
	usual    map[Sort]*usual
	last     *usual // that was asked for last
	lastSort Sort   // of last
	begun    facts.StartUps
	tallies  map[resource]*tally
	work     Work

	suspects []suspect // of the operation that is looked at
	rates    []float64
	charges  []Charge
}

// Work is what was looked at.
type Work struct {
	Operations uint64  `json:"operations"` // without the first of each communicator
	Seen       uint64  `json:"seen"`       // of them, those whose transfers over the network were recorded
	Taken      float64 `json:"taken_ns"`   // by all of their members, without waits for others
	Longer     float64 `json:"longer_ns"`  // by which operations were longer than they ought to be, for any reason
	Hidden     uint64  `json:"hidden"`     // in which a GPU may have waited for one beside it, and so is not named
}

// tally counts in how many operations somebody could be held against others, and in how many that was slow.
type tally struct {
	operations uint64
	slow       []slowness // by how much, in no order
	delay      float64    // ns by which operations ended later
	cost       float64    // ns that members were held up
}

// maxSorts bounds the kinds of operations of which it is known how long they usually take; of others it is not.
const maxSorts = 1 << 14

// maxTallies bounds the links and GPUs that are counted one by one.
const maxTallies = 1 << 17

// New makes a counter.
func New() *Counter {
	return &Counter{
		history: make(history), usual: make(map[Sort]*usual), begun: make(facts.StartUps),
		tallies: make(map[resource]*tally),
	}
}

// Add takes an operation and tells by whom it was longer, and by how much; their sum is at most its Transfer. The first
// operation of a communicator connects its ranks, and is charged to nobody. What is returned is valid until the next
// call.
func (c *Counter) Add(op *Operation) []Charge {
	c.charges = c.charges[:0]
	if c.begun.AddCollective(op.Comm, op.Ordinal) {
		return c.charges
	}
	c.work.Operations++
	left := op.Transfer
	c.links(op)
	left = c.judge(op, left)
	hidden := c.gpus(op)
	left = c.judge(op, left)
	if hidden {
		c.work.Hidden++
	}
	if op.any(func(m *Member) bool { return m.Known }) {
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

// Took counts how long a member was in operations, without its waits for others.
func (c *Counter) Took(ns uint64) { c.work.Taken += float64(ns) }

// HeldUp counts for how long, of that, it was held up by somebody.
func (c *Counter) HeldUp(by *Charge, ns float64) {
	if t := c.tallies[resource{by.Kind, by.Rank, by.Peer}]; t != nil {
		t.cost += ns
	}
}

// usualOf is how long operations of a sort took, nil if that is not kept. Operations of one sort often follow each
// other.
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

// seen counts a suspect that could be held against others, and by how many ns it was slow.
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
		t.was(excess, slowness{took: float64(s.took), usual: s.usual * float64(s.steps), steps: float64(s.steps)})
	}
}

func (r resource) compare(o resource) int {
	return cmp.Or(cmp.Compare(r.kind, o.kind), cmp.Compare(r.rank, o.rank), cmp.Compare(r.peer, o.peer))
}
