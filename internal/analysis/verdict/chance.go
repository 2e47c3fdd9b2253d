// SPDX-License-Identifier: Apache-2.0

package verdict

// Whether ranks that are alike would have been late as often as one was.

import (
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
)

// trial is the test against chance. If the members of a communicator were alike, each would as likely be the one that
// was late by itself on an occasion. So of the occasions of at least some cost, a rank that is named must have been
// that one more often than ranks that are alike would be.
//
// Where communicators are small that cannot be told: of two members either is late on all of few occasions. There it is
// enough that it is unlikely among the members, and too unlikely among all ranks that are in communicators of so many
// members.
type trial struct {
	causes    *causes.Result
	of        [][]membership // by rank
	found     map[int]bool   // ranks that are suspected, too: occasions on which they were late are left out
	all       pools
	suspected pools // of those, what is of ranks that are suspected
}

// pools are the occasions of communicators of collectives by how many members these have.
type pools map[int]*pool

type pool struct {
	struck [causes.Levels]float64
	seats  float64
}

func (p pools) add(c *causes.Comm, member int) {
	of := p[len(c.Ranks)]
	if of == nil {
		of = new(pool)
		p[len(c.Ranks)] = of
	}
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

// levels are those of costs so that occasions of so much and more are what is looked at; those of ranks that are found
// are left out.
func (t *trial) levels() (levels [len(levelParts)]int) {
	var costs [causes.Levels]float64 // about, by level
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

// levelParts are the parts of all cost that the occasions make up that are looked at.
var levelParts = [...]float64{0.5, 0.9}

// chance bounds the probability that any rank would be late as often as this one, at any level of costs, and gives how
// often it was. Occasions on which others were late that are suspected are left out, and once more they are not: so few
// ranks can be left that it is more likely for each.
func (t *trial) chance(rank int) (probability, times float64) {
	ranks := len(t.causes.Ranks)
	probability, times = t.against(rank, ranks)
	if found := t.found; len(found) > 0 {
		t.found = nil
		all, _ := t.against(rank, ranks)
		t.found = found
		if all != probability { // of two tests either may be passed by chance
			probability = min(1, 2*min(probability, all))
		}
	}
	return probability, times
}

// besides is chance where it is known that those that are found were late, not by chance: what they did is left out,
// and so many fewer ranks could have been late as often (Holm 1979).
func (t *trial) besides(rank int) (probability, times float64) {
	return t.against(rank, len(t.causes.Ranks)-len(t.found))
}

// against is chance, of so many ranks, with the occasions of those that are found left out.
func (t *trial) against(rank, ranks int) (probability, times float64) {
	among, of := 1.0, 1.0           // the members of its communicators; all ranks in such communicators
	var n, expected, struck float64 // of the levels from here on
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

// pool is how many occasions of a level there are in communicators of so many members, and on how many of them a rank
// with so many seats in them would be the one that is late if all were alike.
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

// occasions is on how many of a level a rank could have been the one that is late, and on how many of these it would be
// if all were alike.
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

// tail is the probability of at least k successes in n trials with this mean probability: where these are not alike it
// is less, as long as k is more than they have on average by one (Hoeffding 1956). Fewer tell nothing. k and n need not
// be whole numbers.
func tail(k, n, p float64) (sum float64) {
	if p <= 0 || p >= 1 || k < n*p+1 {
		return 1
	}
	term, odds := math.Exp(logChoose(n, k)+k*math.Log(p)+(n-k)*math.Log1p(-p)), p/(1-p)
	for i := k; i <= n; i++ {
		if sum += term; term <= sum*negligible { // also of what is too little for a number
			break
		}
		term *= (n - i) / (i + 1) * odds
	}
	return min(sum, 1)
}

// negligible is the part of a sum that a term of it may be left out as: those that follow are smaller, each by far.
const negligible = 1e-9

// logChoose is the logarithm of how many ways there are to choose k of n.
func logChoose(n, k float64) float64 {
	of := func(x float64) float64 { l, _ := math.Lgamma(x + 1); return l }
	return of(n) - of(k) - of(n-k)
}
