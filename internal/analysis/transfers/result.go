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
	// Peer is the receiving end of a link; Nobody for other kinds, and if all links of the rank were slow.
	Peer int `json:"peer"`
	// Into: all links to the rank were slow, not those on which it sends.
	Into       bool    `json:"into"`
	Operations uint64  `json:"operations"` // in which it, or another link of its rank, could be compared
	Slow       uint64  `json:"slow"`       // operations in which it was slow
	Took       float64 `json:"took_ns"`    // its time in a slow operation, on average
	Usual      float64 `json:"usual_ns"`   // the time that the others would have taken
	// Steps is the mean number in a slow operation: transfers of a link, or buffers that a GPU filled or emptied.
	Steps float64 `json:"-"`
	Delay float64 `json:"delay_ns"` // total time by which slow operations were longer
	Cost  float64 `json:"cost_ns"`  // the delay, summed over all members
	Share float64 `json:"share"`    // Cost as a part of the time of all operations after their last arrivals
	// Chance is the probability that any candidate is slow at least as often by chance.
	Chance float64 `json:"chance"`
	Parts  []Part  `json:"-"`
}

// Part is a finding's part of the total delay that is charged to one rank's links, or to its GPU.
type Part struct {
	Rank int // the sender, or the rank of the GPU
	Of   float64
}

// Confidence returns the probability that the finding is not chance.
func (f *Finding) Confidence() float64 { return 1 - f.Chance }

// Result returns the slow links and GPUs, the most expensive first, and what was examined.
func (c *Counter) Result() ([]Finding, Work) {
	all := []Finding{}
	// Each operation counts only the worst link of a rank. If that was another link, this one was not slow there.
	places, delays := make(map[resource]uint64), make(map[resource]float64)
	var candidates [numKinds]float64
	for r, t := range c.tallies {
		candidates[r.kind]++
		places[r.owner()] += t.operations
		delays[r.owner()] += t.delay
	}
	for _, r := range sortedResources(c.tallies) {
		t, operations := c.tallies[r], places[r.owner()]
		level := t.mainLevel()
		slow := t.sumFrom(level)
		if slow.times < leastSlow || t.cost < leastCost*c.work.Taken {
			continue
		}
		// The base rate: how often the others are slow by at least a quarter as much. Those that are slow as often as
		// this one are not evidence of chance.
		var rest struct{ operations, slow uint64 }
		for o, u := range c.tallies {
			if o.kind != r.kind || o == r {
				continue
			}
			if of, times := places[o.owner()], u.sumFrom(level-1).times; times*operations < slow.times*of {
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

// owner returns the resource whose operations count: all links of one rank together.
func (r resource) owner() resource { return resource{r.kind, r.rank, Nobody} }

// binomialTail returns the probability of at least k successes in n trials with probability p.
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

// together merges the findings of a rank's links if all links on which it sends, or all links to it, were slow.
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

// add merges the finding of another link of the same rank.
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
