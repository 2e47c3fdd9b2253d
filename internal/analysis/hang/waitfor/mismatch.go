// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/deviation"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// arguments lists the operations under way that members called with arguments that do not match.
func arguments(g *graph) (stops []Stop) {
	for _, o := range g.operations {
		f := regions.CollectiveNamed(o.name)
		var all []deviation.Asked
		var in []*part
		for i := range o.parts {
			p := &o.parts[i]
			if p.pending == nil || p.pending.Datatype == "" {
				continue
			}
			r := deviation.Request{Count: p.pending.Count, Datatype: p.pending.Datatype, Root: -1}
			if f != nil && f.Rooted() {
				r.Root = p.pending.Root
			}
			in, all = append(in, p), append(all, deviation.Asked{Ranks: []int{o.number(p)}, Request: r})
		}
		if len(all) == 0 {
			continue
		}
		if text, deviants, differ := deviation.Describe(o.name, all, o.comm.World); differ {
			stops = append(stops, Stop{Kind: verdict.Mismatch, Culprits: deviants, Among: worlds(o, in),
				Text: o.words() + ": " + text, Certain: true, of: []*operation{o}})
		}
	}
	return stops
}

// functions describes a cycle within one communicator: at one place of its sequence, members called different
// functions.
func functions(cycle []edge) Stop {
	s := Stop{Kind: verdict.Mismatch, Certain: true}
	var sides []side
	for _, e := range cycle {
		s.of = append(s.of, e.to)
		in := e.to.with(called, running)
		sides = append(sides, side{worlds(e.to, in), names(e.to, in) + " " + are(len(in)) + " in " + e.to.words()})
	}
	s.Culprits, s.Among, s.Text = minority(sides)
	return s
}

// side is a group of members that do the same.
type side struct {
	ranks []int
	text  string
}

// minority returns the ranks outside the majority (none if no side has more than half), all ranks concerned, and a
// text of what each side does, the smallest side first.
func minority(sides []side) (few, all []int, text string) {
	slices.SortStableFunc(sides, func(a, b side) int { return len(a.ranks) - len(b.ranks) })
	for i, s := range sides {
		all = append(all, s.ranks...)
		if i > 0 {
			text += ", "
		}
		text += s.text
	}
	if most := sides[len(sides)-1].ranks; 2*len(most) > len(all) {
		for _, s := range sides[:len(sides)-1] {
			few = append(few, s.ranks...)
		}
	}
	slices.Sort(few)
	slices.Sort(all)
	return few, slices.Compact(all), text
}
