// SPDX-License-Identifier: Apache-2.0

package waitfor_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

const (
	t0 = shardtest.Epoch + 10_000_000
	ms = 1_000_000
	s  = 1000 * ms
)

// in is an operation that a rank is in: the first of its function on a communicator, begun 1 s and i ms after the
// start.
func in(comm int, function, state string, i uint64) experiment.Pending {
	return experiment.Pending{Comm: comm, Function: function, Since: t0 + 1*s + i*ms, State: state, Count: 100,
		Datatype: "ncclFloat32", Stream: 7}
}

func asking(p experiment.Pending, count uint64, datatype string, root int) experiment.Pending {
	p.Count, p.Datatype, p.Root = count, datatype, root
	return p
}

func on(p experiment.Pending, stream uint64) experiment.Pending {
	p.Stream = stream
	return p
}

func moving(p experiment.Pending, all ...experiment.Transfer) experiment.Pending {
	p.Transfers = all
	return p
}

func transfer(send bool, peer, step int, phase string, since uint64) experiment.Transfer {
	return experiment.Transfer{Send: send, Peer: peer, Channel: 1, Step: step, Phase: phase, Bytes: 512 << 10,
		Since: t0 + since}
}

// comms returns the communicators of a rank.
type comms func(rank int) []experiment.Comm

func worlds(n int) comms {
	return func(rank int) (all []experiment.Comm) {
		for i := range n {
			all = append(all, experiment.Comm{ID: uint64(i + 1), Name: string(rune('A' + i)), NRanks: 4, Rank: rank})
		}
		return all
	}
}

// pairs makes communicators A of ranks 0 and 2, and B of 1 and 3, so that ranks differ from those of the world.
func pairs(rank int) []experiment.Comm {
	return []experiment.Comm{
		{ID: 1, Name: "world", NRanks: 4, Rank: rank},
		{ID: uint64(2 + rank%2), Name: string(rune('A' + rank%2)), NRanks: 2, Rank: rank / 2},
	}
}

