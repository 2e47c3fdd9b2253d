// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Ranks that exchange messages with all others, or around a ring, have one role; stages of a pipeline have several.
func TestRolesByMessages(t *testing.T) {
	for _, c := range []struct {
		name    string
		ranks   int
		sends   func(from, to int) bool
		grouped bool
		want    []int // the first rank with the same shape, by rank
	}{
		{"all with all", 4, func(int, int) bool { return true }, true, []int{0, 0, 0, 0}},
		{"all with all, many", 32, func(int, int) bool { return true }, true, make([]int, 32)},
		{"two with each other", 2, func(int, int) bool { return true }, true, []int{0, 0}},
		{"a ring", 4, func(from, to int) bool { return to == (from+1)%4 }, true, []int{0, 0, 0, 0}},
		{"forth and back in two stages", 2, func(int, int) bool { return true }, false, []int{0, 1}},
		{"forth and back in four stages", 4, func(from, to int) bool { return to-from == 1 || from-to == 1 }, false,
			[]int{0, 1, 1, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ranks := make([]recorded, c.ranks)
			for i := range ranks {
				ranks[i].shape = make(map[shape]struct{})
			}
			for from := range c.ranks {
				for to := range c.ranks {
					if from == to || !c.sends(from, to) {
						continue
					}
					send, receive := "Send", "Recv"
					if c.grouped {
						send, receive = facts.SendAndRecv, facts.SendAndRecv
					}
					ranks[from].addMessage(series{send, c.ranks}, to-from)
					ranks[to].addMessage(series{receive, c.ranks}, from-to)
				}
			}
			for i := range ranks {
				first := 0
				for !maps.Equal(ranks[first].shape, ranks[i].shape) {
					first++
				}
				testkit.Equal(t, first, c.want[i], "rank %d has the role of rank", i)
			}
		})
	}
}

// What a rank worked before two operations on streams of their own counts once.
func TestWorkBeforeSeveralOperations(t *testing.T) {
	var r recorded
	r.addWork(100, 400, 300) // 300 ns
	r.addWork(100, 400, 300) // the same
	r.addWork(200, 500, 300) // a third of it is new
	r.addWork(500, 600, 50)  // half of the time was spent otherwise
	r.addWork(700, 700, 80)  // while the operation before waited
	r.addWork(700, 700, 80)  // the same
	testkit.Equal(t, r.worked, 300+100+50+80, "ns worked")
}

// In a collective that waits for all, nobody ends before the last one begins; clocks may say so. In a Broadcast, a member
// waits for the root, also if it ends before another one begins.
func TestEndBeforeTheLastBegin(t *testing.T) {
	at := func(begin, end otf2.Timestamp) lateness.Arrival { return lateness.Arrival{Begin: begin, End: end} }
	came := []lateness.Arrival{at(100, 190), at(200, 210)}
	for kind, want := range map[lateness.WaitKind]int{lateness.WaitCollective: untilAll,
		lateness.WaitLateBroadcast: untilRoot, lateness.WaitEarlyReduce: untilItself} {
		got := awaited(&lateness.Result{Kind: kind, Last: 1}, came, 0)
		testkit.Equal(t, got&3, want, "kind %v: how long it waits", kind)
	}
}
