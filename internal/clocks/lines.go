// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"cmp"
	"math"
	"slices"
)

// problem is the fit in progress: an offset curve for each host that keeps all exchanges.
type problem struct {
	hosts     int
	xs        []exchange
	reference []int // by host, of its group; a host that nothing ties to another is its own reference
	curves    []curve
	lines     []line
	outliers  []int // by host
}

// curve is a host's offset over its own time: linear between the knots, with the first and last slope beyond.
type curve struct{ time, value []float64 }

func (c *curve) offsetAt(t float64) float64 {
	i, _ := slices.BinarySearch(c.time, t)
	i = min(max(i-1, 0), len(c.time)-2)
	return c.value[i] + (c.value[i+1]-c.value[i])/(c.time[i+1]-c.time[i])*(t-c.time[i])
}

func newProblem(hosts int, xs []exchange) *problem {
	p := &problem{hosts: hosts, xs: xs, outliers: make([]int, hosts)}
	p.findGroups()
	return p
}

// findGroups finds the groups of hosts that exchanges connect. The first host of a group is its reference.
func (p *problem) findGroups() {
	p.reference = make([]int, p.hosts)
	for h := range p.reference {
		p.reference[h] = h
	}
	root := func(h int) int {
		for p.reference[h] != h {
			p.reference[h] = p.reference[p.reference[h]]
			h = p.reference[h]
		}
		return h
	}
	for i := range p.xs {
		first := root(int(p.xs[i].begins[0].host))
		for _, list := range [2][]instant{p.xs[i].begins, p.xs[i].ends} {
			for _, s := range list {
				r := root(int(s.host))
				p.reference[max(r, first)] = min(r, first)
				first = min(r, first)
			}
		}
	}
	for h := range p.reference {
		p.reference[h] = root(h)
	}
}

// fitLines gives each host a straight line, from the references outwards. Hosts with the most bounds to hosts that
// already have a line come first. A host that is bounded on one side only stays as it is, moved by as little as its
// bounds require.
func (p *problem) fitLines() {
	p.lines = make([]line, p.hosts)
	placed := make([]bool, p.hosts)
	left := 0
	for h, r := range p.reference {
		placed[h] = h == r
		if !placed[h] {
			left++
		}
	}
	from, to := p.timeRanges()
	for left > 0 {
		all := make([]*bounds, p.hosts)
		for h := range all {
			if !placed[h] {
				all[h] = &bounds{from: from[h], to: to[h]}
			}
		}
		var candidates []int
		for range lineRounds {
			p.collectBounds(all, placed)
			candidates = candidates[:0]
			for h, b := range all {
				if b != nil && b.upperCount > 0 && b.lowerCount > 0 {
					p.lines[h] = b.fitLine()
					candidates = append(candidates, h)
					all[h] = &bounds{from: b.from, to: b.to, slope: p.lines[h].slope}
				}
			}
		}
		if len(candidates) == 0 {
			p.collectBounds(all, placed)
			h := slices.IndexFunc(all, func(b *bounds) bool { return b != nil && b.upperCount+b.lowerCount > 0 })
			if h < 0 {
				return // unreachable: a group is connected
			}
			p.lines[h] = all[h].oneSidedLine()
			placed[h] = true
			left--
			continue
		}
		spread := func(h int) float64 { return p.lines[h].most - p.lines[h].least }
		slices.SortStableFunc(candidates, func(a, b int) int { return cmp.Compare(spread(a), spread(b)) })
		for i, h := range candidates {
			if i >= (len(candidates)+7)/8 && spread(h) > 4*spread(candidates[0]) {
				break
			}
			placed[h] = true
			left--
		}
	}
}

// lineRounds is how often a host's bounds are chosen anew along the line found before.
const lineRounds = 3

// timeRanges returns the hosts' first and last times in exchanges.
func (p *problem) timeRanges() (from, to []float64) {
	from, to = make([]float64, p.hosts), make([]float64, p.hosts)
	for h := range from {
		from[h], to[h] = math.Inf(1), math.Inf(-1)
	}
	for i := range p.xs {
		for _, list := range [2][]instant{p.xs[i].begins, p.xs[i].ends} {
			for _, s := range list {
				from[s.host], to[s.host] = min(from[s.host], s.time), max(to[s.host], s.time)
			}
		}
	}
	return from, to
}

