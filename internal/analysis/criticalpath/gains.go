// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Savings: for each candidate, how much earlier operations would have ended if it had been as fast as the ranks that
// it was later than.

// gains has ns by candidate (Path.candidates). All members that leave an operation together share it; nil: no gains.
type gains struct {
	ns    []int64
	users int32
	born  uint32 // Path.taken at the last check
	group int32  // number in Path.groups …
	of    uint32 // … of this operation
}

func (g *gains) take() {
	if g != nil {
		g.users++
	}
}

func (p *Path) release(g *gains) {
	if g == nil {
		return
	}
	if g.users--; g.users == 0 {
		p.spare = append(p.spare, g)
	}
}

func (p *Path) newGains() *gains {
	if n := len(p.spare); n > 0 {
		g := p.spare[n-1]
		p.spare = p.spare[:n-1]
		g.born = p.taken
		return g
	}
	return &gains{ns: make([]int64, len(p.candidates)), born: p.taken}
}

// fresh resets the gains of candidates that have been replaced since.
func (p *Path) fresh(g *gains) {
	if g == nil || g.born == p.taken {
		return
	}
	for i := range p.candidates {
		if p.candidates[i].since > g.born {
			g.ns[i] = 0
		}
	}
	g.born = p.taken
}

func (g *gains) at(candidate int32) int64 {
	if g == nil {
		return 0
	}
	return g.ns[candidate]
}

// candidate is a rank for which the saving is determined. The first one represents all ranks.
type candidate struct {
	rank   int32
	since  uint32 // Path.taken when it became a candidate
	late   bool   // it became a candidate later than others
	margin uint64 // part of the gain in ns that clock errors may explain
	times  uint64 // operations to which it came last and was late by itself
}

const (
	everybody      = int32(0)
	nobody         = int32(-1)
	mostCandidates = 32
)

// watch counts that a rank was late and last. The rank becomes a candidate when its total exceeds a candidate's.
func (p *Path) watch(rank int32, ns uint64) {
	p.excess[rank] += ns
	if p.candidateOf[rank] != nobody {
		return
	}
	least := int32(1)
	for i := int32(2); int(i) < len(p.candidates); i++ {
		if p.excessOf(i) < p.excessOf(least) {
			least = i
		}
	}
	c := &p.candidates[least]
	if p.excess[rank] <= p.excessOf(least) {
		return
	}
	if c.rank != nobody {
		p.candidateOf[c.rank] = nobody
	}
	p.taken++
	*c = candidate{rank: rank, since: p.taken, late: true}
	p.candidateOf[rank] = least
}

func (p *Path) excessOf(candidate int32) uint64 {
	if r := p.candidates[candidate].rank; r != nobody {
		return p.excess[r]
	}
	return 0
}

// group has the arrivals with the same gains.
type group struct {
	*gains
	top    int32 // index of the arrival that came last
	second int64 // begin of the arrival before that one, relative to the base
}

// gained returns how much earlier an operation would have ended, given its arrivals: it cannot end before all of them.
func (p *Path) gained(all []arrival, last int32) *gains {
	base := all[last].begin // when the last of them arrived
	if moved := p.group(all, base); len(p.groups) == 1 && !moved {
		return p.groups[0].gains
	}
	out := p.newGains()
	for c := int32(1); int(c) < len(p.candidates); c++ {
		out.ns[c] = max(0, -p.lastWithout(all, base, c))
	}
	latest := int64(math.MinInt64)
	for i := range all {
		a := &all[i]
		begin := int64(a.begin-base) - a.gain.at(everybody)
		if a.own > 0 {
			begin -= p.shortened(all, a, everybody)
		}
		latest = max(latest, begin)
	}
	out.ns[everybody] = max(0, -latest)
	p.note(all, last, out)
	return out
}

// group groups the arrivals, and reports whether one of them was late by itself.
func (p *Path) group(all []arrival, base otf2.Timestamp) (moved bool) {
	p.turn++
	p.groups = p.groups[:0]
	none := int32(-1)
	for i := range all {
		a := &all[i]
		p.fresh(a.gain)
		if a.own > 0 {
			moved = true
		}
		at := none
		if a.gain != nil && a.gain.of == p.turn {
			at = a.gain.group
		}
		if at < 0 || a.gain != nil && a.gain.of != p.turn {
			at = int32(len(p.groups))
			p.groups = append(p.groups, group{gains: a.gain, top: int32(i), second: math.MinInt64})
			if a.gain == nil {
				none = at
			} else {
				a.gain.of, a.gain.group = p.turn, at
			}
			continue
		}
		g := &p.groups[at]
		begin := int64(a.begin - base)
		if top := int64(all[g.top].begin - base); begin > top {
			g.top, g.second = int32(i), top
		} else {
			g.second = max(g.second, begin)
		}
	}
	return moved
}

// lastWithout returns when the last of the groups would have arrived, relative to the base, if a candidate had not
// been late.
func (p *Path) lastWithout(all []arrival, base otf2.Timestamp, candidate int32) int64 {
	latest := int64(math.MinInt64)
	rank := p.candidates[candidate].rank
	for i := range p.groups {
		g := &p.groups[i]
		gain := g.at(candidate)
		top := &all[g.top]
		begin := int64(top.begin-base) - gain
		if top.rank == rank && top.own > 0 {
			begin -= p.shortened(all, top, candidate)
			if g.second != math.MinInt64 {
				begin = max(begin, g.second-gain)
			}
		}
		latest = max(latest, begin)
	}
	return latest
}

// shortened returns how much earlier an arrival that was late by itself would have been: by no more than what the rank
// did itself right before, and not before the arrival that it is compared with.
func (p *Path) shortened(all []arrival, a *arrival, candidate int32) int64 {
	by := &all[a.by]
	left := int64(a.begin-by.begin) - a.gain.at(candidate) + by.gain.at(candidate)
	return max(0, min(a.local, a.own, left))
}

// note counts that the last arrival was late by itself, and how much of that clock errors may explain.
func (p *Path) note(all []arrival, last int32, out *gains) {
	a := &all[last]
	if a.own <= 0 || a.rank < 0 {
		return
	}
	p.watch(a.rank, uint64(max(0, min(a.local, a.own))))
	c := p.candidateOf[a.rank]
	if c == nobody {
		return
	}
	p.fresh(out)
	if got := out.at(c) - a.gain.at(c); got > 0 {
		x := &p.candidates[c]
		x.times++
		x.margin += min(uint64(got), a.uncertainty+all[a.by].uncertainty)
	}
}
