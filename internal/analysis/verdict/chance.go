// SPDX-License-Identifier: Apache-2.0

package verdict

// The probability that one of several ranks that are alike would be late as often as one was. One minus it, times the
// certainty of the habit, is the confidence that the verdict states (judge.go).

import (
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
)

// trial is the test against chance. If the members of a communicator were alike, each would be equally likely to be
// the one that was late by itself on an occasion. So, among the occasions above some cost, a rank may only be named if
// it was late more often than chance explains.
//
// In small communicators this cannot be decided: of two members, one may well be late on all of a few occasions. There
// it suffices that the result is unlikely among the members, and too unlikely among all ranks in communicators of the
// same size.
type trial struct {
	causes    *causes.Result
	of        [][]membership // by rank
	found     map[int]bool   // other suspected ranks: occasions on which they were late are left out
	all       pools
	suspected pools // the part of all that belongs to suspected ranks
}

// pools has the occasions of collectives, by the number of members of their communicators.
type pools map[int]*pool

type pool struct {
	struck [causes.Levels]float64
	seats  float64
}

func (p pools) add(c *causes.Comm, member int) {
	of := keyed.Entry(p, len(c.Ranks))
	of.seats++
	for l, n := range c.Struck[member] {
		of.struck[l] += float64(n)
	}
}

type membership struct {
	comm   *causes.Comm
	member int
}

func newTrial(c *causes.Result, suspects map[int]bool) *trial {
	t := &trial{causes: c, of: make([][]membership, len(c.Ranks)), found: make(map[int]bool), all: make(pools),
		suspected: make(pools)}
	for i := range c.Comms {
		comm := &c.Comms[i]
		for m, r := range comm.Ranks {
			if r < 0 {
				continue
			}
			t.of[r] = append(t.of[r], membership{comm, m})
			if comm.Took == nil {
				t.all.add(comm, m)
				if suspects[int(r)] {
					t.suspected.add(comm, m)
				}
			}
		}
	}
	return t
}

// levels returns a cost level for each entry of levelParts: the highest one such that the occasions at or above it
// account for at least that part of the total cost. Occasions of the ranks in found are left out.
func (t *trial) levels() (levels [len(levelParts)]int) {
	var costs [causes.Levels]float64 // approximate, by level
	sum := 0.0
	for i := range t.causes.Comms {
		comm := &t.causes.Comms[i]
		for m, r := range comm.Ranks {
			if t.found[int(r)] {
				continue
			}
			for l := range costs {
				cost := float64(comm.Struck[m][l]) * float64(uint64(1)<<l)
				costs[l] += cost
				sum += cost
			}
		}
	}
	part, at := 0.0, 0
	for l := len(costs) - 1; l >= 0 && at < len(levels); l-- {
		part += costs[l]
		for at < len(levels) && part >= levelParts[at]*sum {
			levels[at] = l
			at++
		}
	}
	return levels
}

// levelParts are the parts of the total cost for which the most expensive occasions are tested.
var levelParts = [...]float64{0.5, 0.9}

// chance returns an upper bound on the probability that any rank is late as often as this one at any tested level, and
// how often it was late. It runs two tests: one leaves out the occasions on which other suspects were late, the other
// keeps them. The first alone can be too weak: if few ranks remain, each of them is likely to be late often by chance.
// As two tests give chance two attempts, the smaller probability is doubled.
func (t *trial) chance(rank int) (probability, times float64) {
	ranks := len(t.causes.Ranks)
	probability, times = t.chanceAgainst(rank, ranks)
	if found := t.found; len(found) > 0 {
		t.found = nil
		all, _ := t.chanceAgainst(rank, ranks)
		t.found = found
		if all != probability { // with two tests, chance has two attempts
			probability = min(1, 2*min(probability, all))
		}
	}
	return probability, times
}

