// SPDX-License-Identifier: Apache-2.0

package waitfor_test

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
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
func in(comm int, function, state string, i uint64) description.Pending {
	return description.Pending{Comm: comm, Function: function, Since: t0 + 1*s + i*ms, State: state, Count: 100,
		Datatype: "ncclFloat32", Stream: 7}
}

func asking(p description.Pending, count uint64, datatype string, root int) description.Pending {
	p.Count, p.Datatype, p.Root = count, datatype, root
	return p
}

func on(p description.Pending, stream uint64) description.Pending {
	p.Stream = stream
	return p
}

func moving(p description.Pending, all ...description.Transfer) description.Pending {
	p.Transfers = all
	return p
}

func transfer(send bool, peer, step int, phase string, since uint64) description.Transfer {
	return description.Transfer{Send: send, Peer: peer, Channel: 1, Step: step, Phase: phase, Bytes: 512 << 10,
		Since: t0 + since}
}

// comms returns the communicators of a rank.
type comms func(rank int) []description.Comm

func worlds(n int) comms {
	return func(rank int) (all []description.Comm) {
		for i := range n {
			all = append(all, description.Comm{ID: uint64(i + 1), Name: string(rune('A' + i)), NRanks: 4, Rank: rank})
		}
		return all
	}
}

// pairs makes communicators A of ranks 0 and 2, and B of 1 and 3, so that ranks differ from those of the world.
func pairs(rank int) []description.Comm {
	return []description.Comm{
		{ID: 1, Name: "world", NRanks: 4, Rank: rank},
		{ID: uint64(2 + rank%2), Name: string(rune('A' + rank%2)), NRanks: 2, Rank: rank / 2},
	}
}

