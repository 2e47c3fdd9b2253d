// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/experiment/jobs"
)

// order describes a cycle: ranks are in the operations of several communicators in orders that do not fit together.
func order(g *graph, cycle []edge) Stop {
	one := true
	for _, e := range cycle {
		one = one && e.to.comm == cycle[0].to.comm
	}
	if one {
		return functions(cycle)
	}
	s := Stop{Kind: verdict.Order, Certain: true}
	for _, e := range cycle {
		s.of = append(s.of, e.to)
		s.Certain = s.Certain && (!e.queued || sameQueue(g, e))
	}
	sides := g.orders(s.of)
	s.Culprits, s.Among, s.Text = minority(sides)
	s.Text = "operations of several communicators are called in orders that do not fit together: " + s.Text + "; each waits for the other"
	if len(s.of) > 2 {
		s.Text = strings.TrimSuffix(s.Text, "each waits for the other") + fmt.Sprintf("a cycle of %d operations", len(s.of))
	}
	return s
}

// sameQueue tells whether both operations of an edge are known to be on one stream.
func sameQueue(g *graph, e edge) bool {
	p := e.to.in(e.member.member.Process)
	return p != nil && p.pending.Stream != 0 && p.pending.Stream == e.member.pending.Stream
}

// orders groups the ranks that are in, or have not come to, at least two operations of a cycle by the order in which they have them.
func (g *graph) orders(of []*operation) (sides []side) {
	type have struct {
		ranks []int
		order []*operation
		parts []*part
	}
	var all []have
	for _, p := range g.processes(of) {
		var h have
		for _, q := range g.queues[p] {
			if slices.Contains(of, q.of) {
				h.order = append(h.order, q.of)
				h.parts = append(h.parts, q.part)
			}
		}
		if len(h.order) == 0 {
			continue
		}
		for _, o := range of { // what it has not called comes behind
			for i := range o.parts {
				if q := &o.parts[i]; q.state == missing && q.member.Process == p && !slices.Contains(h.order, o) {
					h.order, h.parts = append(h.order, o), append(h.parts, q)
				}
			}
		}
		if len(h.order) < 2 {
			continue
		}
		rank := h.order[0].world(h.parts[0])
		at := slices.IndexFunc(all, func(o have) bool { return slices.Equal(o.order, h.order) })
		if at < 0 {
			all, at = append(all, have{order: h.order, parts: h.parts}), len(all)
		}
		if rank >= 0 {
			all[at].ranks = append(all[at].ranks, rank)
		}
	}
	for _, h := range all {
		slices.Sort(h.ranks)
		h.ranks = slices.Compact(h.ranks)
		var words []string
		for _, o := range h.order {
			words = append(words, o.words())
		}
		who := "a process"
		if len(h.ranks) > 0 {
			who = rankWords(h.ranks)
		}
		sides = append(sides, side{h.ranks, who + " " + strings.Join(words, " before ")})
	}
	return sides
}

// processes lists those that are in one of some operations, or have not come to it.
func (g *graph) processes(of []*operation) (all []*jobs.JobProcess) {
	for _, o := range of {
		for i := range o.parts {
			if p := &o.parts[i]; p.member != nil && !slices.Contains(all, p.member.Process) {
				all = append(all, p.member.Process)
			}
		}
	}
	return all
}
