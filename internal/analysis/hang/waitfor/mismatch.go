// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"fmt"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/deviation"
)

// disagreements lists the operations that members called with other arguments, or in another order, as package
// deviation finds them. The job goes on after those that are in nobody's way.
func disagreements(g *graph, j *progress.Job, now time.Time) (stops []Stop) {
	for _, d := range deviation.Find(j.Instances(), uint64(max(now.UnixNano()-Young, 0))) {
		if len(d.Among) == 0 {
			continue
		}
		s := Stop{Kind: verdict.Mismatch, Culprits: d.Deviants, Among: d.Among, Certain: true}
		switch {
		case d.Reordered:
			s.Text = fmt.Sprintf("on %s, %s", d.Name, d.Detail)
		case d.Last > d.First:
			s.Text = fmt.Sprintf("%s %d-%d on %s: %s", d.Function, d.First, d.Last, d.Name, d.Detail)
		default:
			s.Text = fmt.Sprintf("%s %d on %s: %s", d.Function, d.First, d.Name, d.Detail)
		}
		if d.Exchanged {
			s.Kind = verdict.Order
		}
		if n := len(stops); n > 0 && stops[n-1].Text == s.Text { // one for each function
			s, stops = stops[n-1], stops[:n-1]
		}
		for _, o := range g.operations {
			if o.comm.Name == d.Name && o.name == d.Function && d.First <= o.ordinal && o.ordinal <= d.Last {
				s.of = append(s.of, o)
			}
		}
		s.Passed = len(s.of) == 0
		stops = append(stops, s)
	}
	return stops
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
