// SPDX-License-Identifier: Apache-2.0

package deviation

import (
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
)

// disorder is a run of places in which members called different collectives, until they are at the same place again.
type disorder struct {
	jobs.Difference                      // of its first place
	spans           map[string][2]uint64 // ordinals of the collectives, by function
	called          []map[string]int     // by side and function, how often it was called
}

func newDisorder(first jobs.Difference, asked []Asked) *disorder {
	o := &disorder{first, make(map[string][2]uint64), make([]map[string]int, len(asked))}
	for i := range o.called {
		o.called[i] = make(map[string]int)
	}
	o.add(asked)
	return o
}

func (o *disorder) add(asked []Asked) {
	for i, a := range asked {
		span, known := o.spans[a.Function]
		if !known {
			span[0] = a.Ordinal
		}
		o.spans[a.Function] = [2]uint64{min(span[0], a.Ordinal), max(span[1], a.Ordinal)}
		o.called[i][a.Function]++
	}
}

// differences returns one difference for each function. If the run is open, the result
// also contains the operations after it, which have no counterparts.
func (o *disorder) differences(d *jobs.Difference, open bool) (out []jobs.Difference) {
	exchanged := !slices.ContainsFunc(o.called, func(c map[string]int) bool { return !maps.Equal(c, o.called[0]) })
	for _, f := range slices.Sorted(maps.Keys(o.spans)) {
		one := o.Difference
		one.Function, one.First, one.Last = f, o.spans[f][0], o.spans[f][1]
		one.Reordered, one.Exchanged = true, exchanged
		for _, s := range d.Sides {
			if n := s.Member.Comm().Sequences[f].Count; open && n > 0 {
				one.Last = max(one.Last, n-1)
			}
		}
		out = append(out, one)
	}
	return out
}