func TestWhatKeepsAJobFromGoingOn(t *testing.T) {
	type list = map[int][]experiment.Pending
	missing := list{0: {in(0, "AllReduce", "running", 0)}, 1: {in(0, "AllReduce", "running", 1)},
		3: {in(0, "AllReduce", "enqueued", 2)}}
	ring := func(rank int, first ...experiment.Transfer) experiment.Pending {
		return moving(in(0, "AllReduce", "running", uint64(rank)), first...)
	}
	for _, tc := range []struct {
		name     string
		comms    comms
		pending  list
		also     func(rank int, p *shardtest.Process)
		kind     verdict.Kind // "": nothing is found
		culprits []int
		peer     int // −1: there is none
		says     string
	}{
		{"nothing", worlds(1), nil, nil, "", nil, -1, ""},
		{"one is missing", worlds(1), missing, nil, verdict.Missing, []int{2}, -1,
			"Rank 2 never called AllReduce 0 on A, which Ranks 0-1,3 are in"},
		{"one of a part of the world is missing", pairs, list{1: {in(1, "Broadcast", "running", 0)}}, nil,
			verdict.Missing, []int{3}, -1, "Rank 3 never called Broadcast 0 on B, which Rank 1 is in"},
		{"a receiver is missing", pairs, list{2: {in(1, "Send>0", "running", 0)}}, nil, verdict.Missing, []int{0, 2}, -1,
			"Rank 2 sends message 0 on A to Rank 0, which has not posted the receive"},
		{"two that are not at the same place", pairs, list{
			0: {in(0, "AllReduce", "running", 5)}, 2: {in(0, "AllReduce", "running", 6)},
			3: {in(0, "AllReduce", "running", 7)}, 1: {in(1, "AllReduce", "running", 0)},
		}, nil, verdict.Order, []int{1}, -1,
			"Rank 1 called AllReduce 0 on B and has not come to AllReduce 0 on world, Ranks 0,2-3 the other way round: " +
				"each waits for the other; Ranks 0,2 have communicators of their own in place of B"},
		{"a chain ends at the missing one", chain, list{
			0: {in(0, "AllReduce", "running", 0)}, 1: {in(0, "AllReduce", "running", 1)},
			2: {in(0, "AllReduce", "running", 2)},
		}, nil, verdict.Missing, []int{3}, -1, "Rank 3 never called AllReduce 0 on C, which Rank 2 is in"},
		{"one is missing, others are not at the same place", pairs,
			list{0: {in(1, "AllReduce", "running", 0)}, 1: {in(0, "AllReduce", "running", 2)},
				2: {in(1, "AllReduce", "running", 1)}},
			nil, verdict.Missing, []int{3}, -1, "Rank 3 never called AllReduce 0 on world, which Rank 1 is in"},
		{"opposite orders", worlds(2), list{
			0: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
			1: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "enqueued", 1)},
			2: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "enqueued", 1)},
			3: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "called", 1)},
		}, nil, verdict.Order, []int{0}, -1,
			"Rank 0 called AllReduce 0 on A before AllReduce 0 on B, Ranks 1-3 the other way round: each waits for " +
				"the other"},
		{"opposite orders, all transfers set up", worlds(2), list{
			0: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "running", 1)},
			1: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "running", 1)},
			2: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "running", 1)},
			3: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "running", 1)},
		}, nil, verdict.Order, []int{0}, -1,
			"Rank 0 called AllReduce 0 on A before AllReduce 0 on B, Ranks 1-3 the other way round: each waits"},
		{"opposite orders of two and two", worlds(2), list{
			0: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
			1: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "enqueued", 1)},
			2: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "enqueued", 1)},
			3: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
		}, nil, verdict.Order, []int{0, 1, 2, 3}, -1,
			"Ranks 0,3 called AllReduce 0 on A before AllReduce 0 on B, Ranks 1-2 the other way round: each waits " +
				"for the other"},
		{"a cycle of three communicators", worlds(3), list{
			0: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1), in(2, "AllReduce", "enqueued", 2)},
			1: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1), in(2, "AllReduce", "enqueued", 2)},
			2: {in(2, "AllReduce", "running", 0), in(0, "AllReduce", "enqueued", 1), in(1, "AllReduce", "enqueued", 2)},
			3: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1), in(2, "AllReduce", "enqueued", 2)},
		}, nil, verdict.Order, []int{2}, -1, "Rank 2 called AllReduce 0 on C before AllReduce 0 on A"},
		{"a true cycle of three", triangle, list{
			0: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
			1: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
			2: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
		}, nil, verdict.Order, []int{0, 1, 2}, -1,
			"Rank 0 called AllReduce 0 on A before AllReduce 0 on C, Rank 1 AllReduce 0 on B before AllReduce 0 on " +
				"A, Rank 2 AllReduce 0 on C before AllReduce 0 on B: a cycle, each of the 3 operations waits for " +
				"another one of them"},
		{"on two streams there is no order", worlds(2), list{
			0: {in(0, "AllReduce", "running", 0), on(in(1, "AllReduce", "enqueued", 1), 8)},
			1: {in(1, "AllReduce", "running", 0), on(in(0, "AllReduce", "enqueued", 1), 8)},
			2: {in(1, "AllReduce", "running", 0), on(in(0, "AllReduce", "enqueued", 1), 8)},
			3: {in(1, "AllReduce", "running", 0), on(in(0, "AllReduce", "enqueued", 1), 8)},
		}, nil, "", nil, -1, ""},
		{"another count", worlds(1), list{
			0: {in(0, "AllReduce", "running", 0)}, 1: {asking(in(0, "AllReduce", "running", 0), 50, "ncclFloat32", 0)},
			2: {in(0, "AllReduce", "running", 0)}, 3: {in(0, "AllReduce", "running", 0)},
		}, nil, verdict.Mismatch, []int{1}, -1,
			"AllReduce 0 on A: Rank 1 asked for 50 elements, Ranks 0,2-3 asked for 100 elements"},
		{"another type", worlds(1), list{
			0: {in(0, "AllReduce", "running", 0)}, 1: {in(0, "AllReduce", "running", 0)},
			2: {asking(in(0, "AllReduce", "running", 0), 100, "ncclInt32", 0)}, 3: {in(0, "AllReduce", "running", 0)},
		}, nil, verdict.Mismatch, []int{2}, -1,
			"Rank 2 asked for 100 elements of Int32, Ranks 0-1,3 asked for 100 elements of Float32"},
		{"another root", worlds(1), list{
			0: {asking(in(0, "Reduce", "running", 0), 100, "ncclFloat32", 1)},
			1: {asking(in(0, "Reduce", "running", 0), 100, "ncclFloat32", 1)},
			2: {asking(in(0, "Reduce", "running", 0), 100, "ncclFloat32", 1)},
			3: {asking(in(0, "Reduce", "running", 0), 100, "ncclFloat32", 3)},
		}, nil, verdict.Mismatch, []int{3}, -1, "Rank 3 named Rank 3 as root, Ranks 0-2 named Rank 1 as root"},
		{"another operation", worlds(1), list{
			0: {in(0, "AllReduce", "running", 0)}, 1: {in(0, "AllReduce", "running", 0)},
			2: {in(0, "AllReduce", "running", 0)}, 3: {in(0, "AllGather", "running", 0)},
		}, nil, verdict.Mismatch, []int{3}, -1, "on A, as collective 0, Rank 3 called AllGather 0, Ranks 0-2 called AllReduce 0"},
		{"a transfer that is not sent", worlds(1), list{
			0: {ring(0, transfer(true, 1, 12, regions.NameSendPeerWait, 900*ms))},
			1: {ring(1, transfer(true, 2, 9, regions.NameSendNetwork, 800*ms),
				transfer(false, 0, 12, regions.NameRecvGPUWait, 900*ms))},
			2: {ring(2, transfer(false, 1, 9, regions.NameRecvNetwork, 810*ms),
				transfer(true, 3, 9, regions.NameSendGPUWait, 820*ms))},
			3: {ring(3, transfer(false, 2, 9, regions.NameRecvNetwork, 830*ms))},
		}, nil, verdict.SlowTransfer, []int{1}, 2,
			`a transfer of 524288 bytes from Rank 1 to Rank 2 (channel 1, step 9, phase "Send network") in AllReduce 0 on A was handed to the network and has not been sent`},
		{"a transfer that does not come", worlds(1), list{
			0: {ring(0, transfer(false, 3, 4, regions.NameRecvNetwork, 820*ms))},
			1: {ring(1, transfer(true, 2, 9, regions.NameSendGPUWait, 800*ms))},
			2: {ring(2, transfer(false, 1, 4, regions.NameRecvNetwork, 810*ms),
				transfer(true, 3, 4, regions.NameSendGPUWait, 820*ms))},
			3: {ring(3, transfer(false, 2, 4, regions.NameRecvNetwork, 830*ms),
				transfer(true, 0, 4, regions.NameSendGPUWait, 840*ms))},
		}, nil, verdict.SlowTransfer, []int{1}, 2, "from Rank 1 to Rank 2 (channel 1, step 4"},
		{"who died first", worlds(1), missing, func(rank int, p *shardtest.Process) {
			status := uint32(15)
			if rank == 2 {
				p.Shard.End.Time, status = t0+900*ms, 11
			}
			p.Shard.End.Status = &status
		}, verdict.Missing, []int{2}, -1, "are in: killed by SIGSEGV"},
		{"what was lost is not missing", worlds(1), missing, func(rank int, p *shardtest.Process) {
			if rank == 2 {
				p.Shard.Counts.Lost = map[string]map[string]uint64{"memory": {"Coll": 1}}
			}
		}, "", nil, -1, ""},
		{"left on purpose", worlds(1), list{0: {left(in(0, "AllReduce", "running", 0))},
			1: {left(in(0, "AllReduce", "running", 0))},
			2: {left(in(0, "AllReduce", "running", 0))}, 3: {left(in(0, "AllReduce", "running", 0))}}, nil, "", nil, -1,
			""},
	} {
		for _, alive := range []bool{false, true} {
			name := tc.name + ", dead"
			if alive {
				name = tc.name + ", alive"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "job")
				for rank := range 4 {
					p := shardtest.New(t, dir, fmt.Sprintf("rank%d", rank)).Launched("slurm", rank, 4).On(
						"n0", 100+rank)
					p.GPU(rank, "", "")
					for _, c := range tc.comms(rank) {
						c.InitTime = t0
						p.Comm(c)
					}
					p.Shard.Masks.Record = 1<<6 | 1<<1 // KernelCh, Coll
					p.Shard.LastTime = t0 + 1100*ms
					p.Shard.Pending = tc.pending[rank]
					if !alive {
						p.Shard.End = &experiment.End{Time: t0 + 31*s, Called: true}
					}
					if tc.also != nil && (!alive || p.Shard.End != nil || strings.HasPrefix(tc.name, "what")) {
						tc.also(rank, p)
					}
					if alive {
						p.Flush()
					} else {
						p.Finish()
					}
				}
				all, problems, err := jobs.List(dir)
				testkit.Require(t, err == nil && len(all) == 1 && len(problems) == 0, "%v %v %v", all, problems, err)
				testkit.Require(t, !alive || all[0].Processes[0].State == jobs.Running, "%+v", all[0].Processes[0])
				stops := waitfor.Find(all[0], time.Unix(0, t0+31*s))
				got := waitfor.Culprits(all[0], stops)
				if alive {
					says, _, _ := strings.Cut(tc.says, ": killed")
					checkCulprits(t, tc.kind, tc.culprits, tc.peer, says, got)
					soon := waitfor.Culprits(all[0], waitfor.Find(all[0], time.Unix(0, t0+2*s)))
					testkit.Check(t, len(soon) == 0, "after a second: %+v", soon)
					return
				}
				checkCulprits(t, tc.kind, tc.culprits, tc.peer, tc.says, got)
				r := testkit.Value(scorep.Unify(dir, nil))(t)
				a := jobtest.Open(t, r.Runs[0].Archive)
				checkCulprits(t, tc.kind, tc.culprits, tc.peer, tc.says, waitfor.OfArchive(a.Anchor))
			})
		}
	}
}

