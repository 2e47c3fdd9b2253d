// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"slices"
)

// The work of ranks of a class at one place: before the n-th operation of a series. It is read ahead of what is played.

type place struct {
	class, of int32
	nth       uint32
}

type worked struct {
	rank int32
	ns   int64
}

// crowd has what the ranks of a class worked at a place.
type crowd struct {
	all          []worked // sorted if complete
	known, spent int      // arrivals that were read ahead, and played
	sorted       bool
}

// counter counts a rank's operations by series.
type counter [][]uint32

func newCounter(ranks, series int) counter {
	c := make(counter, ranks)
	for i := range c {
		c[i] = make([]uint32, series)
	}
	return c
}

func (c counter) next(a *arrived) uint32 {
	c[a.rank][a.of]++
	return c[a.rank][a.of]
}

// places reads ahead.
type places struct {
	*roles
	in     *reader
	wanted []bool // by class
	count  counter
	at     map[place]*crowd
	ahead  int // arrivals that are read ahead
	most   int
	rec    record
}

// mostAhead limits the arrivals of each rank that are read ahead, if some of a class never come.
const mostAhead = 256

// seen removes what is not needed any more once an arrival is played.
func (p *places) seen(a *arrived, nth uint32) {
	p.ahead--
	for _, class := range [...]int32{p.same[a.rank], p.alike[a.rank]} {
		if class >= 0 && p.wanted[class] {
			key := place{class, a.of, nth}
			if c := p.at[key]; c != nil {
				if c.spent++; c.spent == p.size[class] {
					delete(p.at, key)
				}
			}
		}
	}
}

// usual returns the median work of the ranks of a class that are not left out; known is false if there are none.
func (p *places) usual(key place, out func(rank int32) bool) (ns int64, known bool) {
	for p.at[key] == nil || p.at[key].known < p.size[key.class] && p.ahead < p.most {
		if !p.read() {
			break
		}
	}
	c := p.at[key]
	if c == nil {
		return 0, false
	}
	if !c.sorted {
		slices.SortFunc(c.all, func(a, b worked) int { return cmp.Compare(a.ns, b.ns) })
		c.sorted = true
	}
	n := 0
	for _, w := range c.all {
		if !out(w.rank) {
			n++
		}
	}
	at, half := 0, int64(0)
	for _, w := range c.all {
		if out(w.rank) {
			continue
		}
		if at == (n-1)/2 {
			half = w.ns
		}
		if at == n/2 {
			return (half + w.ns) / 2, true
		}
		at++
	}
	return 0, false
}

// read reads the next record ahead.
func (p *places) read() bool {
	for p.rec.read(p.in) {
		if p.rec.kind != arrival {
			continue
		}
		a := &p.rec.arrived
		nth := p.count.next(a)
		p.ahead++
		for _, class := range [...]int32{p.same[a.rank], p.alike[a.rank]} {
			if class < 0 || !p.wanted[class] {
				continue
			}
			key := place{class, a.of, nth}
			c := p.at[key]
			if c == nil {
				c = new(crowd)
				p.at[key] = c
			}
			if c.known++; a.work >= 0 {
				c.all, c.sorted = append(c.all, worked{a.rank, a.work}), false
			}
		}
		return true
	}
	return false
}
