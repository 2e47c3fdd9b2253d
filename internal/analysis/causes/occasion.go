// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"math"
	"slices"
)

// An occasion on which a rank was late is a burst, as far as lateness was carried along, and each of its operations,
// as far as lateness arose anew.

// bursts sums up the bursts of a rank.
type bursts struct {
	moved        [ownKinds]float64 // ns of cost, from the kinds of later operations to those of bursts' first ones
	given        map[cause]float64 // ns of cost, of operations to which the rank was late because of others
	greatest     float64           // ns, cost of the most expensive burst
	of           float64           // number of its operations
	greatestEach float64           // ns, cost of the most expensive operation
}

func (s *bursts) add(b *burst) {
	began, later := sum(b.began[:]), sum(b.later[:])
	for k := range b.later {
		s.moved[k] -= b.later[k]
		if b.origin == nil {
			s.moved[k] += later * b.began[k] / began
		}
	}
	for _, why := range b.origin {
		if s.given == nil {
			s.given = make(map[cause]float64)
		}
		s.given[why.of] += later * why.ns
	}
	if b.cost > s.greatest {
		s.greatest, s.of = b.cost, b.ops
	}
	s.greatestEach = max(s.greatestEach, b.most)
}

// move moves part of the costs and delays that were carried along to the kinds with which bursts began. It returns the
// delays that belong to the ranks that caused the lateness.
func (r *Rank) move(moved *[ownKinds]float64, part float64) (left float64) {
	from, to := 0.0, 0.0
	net := 0.0
	for k, ns := range moved {
		if ns < 0 && r.Costs[k] > 0 {
			out := min(-part*ns/r.Costs[k], 1) * r.Delays[k]
			r.Delays[k] -= out
			from += out
		}
		to += max(ns, 0)
		net -= min(ns, 0)
	}
	kept := 0.0
	if net > 0 {
		kept = from * min(to/net, 1)
	}
	for k, ns := range moved {
		r.Costs[k] = max(r.Costs[k]+part*ns, 0)
		if to > 0 {
			r.Delays[k] += kept * max(ns, 0) / to
		}
	}
	return from - kept
}

// heaviest returns an upper bound on the cost of one occasion.
func (s *bursts) heaviest(anew float64) float64 {
	if s.of == 0 {
		return 0
	}
	return max(s.greatest/(1+(s.of-1)*anew), s.greatestEach)
}

// occasions counts occasions by their cost, and on how many of them each participant would be the late one if all were
// alike.
type occasions struct{ times, expected [Levels]float32 }

// counted has bursts by the cost and the number of their operations.
type counted []size

// size has the bursts of about one size.
type size struct {
	each, length          uint8 // level of the cost of an operation; logarithm of their number
	bursts, ops, expected float32
	all                   float32 // bursts including those that others began
}

// add counts a part of a burst, in which a number of members waited in each operation.
func (c *counted) add(b *burst, part, waited float64) {
	each, length := uint8(Level(b.cost/b.ops)), uint8(math.Log2(b.ops))
	i := slices.IndexFunc(*c, func(s size) bool { return s.each == each && s.length == length })
	if i < 0 {
		i = len(*c)
		*c = append(*c, size{each: each, length: length})
	}
	s := &(*c)[i]
	s.all += float32(part)
	if b.origin == nil {
		s.bursts += float32(part)
	}
	s.ops += float32(part * b.ops)
	s.expected += float32(part / (1 + waited))
}

// into adds the bursts to o; anew is the part of them that arose anew in each operation.
func (c counted) into(o *occasions, anew float64) {
	for _, s := range c {
		times := float64(s.bursts) + anew*float64(s.ops-s.bursts)
		if times <= 0 {
			continue
		}
		level := min(int(s.each)+int(math.Log2(float64(s.ops)/times)+0.5), Levels-1)
		o.times[level] += float32(times)
		o.expected[level] += float32(times) * s.expected / s.all
	}
}

func sum(all []float64) (ns float64) {
	for _, x := range all {
		ns += x
	}
	return ns
}
