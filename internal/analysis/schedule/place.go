// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
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
	all          []worked
	sorted       int // arrivals that were known when all was sorted
	known, spent int // arrivals that were read ahead, and played
	medians      []median
}

// median is the median work of a crowd without the ranks that a scenario changes. It is calculated once, because
// scenarios may change all ranks of a class.
type median struct {
	ns    int64
	of    int // arrivals that were known then
	ranks int // of which the work is known
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
	worked []float64 // scratch
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

// usual returns the median work of the ranks of a class that scenario k leaves in, and of how many ranks it is.
func (p *places) usual(key place, k int, out func(rank int32) bool) (ns int64, ranks int) {
	for p.at[key] == nil || p.at[key].known < p.size[key.class] && p.ahead < p.most {
		if !p.read() {
			break
		}
	}
	c := p.at[key]
	if c == nil {
		return 0, 0
	}
	for len(c.medians) <= k {
		c.medians = append(c.medians, median{})
	}
	m := &c.medians[k]
	if m.of != c.known {
		if c.sorted != c.known {
			slices.SortFunc(c.all, func(a, b worked) int { return cmp.Compare(a.ns, b.ns) })
			c.sorted = c.known
		}
		p.worked = p.worked[:0]
		for _, w := range c.all {
			if !out(w.rank) {
				p.worked = append(p.worked, float64(w.ns))
			}
		}
		*m = median{int64(stats.Median(p.worked)), c.known, len(p.worked)}
	}
	return m.ns, m.ranks
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
			c := keyed.Entry(p.at, key)
			if c.known++; a.work >= 0 {
				c.all = append(c.all, worked{a.rank, a.work})
			}
		}
		return true
	}
	return false
}
