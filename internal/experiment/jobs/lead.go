// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// The clocks of machines may be any time apart, and nothing that identifies a job may depend on that: members of a
// communicator are known by its id, its size and their ranks. Only where a rank is there more than once, because jobs
// that share a directory have communicators of one id (the same recording played twice) or because a program makes
// several of one id, times decide which belong together. For that it is found out, roughly, by how much each clock
// leads: by as much as most of the communicators that it shares with others then lived at one time. Exact offsets,
// which times of events are corrected by, come from the events (package clocks).

// clockSlack is how exactly leads are known: members of a communicator begin about one after the other, ns.
const clockSlack = 1_000_000_000

// maxLeads bounds how many leads are tried for a clock.
const maxLeads = 256

// key is what members of a communicator have in common.
type key struct {
	id     uint64
	nranks int
}

// appearance is the members of one communicator, as far as they are known to be of one.
type appearance struct {
	ranks     map[int]*Rank
	together  Lifespan // on the clock, when all of them were alive
	finalized bool     // all of them were
}

func newAppearance(m *Rank) *appearance {
	return &appearance{map[int]*Rank{m.Comm().Rank: m}, Lifespan{m.begin(), m.end()}, m.Comm().FinalTime != 0}
}

// goesWith reports whether two may be of one communicator if the other's clock leads: their ranks are distinct, and,
// unless any time will do, they lived together.
func (a *appearance) goesWith(b *appearance, lead int64, anyTime bool) bool {
	for rank := range b.ranks {
		if a.ranks[rank] != nil {
			return false
		}
	}
	return anyTime || a.together.Meets(b.together.earlier(lead), clockSlack)
}

func (a *appearance) take(b *appearance, lead int64) {
	maps.Copy(a.ranks, b.ranks)
	t := b.together.earlier(lead)
	a.together = Lifespan{max(a.together.Begin, t.Begin), min(a.together.End, t.End)}
	a.finalized = a.finalized && b.finalized
}

// earlier is the stretch on a clock which is behind the one that it was seen on.
func (a Lifespan) earlier(by int64) Lifespan {
	at := func(t uint64) uint64 {
		switch {
		case t == math.MaxUint64: // nobody knows when
			return t
		case by > 0:
			return t - min(t, uint64(by))
		}
		return t + min(uint64(-by), math.MaxUint64-t)
	}
	return Lifespan{at(a.Begin), at(a.End)}
}

// seen is what a clock has seen: communicators by their keys, in the order of their begin.
type seen map[key][]*appearance

// add puts a member to those that it lived with, on its own clock.
func (s seen) add(m *Rank) {
	k, own := key{m.Comm().ID, m.Comm().NRanks}, newAppearance(m)
	for _, a := range s[k] {
		if a.goesWith(own, 0, false) && a.together.Meets(own.together, 0) {
			a.take(own, 0)
			return
		}
	}
	s[k] = append(s[k], own)
}

// fit is how well a lead explains what two clocks have seen.
type fit struct {
	lead     int64
	pairs    int    // communicators that then lived at one time
	agreeing int    // of them, those whose members recorded as many operations
	mismatch uint64 // by how much their lives differ in length, ns
}

// better tells that a explains more than b. Clocks that agree as they are have no lead, and of others that explain as
// much it is the smaller one.
func (a fit) better(b fit) bool {
	size := func(lead int64) uint64 { return uint64(max(lead, -lead)) }
	agreed := func(f fit) int {
		if f.lead == 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.pairs, b.pairs), cmp.Compare(agreed(a), agreed(b)), cmp.Compare(a.agreeing, b.agreeing),
		cmp.Compare(b.mismatch, a.mismatch), cmp.Compare(size(b.lead), size(a.lead))) > 0
}

// mate finds the appearance that one of another clock goes with; nil if there is none that is not used.
func (s seen) mate(k key, b *appearance, lead int64, used map[*appearance]bool) *appearance {
	for _, a := range s[k] {
		if !used[a] && a.goesWith(b, lead, false) {
			return a
		}
	}
	return nil
}

