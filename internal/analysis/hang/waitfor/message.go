// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// Messages of which one end is missing. Nothing shows whether one rank forgot its end, or the other one was not to call
// its own: the results name both.

// pairs describes the messages of a cycle within one communicator that lack an end. ok is false if there are none.
func pairs(cycle []edge) (s Stop, ok bool) {
	s = Stop{Kind: verdict.Missing, Certain: true}
	var texts []string
	for _, e := range cycle {
		s.of = append(s.of, e.to)
		if e.to.ends != "" && len(e.to.with(missing)) > 0 {
			s.Among = append(s.Among, worlds(e.to, e.to.with(missing, called, running))...)
			texts = append(texts, e.to.unpaired())
		}
	}
	slices.Sort(s.Among)
	s.Among, s.Text = slices.Compact(s.Among), strings.Join(texts, "; ")
	return s, len(texts) > 0
}

// unpaired says which end of a message is missing, and what that rank is in instead.
func (o *operation) unpaired() string {
	from, to := o.comm.Names[o.parts[0].rank], o.comm.Names[o.parts[1].rank]
	text := fmt.Sprintf("%s sends message %d on %s to %s, which has not posted the receive",
		from, o.ordinal, o.comm.Name, to)
	if o.parts[0].state == missing {
		text = fmt.Sprintf("%s receives message %d on %s from %s, which has not sent it",
			to, o.ordinal, o.comm.Name, from)
	}
	if len(o.waits) > 0 {
		text += " and is in " + o.waits[0].to.words()
	}
	return text
}

// unpaired describes, by communicator, the messages that ranks do not come out of, and of which NCCL has not said who
// the other ends are. Of a single rank's message it may be any member.
func unpaired(g *graph) (stops []Stop) {
	for i, o := range g.operations {
		same := func(p *operation) bool { return p.lone && p.comm == o.comm }
		if !o.lone || slices.ContainsFunc(g.operations[:i], same) {
			continue
		}
		s := Stop{Kind: verdict.Missing}
		var texts []string
		for _, p := range g.operations[i:] {
			if !same(p) {
				continue
			}
			s.of, s.Among = append(s.of, p), append(s.Among, worlds(p, p.with(running))...)
			texts = append(texts, fmt.Sprintf("%s %d of %s", p.name, p.ordinal, p.ends))
		}
		slices.Sort(s.Among)
		if s.Among = slices.Compact(s.Among); len(s.Among) == 1 {
			s.Among = slices.DeleteFunc(slices.Clone(o.comm.World), func(rank int) bool { return rank < 0 })
		}
		s.Text = fmt.Sprintf("messages on %s have not found their other ends, and NCCL has not said who these are: %s",
			o.comm.Name, strings.Join(texts, ", "))
		stops = append(stops, s)
	}
	return stops
}