func TestWhatKeepsAJobFromGoingOn(t *testing.T) {
	type pending = map[int][]description.Pending
	var said strings.Builder
	missing := pending{0: {in(0, "AllReduce", "running", 0)}, 1: {in(0, "AllReduce", "running", 1)},
		3: {in(0, "AllReduce", "enqueued", 2)}}
	ring := func(rank int, first ...description.Transfer) description.Pending {
		return moving(in(0, "AllReduce", "running", uint64(rank)), first...)
	}
	for _, tc := range []struct {
		name    string
		comms   comms
		pending pending
		also    func(rank int, p *shardtest.Process)
	}{
		{"nothing", worlds(1), nil, nil},
		{"one is missing", worlds(1), missing, nil},
		{"one of a part of the world is missing", pairs, pending{1: {in(1, "Broadcast", "running", 0)}}, nil},
		{"a receiver is missing", pairs, pending{2: {in(1, "Send>0", "running", 0)}}, nil},
		{"two that are not at the same place", pairs, pending{
			0: {in(0, "AllReduce", "running", 5)}, 2: {in(0, "AllReduce", "running", 6)},
			3: {in(0, "AllReduce", "running", 7)}, 1: {in(1, "AllReduce", "running", 0)},
		}, nil},
		{"a chain ends at the missing one", chain, pending{
			0: {in(0, "AllReduce", "running", 0)}, 1: {in(0, "AllReduce", "running", 1)},
			2: {in(0, "AllReduce", "running", 2)},
		}, nil},
		{"one is missing, others are not at the same place", pairs,
			pending{0: {in(1, "AllReduce", "running", 0)}, 1: {in(0, "AllReduce", "running", 2)},
				2: {in(1, "AllReduce", "running", 1)}},
			nil},
		{"opposite orders", worlds(2), pending{
			0: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
			1: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "enqueued", 1)},
			2: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "enqueued", 1)},
			3: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "called", 1)},
		}, nil},
		{"opposite orders, all transfers set up", worlds(2), pending{
			0: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "running", 1)},
			1: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "running", 1)},
			2: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "running", 1)},
			3: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "running", 1)},
		}, nil},
		{"opposite orders of two and two", worlds(2), pending{
			0: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
			1: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "enqueued", 1)},
			2: {in(1, "AllReduce", "running", 0), in(0, "AllReduce", "enqueued", 1)},
			3: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
		}, nil},
		{"a cycle of three communicators", worlds(3), pending{
			0: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1), in(2, "AllReduce", "enqueued", 2)},
			1: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1), in(2, "AllReduce", "enqueued", 2)},
			2: {in(2, "AllReduce", "running", 0), in(0, "AllReduce", "enqueued", 1), in(1, "AllReduce", "enqueued", 2)},
			3: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1), in(2, "AllReduce", "enqueued", 2)},
		}, nil},
		{"a true cycle of three", triangle, pending{
			0: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
			1: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
			2: {in(0, "AllReduce", "running", 0), in(1, "AllReduce", "enqueued", 1)},
		}, nil},
		{"on two streams there is no order", worlds(2), pending{
			0: {in(0, "AllReduce", "running", 0), on(in(1, "AllReduce", "enqueued", 1), 8)},
			1: {in(1, "AllReduce", "running", 0), on(in(0, "AllReduce", "enqueued", 1), 8)},
			2: {in(1, "AllReduce", "running", 0), on(in(0, "AllReduce", "enqueued", 1), 8)},
			3: {in(1, "AllReduce", "running", 0), on(in(0, "AllReduce", "enqueued", 1), 8)},
		}, nil},
		{"another count", worlds(1), pending{
			0: {in(0, "AllReduce", "running", 0)}, 1: {asking(in(0, "AllReduce", "running", 0), 50, "ncclFloat32", 0)},
			2: {in(0, "AllReduce", "running", 0)}, 3: {in(0, "AllReduce", "running", 0)},
		}, nil},
		{"another type", worlds(1), pending{
			0: {in(0, "AllReduce", "running", 0)}, 1: {in(0, "AllReduce", "running", 0)},
			2: {asking(in(0, "AllReduce", "running", 0), 100, "ncclInt32", 0)}, 3: {in(0, "AllReduce", "running", 0)},
		}, nil},
		{"another root", worlds(1), pending{
			0: {asking(in(0, "Reduce", "running", 0), 100, "ncclFloat32", 1)},
			1: {asking(in(0, "Reduce", "running", 0), 100, "ncclFloat32", 1)},
			2: {asking(in(0, "Reduce", "running", 0), 100, "ncclFloat32", 1)},
			3: {asking(in(0, "Reduce", "running", 0), 100, "ncclFloat32", 3)},
		}, nil},
		{"another operation", worlds(1), pending{
			0: {in(0, "AllReduce", "running", 0)}, 1: {in(0, "AllReduce", "running", 0)},
			2: {in(0, "AllReduce", "running", 0)}, 3: {in(0, "AllGather", "running", 0)},
		}, nil},
		{"a transfer that is not sent", worlds(1), pending{
			0: {ring(0, transfer(true, 1, 12, regions.NameSendPeerWait, 900*ms))},
			1: {ring(1, transfer(true, 2, 9, regions.NameSendNetwork, 800*ms),
				transfer(false, 0, 12, regions.NameRecvGPUWait, 900*ms))},
			2: {ring(2, transfer(false, 1, 9, regions.NameRecvNetwork, 810*ms),
				transfer(true, 3, 9, regions.NameSendGPUWait, 820*ms))},
			3: {ring(3, transfer(false, 2, 9, regions.NameRecvNetwork, 830*ms))},
		}, nil},
		{"a transfer that does not come", worlds(1), pending{
			0: {ring(0, transfer(false, 3, 4, regions.NameRecvNetwork, 820*ms))},
			1: {ring(1, transfer(true, 2, 9, regions.NameSendGPUWait, 800*ms))},
			2: {ring(2, transfer(false, 1, 4, regions.NameRecvNetwork, 810*ms),
				transfer(true, 3, 4, regions.NameSendGPUWait, 820*ms))},
			3: {ring(3, transfer(false, 2, 4, regions.NameRecvNetwork, 830*ms),
				transfer(true, 0, 4, regions.NameSendGPUWait, 840*ms))},
		}, nil},
		{"who died first", worlds(1), missing, func(rank int, p *shardtest.Process) {
			status := uint32(15)
			if rank == 2 {
				p.Shard.End.Time, status = t0+900*ms, 11
			}
			p.Shard.End.Status = &status
		}},
		{"what was lost is not missing", worlds(1), missing, func(rank int, p *shardtest.Process) {
			if rank == 2 {
				p.Shard.Counts.Lost = map[string]map[string]uint64{"memory": {"Coll": 1}}
			}
		}},
		{"left on purpose", worlds(1), pending{0: {left(in(0, "AllReduce", "running", 0))},
			1: {left(in(0, "AllReduce", "running", 0))},
			2: {left(in(0, "AllReduce", "running", 0))}, 3: {left(in(0, "AllReduce", "running", 0))}}, nil},
	} {
		for _, alive := range []bool{false, true} {
			fmt.Fprintf(&said, "%s, alive: %t\n", tc.name, alive)
			dir := filepath.Join(t.TempDir(), "job")
			for rank := range 4 {
				p := shardtest.New(t, dir, fmt.Sprintf("rank%d", rank)).Launched("slurm", rank, 4).On("n0", 100+rank)
				p.GPU(rank, "", "")
				for _, c := range tc.comms(rank) {
					c.InitTime = t0
					p.Comm(c)
				}
				p.Shard.Masks.Record = 1<<6 | 1<<1 // KernelCh, Coll
				p.Shard.LastTime = t0 + 1100*ms
				p.Shard.Pending = tc.pending[rank]
				if !alive {
					p.Shard.End = &description.End{Time: t0 + 31*s, Called: true}
				}
				if tc.also != nil && (!alive || strings.HasPrefix(tc.name, "what")) {
					tc.also(rank, p)
				}
				if alive {
					p.Flush()
				} else {
					p.Finish()
				}
			}
			all, problems, err := progress.List(dir)
			testkit.Require(t, err == nil && len(all) == 1 && len(problems) == 0, "%v %v %v", all, problems, err)
			testkit.Require(t, !alive || all[0].Processes[0].State == jobs.Running, "%+v", all[0].Processes[0])
			list(&said, waitfor.Culprits(all[0], waitfor.Find(all[0], time.Unix(0, t0+31*s))))
			if alive {
				soon := waitfor.Culprits(all[0], waitfor.Find(all[0], time.Unix(0, t0+2*s)))
				testkit.Check(t, len(soon) == 0, "%s, after a second: %+v", tc.name, soon)
				continue
			}
			list(&said, ofArchive(t, dir))
		}
	}
	golden.Text(t, "testdata/stops.txt", said.String())
}