// collectBounds gives each host without a line its bounds from the hosts that have one.
func (p *problem) collectBounds(all []*bounds, placed []bool) {
	for i := range p.xs {
		x := &p.xs[i]
		if x.outlier {
			continue
		}
		after, before := math.Inf(-1), math.Inf(1)
		for _, b := range x.begins {
			if placed[b.host] {
				after = max(after, b.time+p.lines[b.host].offsetAt(b.time))
			}
		}
		for _, e := range x.ends {
			if placed[e.host] {
				before = min(before, e.time+p.lines[e.host].offsetAt(e.time))
			}
		}
		if !math.IsInf(after, -1) {
			for _, e := range x.ends {
				if b := all[e.host]; b != nil {
					b.addLower(e.time, after-e.time)
				}
			}
		}
		if !math.IsInf(before, 1) {
			for _, s := range x.begins {
				if b := all[s.host]; b != nil {
					b.addUpper(s.time, before-s.time)
				}
			}
		}
	}
}

// oneSidedLine returns the line nearest to zero that keeps the bounds.
func (b *bounds) oneSidedLine() line {
	l := line{time: (b.from + b.to) / 2, least: -maxDrift, most: maxDrift}
	for i := range lineBins {
		for _, u := range b.upper[i] {
			l.value = min(l.value, u.value)
		}
		for _, u := range b.lower[i] {
			l.value = max(l.value, u.value)
		}
	}
	return l
}

// dropOutliers removes from the exchanges the times that contradict the others by more than tolerance: of an operation
// of many hosts the times that contradict the most, of a message both. It returns how many it removed.
func (p *problem) dropOutliers(tolerance float64, at func(host int32, t float64) float64) int {
	dropped := 0
	for i := range p.xs {
		x := &p.xs[i]
		for !x.outlier {
			host, which, begin, found := p.worstInstant(x, tolerance, at)
			if !found {
				break
			}
			dropped++
			if host < 0 {
				p.dropExchange(x)
				break
			}
			p.outliers[host]++
			if begin {
				x.begins = slices.Delete(slices.Clone(x.begins), which, which+1)
			} else {
				x.ends = slices.Delete(slices.Clone(x.ends), which, which+1)
			}
			if len(x.begins) == 0 || len(x.ends) == 0 {
				x.outlier = true
			}
		}
	}
	return dropped
}

func (p *problem) dropExchange(x *exchange) {
	x.outlier = true
	seen := make(map[int32]bool)
	for _, list := range [2][]instant{x.begins, x.ends} {
		for _, s := range list {
			if !seen[s.host] {
				seen[s.host] = true
				p.outliers[s.host]++
			}
		}
	}
}

// worstInstant returns the time of an exchange that contradicts the most others; host is −1 if no single one does.
func (p *problem) worstInstant(x *exchange, tolerance float64, at func(host int32, t float64) float64) (
	host int32, which int, begin, found bool) {
	begins, ends := make([]float64, len(x.begins)), make([]float64, len(x.ends))
	last, first := math.Inf(-1), math.Inf(1)
	for i, b := range x.begins {
		begins[i] = b.time + at(b.host, b.time)
		last = max(last, begins[i])
	}
	for i, e := range x.ends {
		ends[i] = e.time + at(e.host, e.time)
		first = min(first, ends[i])
	}
	if last-first <= tolerance {
		return 0, 0, false, false
	}
	lateBegin, earlyEnd := 0, 0 // how many others the last begin and the first end contradict
	for i, e := range ends {
		if last-e > tolerance {
			lateBegin++
		}
		if e == first {
			which = i
		}
	}
	for _, b := range begins {
		if b-first > tolerance {
			earlyEnd++
		}
	}
	switch {
	case lateBegin > earlyEnd:
		which = slices.Index(begins, last)
		return x.begins[which].host, which, true, true
	case earlyEnd > lateBegin:
		return x.ends[which].host, which, false, true
	}
	return -1, 0, false, true
}
