// SPDX-License-Identifier: Apache-2.0

package clocks

import "math"

// Bounds of relaxLines: rounds over the exchanges, and times visited in all.
const (
	relaxSweeps = 400
	relaxWork   = 200e6
	relaxShrink = 0.97
	leastPush   = 200 // ns
)

// relaxLines moves the lines by as little as it takes to keep the exchanges. Again and again, each broken exchange
// moves the offset and drift of its two hosts by the shortest way to where it is just kept. If lines exist that keep
// all exchanges, this converges to them (the method of Agmon and of Motzkin for linear inequalities). No push exceeds
// the room that the hosts' bounds left at first, and the limit shrinks with each round, so that wrong exchanges cannot
// pull the lines far from the right ones.
func (p *problem) relaxLines(from, to float64) {
	instants := 1
	for i := range p.xs {
		instants += p.xs[i].size()
	}
	half := max((to-from)/2, 1) // a drift counts as what it adds up to at the run's ends
	limit := float64(contradiction)
	for _, l := range p.lines {
		limit = max(limit, l.room)
	}
	// The drift moves less than the offset, in proportion to how far off each can be.
	stiff := min(1, likelyDrift*half/limit)
	stiff *= stiff
	for range min(relaxSweeps, max(1, int(relaxWork)/instants)) {
		broken := false
		for i := range p.xs {
			x := &p.xs[i]
			if x.outlier {
				continue
			}
			var b, e *instant
			after, before := math.Inf(-1), math.Inf(1)
			for j := range x.begins {
				if v := x.begins[j].time + p.lines[x.begins[j].host].offsetAt(x.begins[j].time); v > after {
					after, b = v, &x.begins[j]
				}
			}
			for j := range x.ends {
				if v := x.ends[j].time + p.lines[x.ends[j].host].offsetAt(x.ends[j].time); v < before {
					before, e = v, &x.ends[j]
				}
			}
			excess := after - before + 2*rounding
			if excess <= 0 || b.host == e.host {
				continue
			}
			broken = true
			norm := p.pushWeight(b, half, stiff) + p.pushWeight(e, half, stiff)
			if norm == 0 {
				continue
			}
			by := min(excess, limit) / norm
			p.pushLine(b, -by, half, stiff)
			p.pushLine(e, by, half, stiff)
		}
		if !broken {
			return
		}
		limit = max(limit*relaxShrink, leastPush)
	}
}

// pushWeight returns by how much a time moves if its host is pushed by one; references do not move.
func (p *problem) pushWeight(s *instant, half, stiff float64) float64 {
	if p.reference[s.host] == int(s.host) {
		return 0
	}
	arm := (s.time - p.lines[s.host].time) / half
	return 1 + stiff*arm*arm
}

func (p *problem) pushLine(s *instant, by, half, stiff float64) {
	if p.reference[s.host] == int(s.host) {
		return
	}
	l := &p.lines[s.host]
	arm := (s.time - l.time) / half
	l.value += by
	l.slope = min(max(l.slope+stiff*by*arm/half, -maxDrift), maxDrift)
}
