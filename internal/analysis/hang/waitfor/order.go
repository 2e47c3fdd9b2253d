// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// order describes a cycle in which ranks are in operations of several communicators in conflicting orders, or in
// messages without counterparts. It fails for collectives of one communicator, see disagreements.
func order(g *graph, cycle []edge) (s Stop, ok bool) {
	one := true
	for _, e := range cycle {
		one = one && e.to.comm == cycle[0].to.comm
	}
	if one {
		return pairs(cycle)
	}
	s = Stop{Kind: verdict.Order, Certain: true}
	for _, e := range cycle {
		s.of = append(s.of, e.to)
		s.Certain = s.Certain && (!e.queued || sameQueue(e))
	}
	all := g.sequences(s.of)
	alike := g.countAlike(all, s.of)
	s.Culprits, s.Among, s.Text = minority(orderSides(all))
	if n := len(s.of); n > 2 {
		s.Text += fmt.Sprintf(": a cycle, each of the %d operations waits for another one of them", n)
	} else {
		s.Text += ": each waits for the other"
	}
	if len(alike) > 0 {
		s.Text += fmt.Sprintf("; %s have communicators of their own in place of %s", units.RankNames(alike),
			smaller(s.of).comm.Name)
	}
	return s, true
}

// sameQueue reports whether both operations of an edge are known to be on one stream.
func sameQueue(e edge) bool {
	p := e.to.in(e.member.member.Process)
	return p != nil && p.pending != nil && p.pending.Stream != 0 && p.pending.Stream == e.member.pending.Stream
}

// sequence lists operations of a cycle in the order in which ranks have them: first those that they called, then those
// that none of them has called.
type sequence struct {
	ranks  []int // of the world, ascending
	order  []*operation
	called int // the largest number of them that any of the ranks has called
}

// sequences groups ranks by the order in which they have the operations, the smallest group first. It considers the
// ranks that are in, or have not come to, at least two operations of a cycle.
func (g *graph) sequences(of []*operation) (all []sequence) {
	for _, p := range g.processes(of) {
		h, rank := g.sequence(p, of)
		if h.called == 0 || len(h.order) < 2 {
			continue
		}
		at := slices.IndexFunc(all, func(o sequence) bool { return slices.Equal(o.order, h.order) })
		if at < 0 {
			all, at = append(all, h), len(all)
		}
		all[at].called = max(all[at].called, h.called)
		if rank >= 0 {
			all[at].ranks = append(all[at].ranks, rank)
		}
	}
	for i := range all {
		slices.Sort(all[i].ranks)
		all[i].ranks = slices.Compact(all[i].ranks)
	}
	sortSequences(all)
	return all
}

// sortSequences puts those of the fewest ranks first.
func sortSequences(all []sequence) {
	slices.SortStableFunc(all, func(a, b sequence) int {
		return cmp.Or(cmp.Compare(len(a.ranks), len(b.ranks)), slices.Compare(a.ranks, b.ranks))
	})
}

// countAlike adds to sequences of two operations the ranks that have another communicator of the same size in place of
// the smaller one's, as in parts of a world, and called the same operation there, before or after the larger one's. It
// returns these ranks.
func (g *graph) countAlike(all []sequence, of []*operation) (added []int) {
	if len(of) != 2 || len(all) != 2 || of[0].ends+of[1].ends != "" {
		return nil
	}
	small, large := smaller(of), of[0]
	if large == small {
		large = of[1]
	}
	for _, c := range g.communicators {
		if c.Size != small.comm.Size || slices.ContainsFunc(c.World, func(w int) bool {
			return w < 0 || slices.Contains(small.comm.World, w)
		}) {
			continue
		}
		for rank, r := range c.Ranks {
			at := slices.Index(large.comm.World, c.World[rank])
			if r == nil || at < 0 || large.comm.Ranks[at] == nil {
				continue
			}
			first, l := small, large.comm.Ranks[at]
			switch here, there := r.Reached[small.name], l.Reached[large.name]; {
			case here == small.ordinal+1 && there == large.ordinal+1 && r.Begun != l.Begun:
				if l.Begun < r.Begun {
					first = large
				}
			case here == small.ordinal && there > large.ordinal:
				first = large
			case here <= small.ordinal || there > large.ordinal:
				continue
			}
			h := slices.IndexFunc(all, func(h sequence) bool { return h.order[0] == first })
			if h < 0 || slices.Contains(all[h].ranks, c.World[rank]) {
				continue
			}
			all[h].ranks, added = append(all[h].ranks, c.World[rank]), append(added, c.World[rank])
			slices.Sort(all[h].ranks)
		}
	}
	slices.Sort(added)
	sortSequences(all)
	return added
}

// smaller returns the operation of the smaller communicator.
func smaller(of []*operation) *operation {
	return slices.MinFunc(of, func(a, b *operation) int { return cmp.Compare(a.comm.Size, b.comm.Size) })
}

// sequence returns the sequence of one process, and the process's rank in the world, −1 if unknown.
func (g *graph) sequence(p *progress.Process, of []*operation) (h sequence, rank int) {
	rank = -1
	for _, q := range g.queues[p] {
		if slices.Contains(of, q.of) {
			h.order = append(h.order, q.of)
			rank = h.order[0].world(h.order[0].in(p))
		}
	}
	h.called = len(h.order)
	for _, o := range of {
		absent := slices.ContainsFunc(o.parts, func(q part) bool { return q.state == missing && q.member.Process == p })
		if absent && !slices.Contains(h.order, o) {
			h.order = append(h.order, o)
		}
	}
	return h, rank
}

// orderSides says who calls what before what. The first sequence is described in full, the ones that have two
// operations in the opposite order by these two.
func orderSides(all []sequence) (sides []side) {
	for i := range all {
		h := &all[i]
		who := "a process"
		if len(h.ranks) > 0 {
			who = units.RankNames(h.ranks)
		}
		what := h.words()
		switch {
		case i == 0:
			what = "called " + what
		case h.reverses(&all[0]):
			what = "the other way round"
		}
		sides = append(sides, side{h.ranks, who + " " + what})
	}
	return sides
}

// words names the operations in their order.
func (h *sequence) words() string {
	var called, not []string
	for i, o := range h.order {
		if i < h.called {
			called = append(called, o.words())
		} else {
			not = append(not, o.words())
		}
	}
	text := strings.Join(called, " before ")
	if len(not) > 0 {
		text += " and has not come to " + strings.Join(not, " or ")
	}
	return text
}

// reverses reports whether the two sequences have some two operations in opposite orders.
func (h *sequence) reverses(o *sequence) bool {
	return len(h.order) == 2 && len(o.order) == 2 && h.order[0] == o.order[1] && h.order[1] == o.order[0] &&
		h.called == o.called
}

// processes lists the processes that are in one of the operations, or have not come to one.
func (g *graph) processes(of []*operation) (all []*progress.Process) {
	for _, o := range of {
		for i := range o.parts {
			if p := &o.parts[i]; p.member != nil && !slices.Contains(all, p.member.Process) {
				all = append(all, p.member.Process)
			}
		}
	}
	return all
}