// chanceGivenNamed is like chance if the ranks in found are known not to be late by chance: their occasions are left
// out, and correspondingly fewer ranks could have been late as often (Holm 1979).
func (t *trial) chanceGivenNamed(rank int) (probability, times float64) {
	return t.chanceAgainst(rank, len(t.causes.Ranks)-len(t.found))
}

// chanceAgainst is chance for a number of ranks, without the occasions of the ranks in found.
func (t *trial) chanceAgainst(rank, ranks int) (probability, times float64) {
	among, of := 1.0, 1.0           // among the members of its communicators; among all in such communicators
	var n, expected, struck float64 // from the highest level down to this one
	var pooled, byChance float64
	levels := t.levels()
	for level := causes.Levels - 1; level >= levels[len(levels)-1]; level-- {
		seats := make(map[int]float64)
		for _, m := range t.of[rank] {
			occasions, usual := t.occasions(m, level)
			n, expected = n+occasions, expected+usual
			struck += float64(m.comm.Struck[m.member][level])
			if m.comm.Took == nil {
				seats[len(m.comm.Ranks)]++
			} else {
				pooled, byChance = pooled+occasions, byChance+usual
			}
		}
		for members, own := range seats {
			occasions, usual := t.pool(rank, members, level, own)
			pooled, byChance = pooled+occasions, byChance+usual
		}
		if n > 0 && slices.Contains(levels[:], level) {
			among = min(among, tail(struck, n, expected/n))
			of = min(of, tail(struck, pooled, byChance/pooled))
		}
	}
	tests, all := float64(len(levels)), float64(ranks)
	return min(1, among*tests*all, max(among*tests, of*tests*all)), struck
}

// pool returns the number of occasions of a level in communicators with that many members, and how many of them would
// fall on a rank with own memberships if all were alike.
func (t *trial) pool(rank, members, level int, own float64) (n, expected float64) {
	p := *t.all[members]
	n, seats := p.struck[level], p.seats
	if s := t.suspected[members]; s != nil && len(t.found) > 0 {
		n, seats = n-s.struck[level], seats-s.seats+own
		for _, m := range t.of[rank] {
			if m.comm.Took == nil && len(m.comm.Ranks) == members {
				n += float64(m.comm.Struck[m.member][level])
			}
		}
	}
	return n, n * own / max(seats, 1)
}

// occasions returns the number of occasions of a level on which a rank could have been the late one, and how many
// would fall on it if all were alike.
func (t *trial) occasions(m membership, level int) (n, expected float64) {
	if m.comm.Took != nil {
		n, expected = m.comm.Part(m.member, level)
		if n > 0 {
			left := max(0, n-m.comm.Waited(m.member, level, func(r int) bool { return t.found[r] }))
			n, expected = left, expected*left/n
		}
		return n, expected
	}
	members := 0
	for i, r := range m.comm.Ranks {
		if r >= 0 && !t.found[int(r)] {
			n += float64(m.comm.Struck[i][level])
			members++
		}
	}
	return n, n / float64(max(members, 1))
}

// tail returns the probability of at least k successes in n trials with mean probability p. If the trials'
// probabilities differ, it is smaller, provided that k exceeds the expected number by one (Hoeffding 1956); a smaller
// k proves nothing. k and n need not be whole numbers.
func tail(k, n, p float64) (sum float64) {
	if p <= 0 || p >= 1 || k < n*p+1 {
		return 1
	}
	term, odds := math.Exp(logChoose(n, k)+k*math.Log(p)+(n-k)*math.Log1p(-p)), p/(1-p)
	for i := k; i <= n; i++ {
		if sum += term; term <= sum*negligible { // also if it is too small for a float64
			break
		}
		term *= (n - i) / (i + 1) * odds
	}
	return min(sum, 1)
}

// negligible is the fraction of a sum below which its terms are ignored: each following term is much smaller.
const negligible = 1e-9

// logChoose returns the logarithm of the number of ways to choose k of n.
func logChoose(n, k float64) float64 {
	of := func(x float64) float64 { l, _ := math.Lgamma(x + 1); return l }
	return of(n) - of(k) - of(n-k)
}
