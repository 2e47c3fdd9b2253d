// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"maps"
	"slices"
)

// Which ranks work on the same data.

// mostPartners is to how many other ranks a rank may send messages for these to be remembered.
const mostPartners = 64

// mostKinds limits the kinds of communicators for which replicas are looked for.
const mostKinds = 16

// Replicas returns, for each kind of communicators whose members do the same work, the sets of ranks that everything
// else joins. For data parallelism these are the replicas of the model. Communicators are of a kind if their members
// have the same distances in the world, and no two of them share a rank.
func (r *Recorder) Replicas() (all [][]int) {
	o := r.roles()
	kinds := make(map[string][][]int32)
	var order []string
	for _, comm := range slices.Sorted(maps.Keys(r.groups)) {
		group := slices.Sorted(slices.Values(r.groups[comm]))
		if len(group) == len(r.ranks) || !r.areAlike(o, group) {
			continue
		}
		distances := make([]int32, len(group))
		for i, rank := range group {
			distances[i] = rank - group[0]
		}
		kind := fmt.Sprint(distances)
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], group)
	}

	for _, kind := range order[:min(len(order), mostKinds)] {
		all = append(all, r.joinedBeside(kinds[kind])...)
	}
	return all
}

// joinedBeside returns the sets of ranks that communicators and messages join which have no two ranks of one of the
// groups; nil if a rank is in two of these.
func (r *Recorder) joinedBeside(groups [][]int32) (sets [][]int) {
	n := len(r.ranks)
	groupOf, joined := make([]int, n), newUnion(n)
	for g, group := range groups {
		for _, rank := range group {
			if groupOf[rank] != 0 && !slices.Equal(groups[groupOf[rank]-1], group) {
				return nil
			}
			groupOf[rank] = g + 1
		}
	}

	join := func(ranks []int32) {
		in := make(map[int]bool, len(ranks))
		for _, rank := range ranks {
			if rank < 0 || groupOf[rank] != 0 && in[groupOf[rank]] {
				return
			}
			in[groupOf[rank]] = true
		}
		for _, rank := range ranks[1:] {
			joined.join(ranks[0], rank)
		}
	}
	for _, group := range r.groups {
		join(group)
	}
	for rank := range r.ranks {
		for partner := range r.ranks[rank].partners {
			join([]int32{int32(rank), partner})
		}
	}

	byFirst := make(map[int32][]int)
	for rank := range int32(n) {
		first := joined.first(rank)
		byFirst[first] = append(byFirst[first], int(rank))
	}
	for _, first := range slices.Sorted(maps.Keys(byFirst)) {
		sets = append(sets, byFirst[first])
	}
	return sets
}

// union has the sets of ranks that were joined.
type union []int32

func newUnion(n int) union {
	u := make(union, n)
	for i := range u {
		u[i] = int32(i)
	}
	return u
}

// first returns the first rank of a set.
func (u union) first(rank int32) int32 {
	for u[rank] != rank {
		u[rank] = u[u[rank]]
		rank = u[rank]
	}
	return rank
}

func (u union) join(a, b int32) {
	a, b = u.first(a), u.first(b)
	u[max(a, b)] = min(a, b)
}
