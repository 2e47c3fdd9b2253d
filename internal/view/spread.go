// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// spread gives rows whose operations overlap processes of their own: a process of MPI does one operation after the
// other, a GPU does not. Each row of a rank goes to the first of its processes on which it overlaps nothing, so that
// all operations stay where and as long as they were, and no waiting is lost. The first process of each rank stands at
// its place among the ranks, further ones behind all.
//
// all: every row is on a process of its own.
func (j *job) spread(all bool) {
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
				l := &location{id: len(j.locations), of: first.id, name: fmt.Sprintf("%s, row %d", first.name, k+1),
					host: first.host}
				lanes, taken = append(lanes, l), append(taken, nil)
				j.locations = append(j.locations, l)
			}
			r.location = lanes[k]
			lanes[k].rows = append(lanes[k].rows, r)
			taken[k] = merge(taken[k], own)
		}
	}
	j.count.Rows = len(j.locations)
}

// gather undoes spread.
func (j *job) gather() {
	j.locations = slices.DeleteFunc(j.locations, func(l *location) bool { return l.id != l.of })
	for _, l := range j.locations {
		l.rows, l.order, l.schedule = nil, nil, schedule{}
	}
	for _, r := range j.rows {
		r.location = j.locations[r.location.of]
		r.location.rows = append(r.location.rows, r)
	}
}

// interval is when a unit was, end included.
type interval struct{ begin, end otf2.Timestamp }

// intervals are those of the row's units, in order. What has no time of its own has none.
func (r *row) intervals() (list []interval) {
	for u := r.unitAt(0); u.from < u.to; u = r.unitAt(u.to) {
		if p := &r.parts[u.from]; !p.is(flagFused) {
			list = append(list, interval{p.begin, p.end})
		}
	}
	return list
}

// overlap tells whether an interval of one list has a time in common with one of the other; both are in order. Those
// that only touch, or are points at one time, have none.
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

// merge is both lists in order; they do not overlap.
func merge(a, b []interval) []interval {
	out := slices.Concat(a, b)
	slices.SortFunc(out, func(x, y interval) int {
		return cmp.Or(
			cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end))
	})
	return out
}
