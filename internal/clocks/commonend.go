// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Tuning of commonEnds.
const (
	// leastCollectives is how many collectives among the same hosts a stretch between knots needs.
	leastCollectives = 5
	// tightShare is the part of them that counts, of those that took the host that came last the least time.
	tightShare = 4
	// maxHintConflicts is how many contradictions with hints are resolved at a knot before all hints there are dropped.
	maxHintConflicts = 16
)

// endsTogether are the collectives among the same hosts in a stretch between knots.
type endsTogether struct{ xs []*exchange }

// commonEnds returns estimated exchanges, which are not proven. A collective in which each host waits for all others
// ends on all of them at about the same time, regardless of who arrived last. The bounds alone do not say so: where the
// same host always arrives last, they leave its clock open by the whole time that the others wait for it, and the
// middle of the bounds is off by half of that.
//
// Of the collectives among the same hosts in a stretch between knots, only those that took the last host the least time
// count. For each host, the median difference of its ends from those of the first host is assumed to be zero, within
// the time that these collectives take, or within the spread of the differences if that is greater.
func (p *problem) commonEnds(knots int) (hints []exchange) {
	groups := make(map[string]*endsTogether)
	var order []*endsTogether
	var key []byte

	for i := range p.xs {
		x := &p.xs[i]
		if _, _, ok := x.lastBegin(); !ok || x.outlier {
			continue
		}
		key = binary.AppendUvarint(key[:0], uint64(p.stretchOf(x.ends[0], knots)))
		for _, e := range x.ends {
			key = binary.AppendUvarint(key, uint64(e.host))
		}
		g := groups[string(key)]
		if g == nil {
			g = new(endsTogether)
			groups[string(key)] = g
			order = append(order, g)
		}
		g.xs = append(g.xs, x)
	}
	for _, g := range order {
		if len(g.xs) >= leastCollectives {
			hints = g.appendHints(hints, p)
		}
	}
	return hints
}

// appendHints appends two exchanges for each host but the first: its ends and those of the first host differ by no more
// than the width in either direction.
func (g *endsTogether) appendHints(hints []exchange, p *problem) []exchange {
	duration := func(x *exchange) float64 { _, took, _ := x.lastBegin(); return took }
	slices.SortStableFunc(g.xs, func(x, y *exchange) int { return cmp.Compare(duration(x), duration(y)) })
	tight := g.xs[:max(leastCollectives, len(g.xs)/tightShare)]
	middle := tight[len(tight)/2]
	differences := make([]float64, len(tight))

	for i := 1; i < len(middle.ends); i++ {
		difference := func(x *exchange) float64 {
			first, other := x.ends[0], x.ends[i]
			return other.time + p.byCurve(other.host, other.time) - first.time - p.byCurve(first.host, first.time)
		}
		for j, x := range tight {
			differences[j] = difference(x)
		}
		slices.Sort(differences)
		median := differences[len(differences)/2]
		for j := range differences {
			differences[j] = math.Abs(differences[j] - median)
		}
		slices.Sort(differences)
		width := max(duration(middle), differences[len(differences)/2])

		first, other := middle.ends[0], middle.ends[i]
		other.time += median - difference(middle)
		hints = append(hints,
			exchange{begins: []instant{{first.host, first.time - width}}, ends: []instant{other}, hint: true},
			exchange{begins: []instant{{other.host, other.time - width}}, ends: []instant{first}, hint: true})
	}
	return hints
}

// dropHints excludes the hints of a cycle of contradictory exchanges, and reports whether it had any: what is proven
// stays.
func (k *knotSystem) dropHints(circle []int32) bool {
	found := false
	for _, i := range circle {
		if k.p.xs[i].hint {
			k.skip[i], found = true, true
		}
	}
	if found {
		k.conflicts++
	}
	if k.conflicts == maxHintConflicts {
		for _, i := range k.xs {
			if k.p.xs[i].hint {
				k.skip[i] = true
			}
		}
	}
	return found
}
