// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"math"
	"slices"
)

// knotSystem holds the constraints at one knot: for every exchange near it, end + offset of its host ≥ begin + offset
// of its host. These are difference constraints, so shortest paths from the reference give the greatest and the least
// offset of each host. Both sets of offsets keep all exchanges, and so does every mixture of them, such as the middle.
type knotSystem struct {
	p    *problem
	xs   []int32
	skip map[int32]bool // exchanges found to contradict the others
	// times of the exchanges' begins and ends, in the order of xs, on the present curves, with their distance to the
	// knot
	begins, ends [][]knotTime
	widen        []float64 // by host, ns per ns of distance; nil: none
	slack        float64   // granted to every exchange so that all can be kept
	conflicts    int       // contradictions that dropped hints resolved
}

type knotTime struct {
	host     int32
	value    float64
	distance float64
}

// rounding is how far rounding offsets to whole nanoseconds can move a begin later or an end earlier.
const rounding = 1

func newKnotSystem(p *problem, xs []int32, knot float64) *knotSystem {
	k := &knotSystem{p: p, xs: xs, skip: make(map[int32]bool)}
	times := func(list []instant, shift float64) []knotTime {
		out := make([]knotTime, len(list))
		for i, s := range list {
			v := s.time + p.curves[s.host].offsetAt(s.time)
			out[i] = knotTime{s.host, v + shift, math.Abs(v - knot)}
		}
		return out
	}
	for _, i := range xs {
		k.begins = append(k.begins, times(p.xs[i].begins, rounding))
		k.ends = append(k.ends, times(p.xs[i].ends, -rounding))
	}
	return k
}

func (k *knotSystem) width(t *knotTime) float64 {
	if k.widen == nil {
		return 0
	}
	return k.widen[t.host] * t.distance
}

// path is where a host's bound comes from.
type path struct {
	from     int32 // host, −1: none
	exchange int32
	weight   float64
}

// relax lowers the offsets (sign 1) until every exchange holds, or raises them (sign −1). Hosts for which fixed is true
// stay. If the exchanges contradict each other, it returns the exchanges of one contradictory cycle and by how much
// each of them is short; otherwise nil.
func (k *knotSystem) relax(offset []float64, sign float64, fixed func(h int32) bool) (circle []int32, deficit float64) {
	paths := make([]path, len(offset))
	for i := range paths {
		paths[i].from = -1
	}
	from, to := k.ends, k.begins
	if sign < 0 {
		from, to = to, from
	}
	const least = 1e-3 // ns; smaller differences are rounding errors
	for sweep := 0; sweep <= len(offset)+1; sweep++ {
		changed := false
		for n := range k.xs {
			if k.skip[k.xs[n]] {
				continue
			}
			best, via := math.Inf(1), -1
			for i := range from[n] {
				s := &from[n][i]
				if v := sign*(s.value+offset[s.host]) + k.width(s); v < best {
					best, via = v, i
				}
			}
			if via < 0 || math.IsInf(best, 1) {
				continue
			}
			host := from[n][via].host
			for i := range to[n] {
				d := &to[n][i]
				if d.host == host || fixed != nil && fixed(d.host) {
					continue
				}
				v := best + k.slack - sign*d.value + k.width(d)
				if v < sign*offset[d.host]-least {
					offset[d.host] = sign * v
					paths[d.host] = path{host, k.xs[n], v - sign*offset[host]}
					changed = true
				}
			}
		}
		if !changed {
			return nil, 0
		}
		if sweep >= 2 {
			if circle, deficit := findCircle(paths); circle != nil {
				return circle, deficit
			}
		}
	}
	return nil, 0
}

// findCircle returns a cycle of hosts whose bounds depend on themselves, if there is one.
func findCircle(paths []path) (circle []int32, deficit float64) {
	seen := make([]int32, len(paths)) // number of the walk that visited the host
	for h := range paths {
		walk := int32(h + 1)
		at := int32(h)
		for at >= 0 && seen[at] == 0 {
			seen[at] = walk
			at = paths[at].from
		}
		if at < 0 || seen[at] != walk {
			continue
		}
		sum := 0.0
		for start := at; ; {
			circle = append(circle, paths[at].exchange)
			sum += paths[at].weight
			if at = paths[at].from; at == start {
				break
			}
		}
		return circle, -sum / float64(len(circle))
	}
	return nil, 0
}

// solve returns the greatest and the least offsets; they are infinite where nothing bounds a host. Exchanges that
// contradict each other by more than tolerance are dropped; for smaller contradictions all exchanges get slack. Hints
// that contradict exchanges or each other are dropped first.
func (k *knotSystem) solve(tolerance float64) (most, least []float64) {
	for {
		most, least = make([]float64, k.p.hosts), make([]float64, k.p.hosts)
		for h := range most {
			most[h], least[h] = math.Inf(1), math.Inf(-1)
			if k.p.reference[h] == h {
				most[h], least[h] = 0, 0
			}
		}
		circle, deficit := k.relax(most, 1, nil)
		if circle == nil {
			circle, deficit = k.relax(least, -1, nil)
		}
		if circle == nil {
			return most, least
		}
		if k.dropHints(circle) {
			continue
		}
		if k.slack+deficit > tolerance {
			for _, x := range circle {
				k.skip[x] = true
			}
			continue
		}
		k.slack += max(deficit, 0) + 0.01
	}
}

// chooseOffsets returns offsets that keep the exchanges of all hosts: the middle of the bounds for bounded hosts, the
// offset nearest to wanted for the others.
func (k *knotSystem) chooseOffsets(most, least, wanted []float64) []float64 {
	offset := slices.Clone(wanted)
	bounded := make([]bool, len(offset))
	loose := false
	for h := range offset {
		switch {
		case !math.IsInf(most[h], 0) && !math.IsInf(least[h], 0):
			bounded[h], offset[h] = true, (most[h]+least[h])/2
		default:
			loose = true
		}
	}
	if !loose {
		return offset
	}
	// A host with an upper bound from bounded hosts has no lower bound, and gives others lower bounds only. So these
	// hosts move down first, then the others move up.
	up := func(h int32) bool { return bounded[h] || math.IsInf(most[h], 1) }
	k.relax(offset, 1, up)
	k.relax(offset, -1, func(h int32) bool { return !up(h) || bounded[h] })
	return offset
}
