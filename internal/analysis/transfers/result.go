// SPDX-License-Identifier: Apache-2.0

package transfers

import (
	"cmp"
	"math"
	"slices"
)

// Finding is a link or a GPU that was slow more often than by chance.
type Finding struct {
	Kind Kind `json:"-"`
	Rank int  `json:"rank"` // in the world
	// Peer is where a link leads to; Nobody if the kind is none of a link, and where all links of the rank were slow.
	Peer int `json:"peer"`
	// Into: all links that lead to the rank were slow, not those that it sends on.
	Into       bool    `json:"into"`
	Operations uint64  `json:"operations"` // in which it, or another link of its rank, could be held against others
	Slow       uint64  `json:"slow"`       // of them
	Took       float64 `json:"took_ns"`    // its part in a slow operation, on average
	Usual      float64 `json:"usual_ns"`   // what the others would have taken for it
	// of it in a slow operation, on average: transfers of a link, buffers that a GPU filled or emptied
	Steps float64 `json:"-"`
	Delay float64 `json:"delay_ns"` // by how much slow operations were longer, together
	Cost  float64 `json:"cost_ns"`  // of all their members
	Share float64 `json:"share"`    // of the time of all operations, from their last arrivals on
	// of being slow as often as that, or more often, among all that might have been
	Chance float64 `json:"chance"`
	Parts  []Part  `json:"-"`
}

// Part is the part that a finding has of all by which operations were longer because of one rank's links, or its GPU.
type Part struct {
	Rank int // that sends, or whose GPU it is
	Of   float64
}

// Confidence is that it is no chance.
func (f *Finding) Confidence() float64 { return 1 - f.Chance }

// What must be there for somebody to be named.
const (
	maxChance = 1e-5
	leastCost = 0.01 // of all operations' time
	leastSlow = 3    // operations
)

// Result is who was slow, those that cost the most first, and what was looked at.
func (c *Counter) Result() ([]Finding, Work) {
	all := []Finding{}
	// An operation tells of a rank's worst link alone: that it was another one is a place where this one was not slow.
	places, delays := make(map[resource]uint64), make(map[resource]float64)
	var candidates [numKinds]float64
	for r, t := range c.tallies {
		candidates[r.kind]++
		places[r.owner()] += t.operations
		delays[r.owner()] += t.delay
	}
	for _, r := range sortedResources(c.tallies) {
		t, operations := c.tallies[r], places[r.owner()]
		level := t.matters()
		slow := t.from(level)
		if slow.times < leastSlow || t.cost < leastCost*c.work.Taken {
			continue
		}
		// How often the others are slow, by a quarter as much or more: those that are no less often than this one are
		// no measure of chance.
		var rest struct{ operations, slow uint64 }
		for o, u := range c.tallies {
			if o.kind != r.kind || o == r {
				continue
			}
			if of, times := places[o.owner()], u.from(level-1).times; times*operations < slow.times*of {
				rest.operations += of
				rest.slow += times
			}
		}
		if rest.operations == 0 {
			continue
		}
		rate := (float64(rest.slow) + 0.5) / (float64(rest.operations) + 1)
		chance := min(1, candidates[r.kind]*binomialTail(slow.times, operations, rate))
		if chance > maxChance {
			continue
		}
		n := float64(slow.times)
		all = append(all, Finding{
			Kind: r.kind, Rank: r.rank, Peer: r.peer, Operations: operations, Slow: slow.times, Took: slow.took / n,
			Usual: slow.usual / n, Steps: slow.steps / n,
			Delay: t.delay, Cost: t.cost, Share: t.cost / c.work.Taken, Chance: chance,
			Parts: []Part{{r.rank, t.delay / delays[r.owner()]}},
		})
	}
	all = c.together(all)
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Peer, b.Peer))
	})
	return all, c.work
}

// owner is whose operations count.
func (r resource) owner() resource { return resource{r.kind, r.rank, Nobody} }

// binomialTail is the chance of k or more of n, each of which has chance p.
func binomialTail(k, n uint64, p float64) float64 {
	if k == 0 || p >= 1 {
		return 1
	}
	logOf := func(v uint64) float64 {
		l, _ := math.Lgamma(float64(v) + 1)
		return l
	}
	sum := 0.0
	for i := k; i <= n; i++ {
		term := math.Exp(logOf(n) - logOf(i) - logOf(n-i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
		sum += term
		if i > k && term < sum*1e-12 {
			break
		}
	}
	return min(1, sum)
}

// together makes one finding of several links of a rank, where all that it sends on, or all that lead to it, were slow.
func (c *Counter) together(all []Finding) []Finding {
	for _, end := range [...]struct {
		into bool
		of   func(r resource) int
	}{{false, func(r resource) int { return r.rank }}, {true, func(r resource) int { return r.peer }}} {
		links := make(map[int]int)
		for r, t := range c.tallies {
			if r.kind == Link && t.operations >= leastSlow {
				links[end.of(r)]++
			}
		}
		found := make(map[int][]int)
		for i := range all {
			if f := &all[i]; f.Kind == Link && f.Peer != Nobody {
				rank := end.of(resource{f.Kind, f.Rank, f.Peer})
				found[rank] = append(found[rank], i)
			}
		}
		gone := make(map[int]bool)
		for rank, which := range found {
			if len(which) < 2 || len(which) < links[rank] {
				continue
			}
			sum := &all[which[0]]
			for _, i := range which[1:] {
				sum.add(&all[i])
				gone[i] = true
			}
			sum.Rank, sum.Peer, sum.Into = rank, Nobody, end.into
		}
		kept := all[:0]
		for i := range all {
			if !gone[i] {
				kept = append(kept, all[i])
			}
		}
		all = kept
	}
	return all
}

// add takes another link of the same rank into a finding.
func (f *Finding) add(o *Finding) {
	n, m := float64(f.Slow), float64(o.Slow)
	f.Took, f.Usual, f.Steps = (f.Took*n+o.Took*m)/(n+m), (f.Usual*n+o.Usual*m)/(n+m), (f.Steps*n+o.Steps*m)/(n+m)
	if f.Rank != o.Rank {
		f.Operations += o.Operations
	}
	f.Slow += o.Slow
	f.Delay += o.Delay
	f.Cost += o.Cost
	f.Share += o.Share
	f.Chance = max(f.Chance, o.Chance)
	f.Parts = append(f.Parts, o.Parts...)
}
