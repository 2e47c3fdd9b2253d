// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// splitRows gives rows with overlapping operations processes of their own: unlike a GPU, an MPI process does one
// operation after the other. Each row of a rank goes to the first of the rank's processes where it overlaps no other
// operation, so all operations keep their times and no waiting is lost. The first process of each rank keeps the rank's
// number; further ones follow after all ranks. If all is set, every row gets a process of its own.
func (j *job) splitRows(all bool) {
	ranks := len(j.locations)
	for _, first := range j.locations[:ranks] {
		rows := first.rows
		first.rows = nil
		lanes := []*location{first}
		taken := [][]interval{nil}
		for _, r := range rows {
			own := r.intervals()
			k := slices.IndexFunc(taken, func(t []interval) bool {
				return t == nil || len(own) == 0 || !all &&
					!overlap(t, own)
			})
			if k < 0 {
				k = len(lanes)
				l := &location{id: len(j.locations), firstID: first.id,
					name: fmt.Sprintf("%s, row %d", first.name, k+1), host: first.host}
				lanes, taken = append(lanes, l), append(taken, nil)
				j.locations = append(j.locations, l)
			}
			r.location = lanes[k]
			lanes[k].rows = append(lanes[k].rows, r)
			taken[k] = mergeIntervals(taken[k], own)
		}
	}
	j.count.Rows = len(j.locations)
}

// mergeRows undoes splitRows.
func (j *job) mergeRows() {
	j.locations = slices.DeleteFunc(j.locations, func(l *location) bool { return l.id != l.firstID })
	for _, l := range j.locations {
		l.rows, l.order, l.schedule = nil, nil, schedule{}
	}
	for _, r := range j.rows {
		r.location = j.locations[r.location.firstID]
		r.location.rows = append(r.location.rows, r)
	}
}

// interval is the time of a unit, end included.
type interval struct{ begin, end otf2.Timestamp }

// intervals returns the times of the row's units, in order. Fused units, which have no time of their own, are left out.
func (r *row) intervals() (list []interval) {
	for u := r.unitAt(0); u.from < u.to; u = r.unitAt(u.to) {
		if p := &r.parts[u.from]; !p.is(flagFused) {
			list = append(list, interval{p.begin, p.end})
		}
	}
	return list
}

// overlap reports whether an interval of a overlaps one of b; both lists are in order. Intervals that only touch, or
// are points at one time, do not overlap.
func overlap(a, b []interval) bool {
	for len(a) > 0 && len(b) > 0 {
		x, y := a[0], b[0]
		if x.begin < y.end && y.begin < x.end {
			return true
		}
		if x.end < y.end || x.end == y.end && x.begin < y.begin {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return false
}

// mergeIntervals returns both lists, which do not overlap, in order.
func mergeIntervals(a, b []interval) []interval {
	out := slices.Concat(a, b)
	slices.SortFunc(out, func(x, y interval) int {
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end))
	})
	return out
}