func left(p description.Pending) description.Pending {
	p.Left = true
	return p
}

// chain makes communicators A of ranks 0 and 1, B of 1 and 2, C of 2 and 3. A rank lists the communicator that it
// shares with the next rank first.
func chain(rank int) (all []description.Comm) {
	if rank < 3 {
		all = append(all, link(rank, 0))
	}
	if rank > 0 {
		all = append(all, link(rank-1, 1))
	}
	return append(all, description.Comm{ID: 1, Name: "world", NRanks: 4, Rank: rank})
}

// triangle is a closed chain of ranks 0, 1 and 2.
func triangle(rank int) (all []description.Comm) {
	if rank < 3 {
		all = append(all, link(rank, 0), link((rank+2)%3, 1))
	}
	return append(all, description.Comm{ID: 1, Name: "world", NRanks: 4, Rank: rank})
}

func link(i, rank int) description.Comm {
	return description.Comm{ID: uint64(10 + i), Name: string(rune('A' + i)), NRanks: 2, Rank: rank}
}

// ofArchive are the culprits that the archive of an experiment directory names.
func ofArchive(t *testing.T, dir string) []verdict.Culprit {
	t.Helper()
	return waitfor.OfArchive(jobtest.Open(t, testkit.Value(scorep.Unify(dir, nil))(t).Runs[0].Archive).Anchor)
}

// list writes what is said of culprits, in the order of their ranks.
func list(w io.Writer, culprits []verdict.Culprit) {
	slices.SortStableFunc(culprits, func(a, b verdict.Culprit) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, c := range culprits {
		peer := ""
		if c.Peer != nil {
			peer = fmt.Sprintf(" peer %d", *c.Peer)
		}
		fmt.Fprintf(w, "  %s: rank %d of %s, GPU %s%s, share %.2f, confidence %.2f: %s %s\n", c.Kind, c.Rank, c.Host,
			c.GPU, peer, c.Share, c.Confidence, c.Evidence, c.Margin)
	}
	fmt.Fprintln(w)
}
