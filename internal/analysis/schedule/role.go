// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
)

// Which ranks do the same work.

// roles has the ranks by role, in two classes: alike has those that call the same functions, with the other ends of
// their messages as many ranks on; same has those of them that are also in a collective communicator in which all are
// alike, such as the replicas of a stage.
type roles struct {
	same   union   // class by rank
	alike  []int32 // class by rank, after those of same; −1: no operations
	size   []int   // by class
	worked []float64
}

func (r *Recorder) roles() *roles {
	n := len(r.ranks)
	o := &roles{same: newUnion(n), alike: make([]int32, n), worked: r.Worked()}
	shapes := make(map[string]int32)
	for i := range r.ranks {
		all := slices.SortedFunc(maps.Keys(r.ranks[i].shape), func(a, b shape) int {
			return cmp.Or(cmp.Compare(a.function, b.function), cmp.Compare(a.members, b.members),
				cmp.Compare(a.peer, b.peer))
		})
		o.alike[i] = -1
		if key := fmt.Sprint(all); len(all) > 0 {
			if _, known := shapes[key]; !known {
				shapes[key] = int32(n + len(shapes))
			}
			o.alike[i] = shapes[key]
		}
	}
	for _, group := range r.groups {
		if r.areAlike(o, group) {
			for _, rank := range group {
				o.same.join(group[0], rank)
			}
		}
	}
	o.size = make([]int, n+len(shapes))
	for i := range o.same {
		o.same[i] = o.same.first(int32(i))
		if o.alike[i] >= 0 {
			o.size[o.same[i]]++
			o.size[o.alike[i]]++
		}
	}
	return o
}

// Roles returns the ranks of each role, such as the replicas of a stage.
func (r *Recorder) Roles() (all [][]int) {
	o := r.roles()
	byRole := make(map[int32][]int)
	for rank, class := range o.same {
		if o.alike[rank] >= 0 {
			byRole[class] = append(byRole[class], rank)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(byRole)) {
		all = append(all, byRole[class])
	}
	return all
}

func (r *Recorder) areAlike(o *roles, group []int32) bool {
	return len(group) > 1 && !slices.ContainsFunc(group, func(rank int32) bool {
		return rank < 0 || group[0] < 0 || o.alike[rank] != o.alike[group[0]]
	})
}

// standard is what the work of a rank is replaced by: the median of the others of a class, or of all of it, or a part
// of its own.
type standard struct {
	class int32 // −1: a part of its own
	ofAll bool
	part  float64
}

// standards returns the standard of each rank of a set.
func (o *roles) standards(set []int) map[int32]standard {
	in := make(map[int32]bool, len(set))
	inside := make(map[int32]int)
	for _, rank := range set {
		in[int32(rank)] = true
		if o.alike[rank] >= 0 {
			inside[o.same[rank]]++
			inside[o.alike[rank]]++
		}
	}
	var others []float64
	for rank, worked := range o.worked {
		if o.alike[rank] >= 0 && !in[int32(rank)] {
			others = append(others, worked)
		}
	}
	usual := stats.Median(others)
	all := make(map[int32]standard, len(set))
	for _, rank := range set {
		class := o.alike[rank]
		switch {
		case class < 0:
			continue
		case len(others) == 0: // all ranks: the median of those with the role
			class = o.same[rank]
		case inside[o.same[rank]] < o.size[o.same[rank]]:
			class = o.same[rank]
		case inside[class] == o.size[class]:
			class = -1
		}
		all[int32(rank)] = standard{class: class, ofAll: len(others) == 0, part: min(1, usual/max(o.worked[rank], 1))}
	}
	return all
}
