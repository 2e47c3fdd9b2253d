// SPDX-License-Identifier: Apache-2.0

package deviation

import (
	"fmt"
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

// inOrder returns how the members of a communicator differ in what they called, place by place; see
// [jobs.CompareOrder]. What event files lack is not compared.
func inOrder(d *jobs.Difference) (out []jobs.Difference) {
	if len(d.Sides) > maxSides {
		return nil
	}
	read, closed := requestsOf(d)
	defer closed()
	var run *disorder
	for at := d.First; at < min(d.Common, d.First+maxCompared) && len(out) < maxRuns; at++ {
		requests, ok := read(at)
		if !ok {
			break
		}
		first, f := &requests[0], requests[0].Function
		same := !slices.ContainsFunc(requests, func(r Request) bool {
			return r.Function != f || r.Ordinal != first.Ordinal
		})
		if same && run != nil {
			out, run = append(out, run.differences(d, false)...), nil
		}
		switch {
		case same && equal(requests, reduces(f)):
		case same:
			one := describe(d, f, first.Ordinal, first.Ordinal, requests)
			if n := len(out); n > 0 && out[n-1].Function == f && out[n-1].Last+1 == one.First &&
				slices.Equal(out[n-1].Deviants, one.Deviants) {
				out[n-1].Last = one.Last
			} else {
				out = append(out, one)
			}
		case run == nil:
			run = &disorder{describe(d, "", at, at, requests), make(map[string][2]uint64), nil}
			run.Detail = fmt.Sprintf("as collective %d, %s", at, run.Detail)
			for range requests {
				run.called = append(run.called, make(map[string]int))
			}
			fallthrough
		default:
			run.add(requests)
		}
	}
	if run != nil {
		out = append(out, run.differences(d, true)...)
	}
	return out
}

func (o *disorder) add(requests []Request) {
	for i, r := range requests {
		span, known := o.spans[r.Function]
		if !known {
			span[0] = r.Ordinal
		}
		o.spans[r.Function] = [2]uint64{min(span[0], r.Ordinal), max(span[1], r.Ordinal)}
		o.called[i][r.Function]++
	}
}

// differences returns one difference for each function. If the run is open, it has the operations behind it, too: they
// have no counterparts.
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