// explain returns how well a lead of the other clock explains what both have seen.
func (s seen) explain(other seen, lead int64) fit {
	f := fit{lead: lead}
	used := make(map[*appearance]bool)
	for k, list := range other {
		for _, b := range list {
			a := s.mate(k, b, lead, used)
			if a == nil {
				continue
			}
			used[a] = true
			f.pairs++
			if a.operations() == b.operations() {
				f.agreeing++
			}
			if a.finalized && b.finalized {
				x, y := a.together.End-a.together.Begin, b.together.End-b.together.Begin
				f.mismatch += max(x, y) - min(x, y)
			}
		}
	}
	return f
}

// operations is how many each of its members has recorded, the most of them.
func (a *appearance) operations() (most uint64) {
	for _, m := range a.ranks {
		n := uint64(0)
		for _, s := range m.Comm().Sequences {
			n += s.Count
		}
		most = max(most, n)
	}
	return most
}

// leadOf finds by how much another clock leads, and whether it shares any communicator at all.
func (s seen) leadOf(other seen) (lead int64, tied bool) {
	var shared []key
	for k := range other {
		if s[k] != nil {
			shared = append(shared, k)
		}
	}
	most := 0 // pairs that any lead could explain
	for _, k := range shared {
		most += min(len(s[k]), len(other[k]))
	}
	best := s.explain(other, 0)
	if best.pairs == most {
		return 0, most > 0
	}
	slices.SortFunc(shared, func(a, b key) int { // those first that tell most
		return cmp.Or(cmp.Compare(len(s[a])*len(other[a]), len(s[b])*len(other[b])), cmp.Compare(a.id, b.id),
			cmp.Compare(a.nranks, b.nranks))
	})
	var tried []int64
	for _, k := range shared {
		for _, a := range s[k] {
			for _, b := range other[k] {
				lead := int64(b.together.Begin - a.together.Begin)
				near := func(t int64) bool { return max(t, lead)-min(t, lead) < clockSlack/4 }
				if len(tried) == maxLeads || !a.goesWith(b, 0, true) || slices.ContainsFunc(tried, near) {
					continue
				}
				tried = append(tried, lead)
				if f := s.explain(other, lead); f.better(best) {
					best = f
				}
			}
		}
	}
	return best.lead, best.pairs > 0
}

// join takes over what another clock has seen.
func (s seen) join(other seen, lead int64) {
	used := make(map[*appearance]bool)
	for k, list := range other {
		for _, b := range list {
			a := s.mate(k, b, lead, used)
			if a == nil {
				a = &appearance{make(map[int]*Rank), b.together.earlier(lead), b.finalized}
				s[k] = append(s[k], a)
			}
			a.take(b, lead)
			used[a] = true
		}
	}
}

// measureLeads finds out by how much the clock of each process leads that of the machine with the most to compare.
func measureLeads(parts []*Process) {
	type clock struct {
		name  string
		parts []*Process
		seen  seen
		ranks int
	}
	byName := make(map[string]*clock)
	for _, p := range parts {
		name := p.ClockName()
		c := byName[name]
		if c == nil {
			c = &clock{name: name, seen: make(seen)}
			byName[name] = c
		}
		c.parts, p.lead, p.tied = append(c.parts, p), 0, true
	}
	if len(byName) < 2 {
		return
	}
	for _, m := range ranksByBegin(parts) {
		if !unsized(m.Comm()) {
			c := byName[m.Process.ClockName()]
			c.seen.add(m)
			c.ranks++
		}
	}
	left := slices.SortedFunc(maps.Values(byName),
		func(a, b *clock) int { return cmp.Or(cmp.Compare(b.ranks, a.ranks), cmp.Compare(a.name, b.name)) })
	all := left[0].seen
	for left = left[1:]; len(left) > 0; {
		lead, tied, next := int64(0), false, 0
		for i, c := range left {
			if lead, tied = all.leadOf(c.seen); tied {
				next = i
				break
			}
		}
		c := left[next]
		left = slices.Delete(left, next, next+1)
		if !tied {
			lead = 0
		}
		for _, p := range c.parts {
			p.lead, p.tied = lead, tied
		}
		all.join(c.seen, lead)
	}
}
