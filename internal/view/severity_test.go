// SPDX-License-Identifier: Apache-2.0

package view

import (
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// severities are the wait states that scout finds in an archive, ns by metric and rank, computed anew from what
// Patterns_gen.cpp of Scalasca 2.6 does.
type severities map[string][]int64

func severitiesOf(t testing.TB, anchor string) severities {
	t.Helper()
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	defer a.Close()
	ranks := len(a.Defs.LocationGroups)
	sum := make(severities)
	add := func(metric string, rank int, from, to, cut otf2.Timestamp) {
		if to = min(to, cut); to > from {
			if sum[metric] == nil {
				sum[metric] = make([]int64, ranks)
			}
			sum[metric][rank] += int64(to - from)
		}
	}
	members := make(map[uint64][]uint64)
	for _, c := range a.Defs.Comms {
		members[uint64(c.Self)] = a.Defs.Group(c.Group).Members
	}
	type share struct {
		begin, end otf2.Timestamp
		rank       int
		args       []uint64
	}
	type key struct{ comm, src, dst, tag uint64 }
	type wait struct{ enter, leave otf2.Timestamp }
	collectives := make(map[uint64][][]share) // by communicator, in order
	sends := make(map[key][]otf2.Timestamp)
	receives := make(map[key][]int) // into waits
	var waits []wait
	var of []int // rank
	for rank := range ranks {
		local := func(comm uint64) uint64 {
			for i, m := range members[comm] {
				if int(m) == rank {
					return uint64(i)
				}
			}
			t.Fatalf("rank %d is no member of %d", rank, comm)
			return 0
		}
		var enter, begin otf2.Timestamp
		seen := make(map[uint64]int)
		open := -1
		for ev, err := range a.EventsOf(otf2.LocationRef(rank)) {
			testkit.Must(t, err)
			x := ev.Args
			switch ev.Kind {
			case otf2.EventEnter:
				enter, open = ev.Time, -1
			case otf2.EventLeave:
				if open >= 0 {
					waits[open].leave = ev.Time
				}
				open = -1
			case otf2.EventMpiCollectiveBegin:
				begin = ev.Time
			case otf2.EventMpiCollectiveEnd:
				n := seen[x[1]]
				seen[x[1]]++
				for len(collectives[x[1]]) <= n {
					collectives[x[1]] = append(collectives[x[1]], nil)
				}
				collectives[x[1]][n] = append(collectives[x[1]][n],
					share{begin, ev.Time, rank, append([]uint64(nil), x...)})
			case otf2.EventMpiIsend:
				k := key{x[1], local(x[1]), x[0], x[2]}
				sends[k] = append(sends[k], enter)
			case otf2.EventMpiIrecv:
				if open < 0 {
					open = len(waits)
					waits, of = append(waits, wait{enter: enter}), append(of, rank)
				}
				k := key{x[1], x[0], local(x[1]), x[2]}
				receives[k] = append(receives[k], open)
			}
		}
	}
	for comm, all := range collectives {
		for _, shares := range all {
			testkit.Require(t, len(shares) == len(members[comm]),
				"%d of %d members in a collective on %d", len(shares), len(members[comm]), comm)
			var last, lastSender otf2.Timestamp // begins
			firstEnd := shares[0].end
			var root share
			for _, s := range shares {
				last, firstEnd = max(last, s.begin), min(firstEnd, s.end)
				if s.args[3] > 0 {
					lastSender = max(lastSender, s.begin)
				}
				if r := s.args[2]; r != uint64(otf2.CollectiveRootNone) && int(members[comm][r]) == s.rank {
					root = s
				}
			}
			overlap := firstEnd > last
			if !overlap { // not all were in it at one time: only who receives waits, and for who sends
				last = lastSender
			}
			for _, s := range shares {
				receives := s.args[4] > 0
				switch otf2.CollectiveOp(s.args[0]) {
				case otf2.CollectiveOpBcast, otf2.CollectiveOpScatter:
					if receives && root.args[3] > 0 {
						add("Late Broadcast", s.rank, s.begin, root.begin, s.end)
					}
				case otf2.CollectiveOpReduce, otf2.CollectiveOpGather:
					if receives && s.rank == root.rank {
						add("Early Reduce", s.rank, s.begin, lastSender, s.end)
					}
				case otf2.CollectiveOpAlltoallv: // counted only
				default:
					if receives || overlap {
						add("Wait at NxN", s.rank, s.begin, last, s.end)
					}
				}
			}
		}
	}
	latest := make([]otf2.Timestamp, len(waits)) // of a Waitall the longest wait counts
	for k, in := range receives {
		for i, w := range in {
			latest[w] = max(latest[w], sends[k][i])
		}
	}
	for i, w := range waits {
		add("Late Sender", of[i], w.enter, latest[i], w.leave)
	}
	return sum
}

// Scalasca 2.6 finds these in this archive.
func TestSeveritiesOfTheSmallestArchive(t *testing.T) {
	got := severitiesOf(t, filepath.Join("..", "..", "tests", "jobtest", "testdata", "scalasca-min", "traces.otf2"))
	testkit.Same(t, severities{"Wait at NxN": {6 * ms, 4 * ms, 2 * ms, 0}}, got)
}

// A job in which each wait state occurs once or twice, with known times.
func TestWaitStatesComeOutOfTheView(t *testing.T) {
	m := makeJob(t, 4)
	world, pair := m.comm("world", 0, 1, 2, 3), m.comm("pair", 2, 3)
	for r, c := range world {
		late := uint64(r) * 2 * ms
		c.one(t, late, 7*ms, "AllReduce", -1)
		c.one(t, 10*ms+late, 20*ms, "Broadcast", 2)
		c.one(t, 30*ms+late, 40*ms, "Reduce", 1)
	}
	send := item{fn: "Send", peer: 1, sent: 100}
	receive := item{fn: "Recv", peer: 0, sent: 100}
	pair[0].plan(t, 45*ms, 50*ms, regions.TimingGPU, "", send)
	pair[1].plan(t, 42*ms, 50*ms, regions.TimingGPU, "", receive)
	// Both ways in one group.
	world[0].plan(t, 60*ms, 70*ms, regions.TimingGPU, "", item{fn: "Send", peer: 1, sent: 8},
		item{fn: "Recv", peer: 1, sent: 8})
	world[1].plan(t, 65*ms, 70*ms, regions.TimingGPU, "", item{fn: "Recv", peer: 0, sent: 8},
		item{fn: "Send", peer: 0, sent: 8})
	res := viewOf(t, m.unify(), nil)
	want := severities{
		"Wait at NxN":    {6 * ms, 4 * ms, 2 * ms, 0},
		"Late Broadcast": {4 * ms, 2 * ms, 0, 0},
		"Early Reduce":   {0, 4 * ms, 0, 0},
		"Late Sender":    {5 * ms, 0, 0, 3 * ms},
	}
	testkit.Same(t, want, severitiesOf(t, res.Archive))
	want2 := Result{Archive: res.Archive, Rows: 4, Ranks: 4, Waits: Waits{Recorded: 30 * ms, Shown: 30 * ms}, Hosts: 2,
		Communicators: 2, Collectives: 3, Messages: 3, Events: res.Events, Dropped: map[Reason]uint64{}}
	testkit.Same(t, want2, *res)
}

// Who ends the last operation comes to MPI_Finalize last, so that the critical path that scout finds begins there.
func TestTheViewEndsWhereTheLastOperationEnds(t *testing.T) {
	m := makeJob(t, 3)
	for _, c := range m.comm("world", 0, 1, 2) {
		c.one(t, 0, 5*ms, "AllReduce", -1)
	}
	for r, c := range m.comm("pair", 1, 2) {
		c.one(t, 6*ms, uint64(9-r)*ms, "AllReduce", -1)
	}
	a := testkit.Value(otf2.Open(viewOf(t, m.unify(), nil).Archive, nil))(t)
	defer a.Close()
	var came []otf2.Timestamp
	for rank := range 3 {
		for ev, err := range a.EventsOf(otf2.LocationRef(rank)) {
			testkit.Must(t, err)
			if ev.Kind == otf2.EventEnter && a.Defs.String(
				a.Defs.Region(otf2.RegionRef(ev.Args[0])).Name) == nameFinalize {
				came = append(came, ev.Time)
			}
		}
	}
	testkit.Check(t, len(came) == 3 && came[0] == came[2] && came[1] == came[0]+1,
		"the ranks come to %s at %d", nameFinalize, came)
}

// What members have no comparable times of, has no wait states, but its time.
func TestTimesThatCannotBeComparedGiveNoWaitStates(t *testing.T) {
	m := makeJob(t, 3)
	world := m.comm("world", 0, 1, 2)
	for r, c := range world {
		source := regions.TimingGPU
		if r == 1 {
			source = "enqueue"
		}
		late := uint64(r) * ms
		c.plan(t, late, 5*ms, source, "", item{fn: "AllReduce", sent: 8, received: 8})
		c.plan(t, 10*ms+late, 15*ms, source, "", item{fn: "Broadcast", peer: 2, sent: 8, received: 8})
		c.plan(t, 20*ms+late, 25*ms, source, "", item{fn: "Send", peer: (r + 1) % 3, sent: 8},
			item{fn: "Recv", peer: (r + 2) % 3, sent: 8})
		c.one(t, 30*ms+late, 35*ms, "AllGather", -1)
	}
	anchor := m.unify()
	res := viewOf(t, anchor, nil)
	// Ranks 0 and 2 have times that compare: rank 0 waits 2 ms for rank 2 in each, and in the AllGather rank 1 does 1
	// ms. Only the message from rank 2 to 0 has GPU times on both sides; rank 0 waits 2 ms for it.
	want := severities{"Wait at NxN": {4 * ms, ms, 0}, "Late Broadcast": {2 * ms, 0, 0}, "Late Sender": {2 * ms, 0, 0}}
	testkit.Same(t, want, severitiesOf(t, res.Archive))
	testkit.Same(t, map[Reason]uint64{ReasonUntimed: 2}, res.Dropped)
	testkit.Same(t, Untimed{}, res.Untimed)
}

// Where one member alone has times they compare with nothing: the collective has no wait states, and is not there on
// request.
func TestCollectivesWithoutComparableTimes(t *testing.T) {
	m := makeJob(t, 3)
	for r, c := range m.comm("world", 0, 1, 2) {
		source := regions.TimingGPU
		if r > 0 {
			source = regions.TimingEnqueue
		}
		c.plan(t, uint64(r)*ms, 5*ms, source, "", item{fn: "AllReduce", sent: 8, received: 8})
		c.one(t, 30*ms+uint64(r)*ms, 35*ms, "AllGather", -1)
	}
	anchor := m.unify()
	res := viewOf(t, anchor, nil)
	testkit.Same(t, severities{"Wait at NxN": {2 * ms, ms, 0}}, severitiesOf(t, res.Archive))
	testkit.Same(t, Untimed{NoTimes: 1}, res.Untimed)
	res = viewOf(t, anchor, &Options{TimedOnly: true})
	testkit.Check(t, res.Collectives == 1 && res.Dropped[ReasonUntimed] == 1, "%+v", res)
}