func left(p experiment.Pending) experiment.Pending {
	p.Left = true
	return p
}

// chain makes communicators A of ranks 0 and 1, B of 1 and 2, C of 2 and 3. A rank lists the communicator that it
// shares with the next rank first.
func chain(rank int) (all []experiment.Comm) {
	if rank < 3 {
		all = append(all, link(rank, 0))
	}
	if rank > 0 {
		all = append(all, link(rank-1, 1))
	}
	return append(all, experiment.Comm{ID: 1, Name: "world", NRanks: 4, Rank: rank})
}

// triangle is a closed chain of ranks 0, 1 and 2.
func triangle(rank int) (all []experiment.Comm) {
	if rank < 3 {
		all = append(all, link(rank, 0), link((rank+2)%3, 1))
	}
	return append(all, experiment.Comm{ID: 1, Name: "world", NRanks: 4, Rank: rank})
}

func link(i, rank int) experiment.Comm {
	return experiment.Comm{ID: uint64(10 + i), Name: string(rune('A' + i)), NRanks: 2, Rank: rank}
}

func checkCulprits(t *testing.T, kind verdict.Kind, culprits []int, peer int, says string, got []verdict.Culprit) {
	t.Helper()
	var who []int
	for _, c := range got {
		who = append(who, c.Rank)
		testkit.Check(t, c.Kind == kind && c.Host == "n0" && c.GPU == fmt.Sprint(c.Rank) && c.Share > 0 &&
			c.Confidence > 0 && c.Confidence <= 1, "%+v", c)
		testkit.Check(t, (c.Peer == nil) == (peer < 0) && (c.Peer == nil || *c.Peer == peer),
			"peer %v, want %d", c.Peer, peer)
		testkit.Check(t, strings.Contains(c.Evidence, says), "no %q in %q", says, c.Evidence)
	}
	slices.Sort(who)
	testkit.Check(t, slices.Equal(who, culprits), "culprits %v, want %v: %+v", who, culprits, got)
}
