// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Ends that are those of parts of kernels go to where other members show that they were: the last one's of an
// AllReduce, the sender's of a message. They go no farther than to what comes next on the row, not where that is less
// than the times are off, and not by another host's clock that was not compared.
func TestEarlyEndsAreMoved(t *testing.T) {
	const us, ms = 1_000, 1_000_000
	begin := uint64(t0 + 10*ms)
	tree := func(end, uncertainty uint64, early bool) shardtest.Op {
		return shardtest.Op{Function: "AllReduce", Begin: begin, End: begin + end, Count: 10, Sent: 40, Received: 40,
			Algo: "TREE", Uncertainty: uncertainty, EndsEarly: early}
	}
	for _, test := range []struct {
		name  string
		do    func(rank int, p *shardtest.Process)
		ends  string // of the ranks' last operations, µs after their begin
		moved string
	}{
		{"a tree", func(rank int, p *shardtest.Process) {
			p.Collective(0, tree([]uint64{15 * ms, 4 * us, 9 * us}[rank], 2*us, true))
		}, "[15000 15000 15000]", "2"},
		{"a ring", func(rank int, p *shardtest.Process) {
			p.Collective(0, tree([]uint64{15 * ms, 4 * us, 9 * us}[rank], 2*us, false))
		}, "[15000 4 9]", ""},
		{"less than times are off", func(rank int, p *shardtest.Process) {
			p.Collective(0, tree([]uint64{15 * us, 4 * us, 9 * us}[rank], 4*us, true))
		}, "[15 15 9]", "1"},
		{"only what says that it is early", func(rank int, p *shardtest.Process) {
			p.Collective(0, tree([]uint64{15 * ms, 4 * us, 9 * us}[rank], 2*us, rank == 1))
		}, "[15000 15000 9]", "1"},
		{"another host", func(rank int, p *shardtest.Process) {
			p.On(fmt.Sprintf("node%d", rank/2), 2000+rank)
			p.Collective(0, tree([]uint64{12 * ms, 4 * us, 15 * ms}[rank], 2*us, true))
		}, "[12000 12000 15000]", "1"},
		{"by what the network saw of its GPU", func(rank int, p *shardtest.Process) {
			op := tree([]uint64{15 * ms, 4 * us, 9 * us}[rank], 2*us, true)
			op.GPULast = []uint64{16 * ms, 3 * us, 20 * ms}[rank]
			p.Plan(0, []shardtest.Op{op, op})
		}, "[16000 4 20000]", "4"},
		{"a member that never came", func(rank int, p *shardtest.Process) {
			if rank < 2 {
				p.Collective(0, tree([]uint64{15 * ms, 4 * us}[rank], 2*us, true))
			}
		}, "[15000 4 490]", ""},
		{"several in a launch", func(rank int, p *shardtest.Process) {
			op := tree([]uint64{15 * ms, 4 * us, 9 * us}[rank], 2*us, true)
			p.Plan(0, []shardtest.Op{op, op})
		}, "[15000 4 9]", ""},
		{"a message", func(rank int, p *shardtest.Process) {
			switch rank {
			case 0:
				p.Send(0, 1, begin+20*ms, begin+21*ms, 100)
			case 1:
				p.RecvInPart(0, 0, begin, begin+4*us, 100)
			}
		}, "[1000 21000 490]", "1"},
		{"a message whose end is all of it", func(rank int, p *shardtest.Process) {
			switch rank {
			case 0:
				p.Send(0, 1, begin+20*ms, begin+21*ms, 100)
			case 1:
				p.Recv(0, 0, begin, begin+4*us, 100)
			}
			if rank == 2 {
				p.RecvInPart(0, 0, begin, begin+4*us, 100) // that nobody has sent
			}
		}, "[1000 4 4]", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, p := range job(t, dir, 3, 1, test.do) {
				p.Destroy(0, t0+100*ms)
				p.Finish()
			}
			res := unify(t, dir, nil)
			testkit.Check(t, len(res.Problems)+len(res.Runs[0].Problems) == 0,
				"problems: %q, %q", res.Problems, res.Runs[0].Problems)
			a := open(t, res.Runs[0].Archive)
			testkit.Equal(t, fmt.Sprint(lastDurations(t, a)), test.ends, "the operations take")
			testkit.Equal(t, propertyText(a, property.EndsMoved.Key()), test.moved, "%s", property.EndsMoved.Key())
			again := unify(t, dir, nil)
			testkit.Equal(t, fmt.Sprint(lastDurations(t, open(t, again.Runs[0].Archive))), test.ends,
				"unified once more, the operations take")
		})
	}
}

// lastDurations are those of the last operation of each rank's row, µs.
func lastDurations(t *testing.T, a *otf2.Archive) (all []uint64) {
	t.Helper()
	comms := membership.Communicators(a.Defs)
	last := make(map[otf2.LocationRef]uint64)
	reader := facts.NewReader(facts.ArchiveNames(a.Defs, comms), attribute.Find(a.Defs))
	reader.Operation = func(o *facts.Operation) { last[o.Location] = o.Duration() / 1000 }
	for ev, err := range a.Events(nil) {
		testkit.Must(t, err)
		reader.Event(ev)
	}
	for _, c := range comms {
		for _, l := range c.Members {
			all = append(all, last[l])
		}
	}
	return all
}

// An end goes no farther than to what comes next on its row, and shards keep what they had.
func TestMovedEndsKeepTheOrder(t *testing.T) {
	const us, ms = 1_000, 1_000_000
	dir := t.TempDir()
	procs := job(t, dir, 2, 0, func(rank int, p *shardtest.Process) {
		for i := range uint64(3) {
			op := shardtest.Op{Function: "AllReduce", Begin: t0 + i*ms, End: t0 + i*ms + 5*us, Count: 10, Sent: 40,
				Received: 40, Algo: "TREE", Uncertainty: us, EndsEarly: true}
			if rank == 0 {
				op.Begin, op.End = op.Begin+ms/2, op.Begin+ms+300*us
			}
			p.Collective(0, op)
		}
	})
	finish(procs)
	row := uint32(procs[1].Shard.Comms[0].Location)
	chunk := procs[1].Shard.EventChunkSize
	before := testkit.Value(otf2.ScanEventFile(experiment.EventFile(procs[1].Dir, row), chunk))(t)
	res := unify(t, dir, nil)
	a := open(t, res.Runs[0].Archive)
	var times []uint64
	for _, c := range membership.Communicators(a.Defs) {
		for ev, err := range a.EventsOf(c.Members[1]) {
			testkit.Must(t, err)
			if ev.Kind == otf2.EventEnter || ev.Kind == otf2.EventLeave {
				times = append(times, (uint64(ev.Time)-t0)/us)
			}
		}
	}
	// the communicator ends 1 µs after its last operation
	want := []uint64{0, 1000, 1000, 2000, 2000, 2006}
	testkit.Check(t, slices.Equal(times, want), "operations begin and end at %v µs, want %v", times, want)
	after, err := otf2.ScanEventFile(experiment.EventFile(procs[1].Dir, row), chunk)
	testkit.Check(t, err == nil && before == after,
		"the shard's file has changed: %+v, it was %+v (%v)", after, before, err)
}
