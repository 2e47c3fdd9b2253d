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
	ns   int64 // −1: unknown
	host int64 // ns that its host took between its calls, −1: unknown, or it may have waited meanwhile
}

// crowd has what the ranks of a class worked at a place.
type crowd struct {
	all          []worked
	sorted       int // arrivals that were known when all was sorted
	known, spent int // arrivals that were read ahead, and played
	medians      []median
}

// median is the median work of a crowd without the ranks that a scenario changes, or that of their hosts, if it is
// known of more ranks. It is calculated once, because scenarios may change all ranks of a class.
type median struct {
	ns     int64
	of     int // arrivals that were known then
	ranks  int // of which the work, or the host's, is known
	ofHost bool
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

// usual returns the median work of the ranks of a class that scenario k leaves in.
func (p *places) usual(key place, k int, out func(rank int32) bool) median {
	for p.at[key] == nil || p.at[key].known < p.size[key.class] && p.ahead < p.most {
		if !p.read() {
			break
		}
	}
	c := p.at[key]
	if c == nil {
		return median{}
	}
	for len(c.medians) <= k {
		c.medians = append(c.medians, median{})
	}
	m := &c.medians[k]
	if m.of != c.known {
		if c.sorted != c.known { // for all scenarios, as each leaves most ranks in
			slices.SortFunc(c.all, func(a, b worked) int { return cmp.Compare(a.ns, b.ns) })
			c.sorted = c.known
		}
		*m = p.medianOf(c.all, out, func(w *worked) int64 { return w.ns })
		if 2*m.ranks < c.known {
			hosts := p.medianOf(c.all, out, func(w *worked) int64 { return w.host })
			if hosts.ranks > m.ranks {
				*m = hosts
				m.ofHost = true
			}
		}
		m.of = c.known
	}
	return *m
}

func (p *places) medianOf(all []worked, out func(rank int32) bool, ns func(*worked) int64) median {
	p.worked = p.worked[:0]
	for i := range all {
		if w := &all[i]; !out(w.rank) && ns(w) >= 0 {
			p.worked = append(p.worked, float64(ns(w)))
		}
	}
	return median{ns: int64(stats.Median(p.worked)), ranks: len(p.worked)}
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
			c.known++
			c.all = append(c.all, worked{a.rank, a.work, a.besideHost()})
		}
		return true
	}
	return false
}
