// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
)

// The clocks of machines may differ by any time, and the identification of jobs must not depend on that: members of a
// communicator are identified by its id, its size and their ranks. Times decide only if a rank occurs more than once,
// because jobs that share a directory have communicators with one id (the same recording played twice) or because a
// program makes several with one id. For that the lead of each clock is estimated: the one with which most of the
// communicators that it shares with others lived at one time. The exact offsets for times of events come from the
// events (package clocks).

// clockSlack is the accuracy of leads: members of a communicator begin about one after the other, ns.
const clockSlack = 1_000_000_000

// maxLeads bounds how many leads are tried for a clock.
const maxLeads = 256

// key identifies members that may be of one communicator.
type key struct {
	id     uint64
	nranks int
}

// appearance is a set of members that are known to be of one communicator.
type appearance struct {
	ranks     map[int]*Rank
	together  Lifespan // on the clock, when all of them were alive
	finalized bool     // all of them were
}

func newAppearance(m *Rank) *appearance {
	return &appearance{map[int]*Rank{m.Comm().Rank: m}, Lifespan{m.begin(), m.endTime()}, m.Comm().FinalTime != 0}
}

// goesWith reports whether two may be of one communicator if the other's clock leads: their ranks are distinct, and,
// unless any time will do, they lived together.
func (a *appearance) goesWith(b *appearance, lead int64, anyTime bool) bool {
	for rank := range b.ranks {
		if a.ranks[rank] != nil {
			return false
		}
	}
	return anyTime || a.together.Overlaps(b.together.shiftBack(lead), clockSlack)
}

func (a *appearance) addMember(b *appearance, lead int64) {
	maps.Copy(a.ranks, b.ranks)
	t := b.together.shiftBack(lead)
	a.together = Lifespan{max(a.together.Begin, t.Begin), min(a.together.End, t.End)}
	a.finalized = a.finalized && b.finalized
}

// shiftBack returns the stretch on a clock that is behind its own by `by`.
func (a Lifespan) shiftBack(by int64) Lifespan {
	at := func(t uint64) uint64 {
		switch {
		case t == math.MaxUint64: // unknown
			return t
		case by > 0:
			return t - min(t, uint64(by))
		}
		return t + min(uint64(-by), math.MaxUint64-t)
	}
	return Lifespan{at(a.Begin), at(a.End)}
}

// seen holds the communicators seen by a clock, by their keys, in the order of their begin.
type seen map[key][]*appearance

// addMember adds a member to those that it lived with, on its own clock.
func (s seen) addMember(m *Rank) {
	k, own := key{m.Comm().ID, m.Comm().NRanks}, newAppearance(m)
	for _, a := range s[k] {
		if a.goesWith(own, 0, false) && a.together.Overlaps(own.together, 0) {
			a.addMember(own, 0)
			return
		}
	}
	s[k] = append(s[k], own)
}

// fit is how well a lead explains the observations of two clocks.
type fit struct {
	lead     int64
	pairs    int    // number of communicators that lived at one time with this lead
	agreeing int    // of them, those whose members recorded as many operations
	mismatch uint64 // by how much their lives differ in length, ns
}

// better reports whether a explains more than b. Clocks that agree have no lead; of equally good leads the smaller one
// wins.
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

// findMate returns an unused appearance on one clock that goes with one on another; nil if there is none.
func (s seen) findMate(k key, b *appearance, lead int64, used map[*appearance]bool) *appearance {
	for _, a := range s[k] {
		if !used[a] && a.goesWith(b, lead, false) {
			return a
		}
	}
	return nil
}

// explain returns how well a lead of the other clock explains the observations of both.
func (s seen) explain(other seen, lead int64) fit {
	f := fit{lead: lead}
	used := make(map[*appearance]bool)
	for k, list := range other {
		for _, b := range list {
			a := s.findMate(k, b, lead, used)
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

// operations returns the largest number of operations that one of its members has recorded.
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

// leadOf returns the lead of another clock, and whether both share any communicator.
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
	slices.SortFunc(shared, func(a, b key) int { // the most significant ones first
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

// joinClock takes over the observations of another clock.
func (s seen) joinClock(other seen, lead int64) {
	used := make(map[*appearance]bool)
	for k, list := range other {
		for _, b := range list {
			a := s.findMate(k, b, lead, used)
			if a == nil {
				a = &appearance{make(map[int]*Rank), b.together.shiftBack(lead), b.finalized}
				s[k] = append(s[k], a)
			}
			a.addMember(b, lead)
			used[a] = true
		}
	}
}

// measureLeads estimates the lead of each process's clock against the machine with the most to compare.
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
		c := keyed.EntryMade(byName, name, func() *clock { return &clock{name: name, seen: make(seen)} })
		c.parts, p.lead, p.tied = append(c.parts, p), 0, true
	}
	if len(byName) < 2 {
		return
	}
	for _, m := range ranksByBegin(parts) {
		if !unsized(m.Comm()) {
			c := byName[m.Process.ClockName()]
			c.seen.addMember(m)
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
		all.joinClock(c.seen, lead)
	}
}
