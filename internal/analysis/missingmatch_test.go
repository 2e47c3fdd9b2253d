// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Whatever calls are missing on whichever members, no call is compared with another one.
func TestNoCallIsTakenForAnother(t *testing.T) {
	exact, tries := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(rt, "members")
		count := rapid.IntRange(4, 40).Draw(rt, "calls")
		gaps := rapid.SampledFrom([]uint64{2, 50, 1000}).Draw(rt, "gaps")
		functions := rapid.SampledFrom([][]string{{"AllReduce"}, {"AllReduce", "BARRIER"},
			{"AllReduce", "Broadcast", "Reduce"}, {"Broadcast"}}).Draw(rt, "functions")
		comm := &membership.Communicator{Ref: 3}
		for r := range n {
			comm.Members = append(comm.Members, otf2.LocationRef(r))
		}
		type made struct {
			calledOnce
			ordinal uint64
			lost    bool
		}
		members := make([][]made, n)
		now := make([]uint64, n)
		counted := make(map[string]uint64)
		for range count {
			c := calledOnce{function: rapid.SampledFrom(functions).Draw(rt, "function"), root: otf2.CollectiveRootNone,
				together: true}
			if c.function == "Broadcast" || c.function == "Reduce" {
				c.root, c.together = uint32(rapid.IntRange(0, 1).Draw(rt, "root")), false
			}
			begins := make([]uint64, n)
			for r := range begins {
				begins[r] = now[r] + 1 + rapid.Uint64Range(0, gaps).Draw(rt, "gap")
			}
			for r := range n {
				till := begins[r]
				switch {
				case c.together || c.function == "Reduce" && r == int(c.root):
					till = slices.Max(begins)
				case c.function == "Broadcast":
					till = max(till, begins[c.root])
				}
				now[r] = till + 1 + rapid.Uint64Range(0, 5).Draw(rt, "end")
				c.begin, c.end = otf2.Timestamp(begins[r]), otf2.Timestamp(now[r])
				members[r] = append(members[r], made{c, counted[c.function], false})
			}
			counted[c.function]++
		}
		lost := rapid.IntRange(0, min(n, 3)).Draw(rt, "lost")
		only := rapid.IntRange(0, n-1).Draw(rt, "only")
		for range lost {
			if slices.Contains(
				functions,
				"Broadcast") { // if members lack different calls between the same common calls, nothing shows which
				members[only][rapid.IntRange(0, count-1).Draw(rt, "call")].lost = true
				continue
			}
			members[rapid.IntRange(0, n-1).Draw(rt, "rank")][rapid.IntRange(0, count-1).Draw(rt, "call")].lost = true
		}
		left := make([][]calledOnce, n)
		for r := range members {
			for _, c := range members[r] {
				if !c.lost {
					left[r] = append(left[r], c.calledOnce)
				}
			}
		}
		m := matchCalls(left)
		if lost > 0 && m.equal() { // only clocks could decide that, and they may be wrong
			return
		}
		stretches := m.stretches(comm)
		testkit.Require(rt, lost != 0 || len(stretches) == 0, "nothing is missing, but %+v is said", stretches)
		lacks := make(map[otf2.LocationRef]map[string][]uint64)
		for _, x := range m.missing(comm) {
			if lacks[x.Location] == nil {
				lacks[x.Location] = make(map[string][]uint64)
			}
			lacks[x.Location][x.Function] = x.Ordinals
		}
		type number struct {
			function string
			ordinal  uint64
		}
		compared, calls := 0, make(map[number]uint64)
		for r := range members {
			next := make(map[string]uint64)
			for _, c := range members[r] {
				if c.lost {
					continue
				}
				ordinal := next[c.function]
				for slices.Contains(lacks[otf2.LocationRef(r)][c.function], ordinal) {
					ordinal++
				}
				next[c.function] = ordinal + 1
				if property.Excluded(stretches, comm.Ref, c.function, ordinal) {
					continue
				}
				compared++
				other, known := calls[number{c.function, ordinal}]
				testkit.Require(rt, !known || other == c.ordinal,
					"rank %d: call %d of %s is compared with others' call %d; said is %+v", r, c.ordinal, c.function,
					other, stretches)
				calls[number{c.function, ordinal}] = c.ordinal
			}
		}
		tries++
		if compared > n*count/2 {
			exact++
		}
	})
	testkit.Check(t, exact >= tries/3, "in %d of %d cases most calls are compared", exact, tries)
}

// If all members made the same calls, contradicting times are not taken for missing calls.
func TestContradictingTimesAreNoLosses(t *testing.T) {
	// calls returns a member's AllReduces, one every 100 ticks, with a clock that is offset behind; without lists
	// calls to leave out.
	calls := func(offset otf2.Timestamp, without ...int) (all []calledOnce) {
		for n := range 10 {
			if begin := otf2.Timestamp(1000+100*n) + offset; !slices.Contains(without, n) {
				all = append(all, calledOnce{"AllReduce", otf2.CollectiveRootNone, begin, begin + 10, true})
			}
		}
		return all
	}
	moved := calls(0)
	moved[4].begin, moved[4].end = moved[4].begin+15, moved[4].end+15
	for name, c := range map[string]struct {
		members      [][]calledOnce
		lost, unsure int
	}{
		"clocks agree":                       {members: [][]calledOnce{calls(0), calls(5)}},
		"a clock is off by a call":           {members: [][]calledOnce{calls(0), calls(100)}},
		"a clock is off by three calls":      {members: [][]calledOnce{calls(300), calls(0)}},
		"times of one call contradict":       {members: [][]calledOnce{calls(0), moved}, unsure: 1},
		"one is missing":                     {members: [][]calledOnce{calls(0), calls(0, 4)}, lost: 1},
		"a different one of each is missing": {members: [][]calledOnce{calls(0, 6), calls(0, 3)}, lost: 2},
	} {
		if m := matchCalls(c.members); len(m.lost) != c.lost || len(m.unsure) != c.unsure {
			t.Errorf("%s: %+v are missing, %+v not sure; want %d and %d", name, m.lost, m.unsure, c.lost, c.unsure)
		}
	}
}
