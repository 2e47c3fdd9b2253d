// SPDX-License-Identifier: Apache-2.0

package clocks

import "math"

// Bounds of relaxLines: how often it goes over the exchanges, and how many times it looks at in all.
const (
	relaxSweeps = 400
	relaxWork   = 200e6
	relaxShrink = 0.97
	leastPush   = 200 // ns
)

// relaxLines moves the lines by as little as it takes to keep the exchanges: each that is broken moves the two hosts'
// offset and drift by the shortest way to where it is just kept, again and again. Where there are lines that keep all
// exchanges the way leads there (Agmon's and Motzkin's method for linear inequalities). No push is larger than the room
// that the hosts' bounds left at first, less with each round: what is wrong by more than that cannot pull the lines far
// from those that are right.
func (p *problem) relaxLines(from, to float64) {
	instants := 1
	for i := range p.xs {
		instants += p.xs[i].size()
	}
	half := max((to-from)/2, 1) // a drift counts as much as what it makes of the run's ends
	limit := float64(contradiction)
	for _, l := range p.lines {
		limit = max(limit, l.room)
	}
	// The drift is moved as little as it can be off beside what the offset can be.
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
				if v := x.begins[j].time + p.lines[x.begins[j].host].at(x.begins[j].time); v > after {
					after, b = v, &x.begins[j]
				}
			}
			for j := range x.ends {
				if v := x.ends[j].time + p.lines[x.ends[j].host].at(x.ends[j].time); v < before {
					before, e = v, &x.ends[j]
				}
			}
			excess := after - before + 2*rounding
			if excess <= 0 || b.host == e.host {
				continue
			}
			broken = true
			norm := p.weight(b, half, stiff) + p.weight(e, half, stiff)
			if norm == 0 {
				continue
			}
			by := min(excess, limit) / norm
			p.push(b, -by, half, stiff)
			p.push(e, by, half, stiff)
		}
		if !broken {
			return
		}
		limit = max(limit*relaxShrink, leastPush)
	}
}

// weight is by how much a time moves if its host is pushed by one; the references stay.
func (p *problem) weight(s *instant, half, stiff float64) float64 {
	if p.reference[s.host] == int(s.host) {
		return 0
	}
	arm := (s.time - p.lines[s.host].time) / half
	return 1 + stiff*arm*arm
}

func (p *problem) push(s *instant, by, half, stiff float64) {
	if p.reference[s.host] == int(s.host) {
		return
	}
	l := &p.lines[s.host]
	arm := (s.time - l.time) / half
	l.value += by
	l.slope = min(max(l.slope+stiff*by*arm/half, -maxDrift), maxDrift)
}
