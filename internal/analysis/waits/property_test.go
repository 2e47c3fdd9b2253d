// SPDX-License-Identifier: Apache-2.0

package waits_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// drawn generates operations of three ranks, one of which sends slowly.
type drawn struct {
	*rapid.T
	w       *waits.Counter
	comm    *membership.Communicator
	slow    int
	clock   [3]otf2.Timestamp
	launch  uint64
	ordinal map[string]uint64
}

// part returns a rank's part in an operation, which begins some time after the previous one.
func (d *drawn) part(rank int, begin, since otf2.Timestamp) analysis.Operation {
	end := max(begin, since) + otf2.Timestamp(rapid.IntRange(0, 200_000).Draw(d.T, "takes"))
	if rapid.IntRange(0, 7).Draw(d.T, "gone before") == 0 {
		end = begin + otf2.Timestamp(rapid.IntRange(0, 1000).Draw(d.T, "stays"))
	}
	d.clock[rank] = end
	o := analysis.Operation{Communicator: d.comm, Rank: rank}
	o.Details, o.Location, o.Comm, o.Begin, o.Since, o.End, o.Launch, o.Peer = facts.NoDetails, d.comm.Members[rank],
		d.comm.Ref, begin, begin, end, d.launch, -1
	o.Source, o.Root = facts.SourceGPU, otf2.CollectiveRootNone
	o.Carried = facts.Carried{Known: true, Link: facts.Link{Peer: int32(rank+1) % 3, Busy: 1000, Transfers: 4,
		Bytes: 4 << 16}}
	if rank == d.slow {
		o.Carried.Link.Busy = uint64(rapid.IntRange(100_000, 300_000).Draw(d.T, "on the way"))
	}
	return o
}

func (d *drawn) begin(rank int) otf2.Timestamp {
	return d.clock[rank] + otf2.Timestamp(rapid.IntRange(0, 50_000).Draw(d.T, "before"))
}

func (d *drawn) next(sequence string) uint64 {
	d.ordinal[sequence]++
	return d.ordinal[sequence] - 1
}

func (d *drawn) collective(c *regions.Collective) {
	d.launch++
	function, n := c.Name, d.next(c.Name)
	root := uint32(otf2.CollectiveRootNone)
	if lateness.WaitKindOf(c) != lateness.WaitCollective {
		root = uint32(rapid.IntRange(0, 2).Draw(d.T, "root"))
	}
	var begin [3]otf2.Timestamp
	last := otf2.Timestamp(0)
	for r := range begin {
		begin[r] = d.begin(r)
		last = max(last, begin[r])
	}
	var members []analysis.Operation
	for r := range begin {
		o := d.part(r, begin[r], last)
		o.Function, o.Collective, o.Root, o.Ordinal, o.Leads, o.Last = function, c, root, n, true, true
		members = append(members, o)
	}
	d.w.Collective(members)
}

// shift sends a message from each rank to the next one, both ends in one launch.
func (d *drawn) shift() {
	d.launch++
	n := d.next("shift")
	for r := range 3 {
		begin := d.begin(r)
		o := d.part(r, begin, begin)
		o.Message = true
		send := o
		send.Function, send.Peer, send.Ordinal = "Send", (r+1)%3, n
		d.w.Message(&send)
		o.Function, o.Peer, o.Ordinal, o.Last = "Recv", (r+2)%3, n, true
		o.Carried.Link = facts.NoDetails.Carried.Link
		d.w.Message(&o)
	}
}

// No rank is held up, by late ranks and slow links together, for longer than it was in operations.
func TestWaitsAndSlowLinksTakeNoMoreThanOperations(t *testing.T) {
	sample := jobtest.Load(t, jobtest.WithWaits(t))
	comms := membership.Communicators(sample.Defs)
	var comm *membership.Communicator
	for _, c := range comms {
		if len(c.Members) == 3 {
			comm = c
		}
	}
	named := 0
	rapid.Check(t, func(t *rapid.T) {
		d := &drawn{T: t, w: waits.NewCounter(sample.Defs, nil, comms), comm: comm,
			slow: rapid.IntRange(0, 2).Draw(t, "slow"), ordinal: make(map[string]uint64)}
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			switch kind := rapid.IntRange(0, len(regions.Collectives)).Draw(t, "kind"); kind {
			case len(regions.Collectives):
				d.shift()
			default:
				d.collective(&regions.Collectives[kind])
			}
		}
		_, s := d.w.Result()
		cost := 0.0
		for i := range s.Slow.Rows {
			cost += s.Slow.Rows[i].Cost
		}
		named += len(s.Slow.Rows)
		testkit.Check(t, cost == s.Slow.Cost && s.Slow.Taken <= float64(s.Total.Time-s.Total.Waited) &&
			cost <= s.Slow.Taken*(1+1e-9), "waited %d of %d, and held up %.0f (%.0f in rows) of %.0f", s.Total.Waited,
			s.Total.Time, s.Slow.Cost, cost, s.Slow.Taken)
	})
	testkit.Check(t, named != 0, "no link was found to be slow")
}
