// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// The calls that are left are those that a plain list would have, in its order.
func TestCallList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var l callList
		var plain []*call
		number := int64(0)
		for range rapid.IntRange(0, 400).Draw(rt, "steps") {
			switch n := len(plain); {
			case n > 0 && rapid.IntRange(0, 2).Draw(rt, "step") == 0:
				i := rapid.IntRange(0, n-1).Draw(rt, "which")
				l.removeCall(plain[i])
				plain = slices.Delete(plain, i, i+1)
			default:
				number = max(0, number+rapid.SampledFrom([]int64{0, 0, 1, 1, 1, -2}).Draw(rt, "group"))
				c := &call{before: number, p2p: rapid.Bool().Draw(rt, "p2p")}
				l.addCall(c)
				plain = append(plain, c)
			}
			group := number - int64(rapid.IntRange(-1, 3).Draw(rt, "before"))
			want := slices.DeleteFunc(slices.Clone(plain), func(c *call) bool { return c.before >= group })
			got := slices.Collect(l.callsBefore(group))
			testkit.Require(rt, slices.Equal(got, want) && l.count == len(plain),
				"%d calls before group %d of %d, want %d of %d", len(got), group, l.count, len(want), len(plain))
			if collective := slices.ContainsFunc(plain,
				func(c *call) bool { return !c.p2p && c.before == group }); collective != (l.collectives[group] > 0) {
				rt.Fatalf("group %d has collectives: %v, said %v", group, collective, !collective)
			}
			testkit.Require(rt, len(plain) == 0 || slices.Contains(plain, l.middleCall()),
				"the middle is none of the calls")
			testkit.Require(rt, len(l.list) <= 3*len(plain)+65 || len(l.list) <= 3*l.count+400,
				"%d places for %d calls", len(l.list), l.count)
		}
	})
}

// Calls that become operations stand in the queue where they would if each were put in by itself: before the first plan
// of a later group, and before the plans that have not been seen to stop.
func TestCallsAloneFindTheirPlaces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		groups := rapid.SliceOfN(rapid.Int64Range(0, 9), 0, 12)
		plans := func(name string) (all []*plan) {
			for _, g := range groups.Draw(rt, name) {
				p := &plan{callOnly: rapid.Bool().Draw(rt, "alone"), ops: []*operation{{call: &call{before: g}}}}
				if !p.callOnly {
					p.gpu.stamps.Number = uint64(len(all) + 1)
				}
				all = append(all, p)
			}
			return all
		}
		s := newScene(t, 4)
		c := s.m.ranks.all[0]
		c.queue.plans = plans("queue")
		alone := plans("calls")
		last := rapid.IntRange(0, len(c.queue.plans)).Draw(rt, "last")
		c.queue.followed = rapid.IntRange(0, len(c.queue.plans)).Draw(rt, "followed")

		want, place, followed := slices.Clone(c.queue.plans), last, c.queue.followed
		for _, p := range alone {
			at := slices.IndexFunc(want, func(o *plan) bool { return o.latestGroup() > p.latestGroup() })
			if at < 0 || at > place {
				at = place
			}
			want = slices.Insert(want, at, p)
			place++
			if at < followed {
				followed++
			}
		}
		s.m.ops.mergeAlone(c, slices.Clone(alone), last)
		testkit.Require(rt, slices.Equal(c.queue.plans, want) && c.queue.followed == followed,
			"plans are at other places, or %d of them are followed, want %d", c.queue.followed, followed)
	})
}

// Very many calls that become no operation, with and without groups, are written in the time that their number takes:
// if each looked at the others, this test would not end.
func TestManyCallsWithoutPlans(t *testing.T) {
	const calls = 1 << 18
	for _, grouped := range []bool{false, true} {
		s := newScene(t, 4)
		give := func(us uint64, r shm.Record) { testkit.Must(t, s.m.Record(0, micros(us), &r)) }
		for i := range uint64(calls) {
			group := uint64(0)
			if grouped {
				group = 1 + 2*i
				give(100+i, shm.Record{Kind: shm.RecordStart, Type: shm.EventGroupApi, Handle: group, GroupDepth: 1})
			}
			give(100+i, shm.Record{Kind: shm.RecordStart, Type: shm.EventCollApi, Handle: 2 + 2*i, Arg: group,
				Func: "Broadcast", Datatype: "ncclInt8", Count: 1})
			give(100+i, shm.Record{Kind: shm.RecordStop, Type: shm.EventCollApi, Handle: 2 + 2*i})
			if grouped {
				give(100+i, shm.Record{Kind: shm.RecordStop, Type: shm.EventGroupApi, Handle: group})
			}
		}
		give(100+calls, shm.Record{Kind: shm.RecordFinalize})
		c := s.m.ranks.all[0]
		testkit.Check(t, c.life.closed && len(c.queue.plans)+c.calls.count+len(s.m.ops.calls) == 0,
			"%d plans and %d calls are kept", len(c.queue.plans), c.calls.count)
		s.m.Snapshot()
		expectCount(t, "operations are written", s.p.Comms[0].Sequences["Broadcast"].Count, calls)
	}
}

// So are the calls of one group that become as many plans, which take them in any order.
func TestManyCallsOfOneGroup(t *testing.T) {
	const calls = 1 << 18
	s := newScene(t, 4)
	give := func(us uint64, r shm.Record) { testkit.Must(t, s.m.Record(0, micros(us), &r)) }
	give(1, shm.Record{Kind: shm.RecordStart, Type: shm.EventGroupApi, Handle: 1, GroupDepth: 2})
	for i := range uint64(calls) {
		give(2+i, shm.Record{Kind: shm.RecordStart, Type: shm.EventCollApi, Handle: 2 + i, Arg: 1, Func: "AllReduce",
			Datatype: "ncclInt8", Count: 1})
		give(2+i, shm.Record{Kind: shm.RecordStop, Type: shm.EventCollApi, Handle: 2 + i})
		if i%64 == 0 {
			testkit.Must(t, s.m.Advance(micros(2+i)))
		}
	}
	for i := range uint64(calls) {
		us, plan, op := 3+calls+i, 1<<40+i, 1<<41+i
		give(us, shm.Record{Kind: shm.RecordStart, Type: shm.EventGroup, Handle: plan})
		give(us, shm.Record{Kind: shm.RecordStart, Type: shm.EventColl, Handle: op, ParentGroup: plan,
			Arg: 2 + calls - 1 - i, Func: "AllReduce", Datatype: "ncclInt8", Count: 1})
		give(us, shm.Record{Kind: shm.RecordStop, Type: shm.EventColl, Handle: op})
		give(us, shm.Record{Kind: shm.RecordStop, Type: shm.EventGroup, Handle: plan})
	}
	give(3+2*calls, shm.Record{Kind: shm.RecordStop, Type: shm.EventGroupApi, Handle: 1})
	expectCount(t, "calls are kept", len(s.m.ops.calls), 0)
	testkit.Must(t, s.m.Finish())
	s.m.Snapshot()
	expectCount(t, "operations are written", s.p.Comms[0].Sequences["AllReduce"].Count, calls)
}
