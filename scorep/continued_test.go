// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// A collector died, another took over: one process has left two shards. It stays one rank of one job.
func TestALifeInSeveralShardsIsOneProcess(t *testing.T) {
	for _, launched := range []bool{true, false} {
		t.Run(fmt.Sprint("launched ", launched), func(t *testing.T) {
			dir := t.TempDir()
			for r := range 3 {
				var before map[string]sequence.Sequence
				shards := 1
				if r == 1 {
					shards = 3
				}
				for k := range shards {
					p := shardtest.New(t, dir, fmt.Sprintf("u%d%d", r, 9-k)).On(
						"node0", 10+r) // names against the order
					p.Shard.Tag = uint16(r + 1)
					p.Shard.Settings = map[string]string{}
					if k > 0 {
						p.Shard.Settings["CONTINUES"] = fmt.Sprintf("u%d%d", r, 9-k+1)
					}
					if launched {
						p.Launched("slurm", r, 3)
					}
					p.GPU(0, fmt.Sprint("GPU-", r), "")
					p.Comm(description.Comm{ID: 1, Name: "world", NRanks: 3, Rank: r, InitTime: t0, Sequences: before})
					p.Network(0)
					if k == 2 { // of what the one before held in memory it is known what it was
						p.Shard.Counts.Lost =
							map[string]map[string]uint64{loss.WithCollector: {"AllReduce": 2}}
						p.Lose(0, 2, shardtest.Op{Function: "AllReduce", Count: 10})
					}
					n := uint64(6 / shards)
					if r != 1 {
						n = 8
					}
					for i := range n {
						at := t0 + 1_000_000*(1+i+uint64(6/shards*k))
						p.AllReduce(0, at, at+1000, 10)
						p.Put(0, (r+1)%3, at, at+10, 100)
					}
					if k < shards-1 {
						before = maps.Clone(p.Shard.Comms[0].Sequences)
						p.Flush()
						p.Crash(-1, nil)
					} else {
						p.Finish()
					}
				}
			}
			res := unify(t, dir, muchLater)
			testkit.Require(t, len(res.Runs) == 1, "%d runs", len(res.Runs))
			run := res.Runs[0]
			testkit.Check(t, run.MissingRanks == 0 && run.Missing == 0 && !run.Complete && run.Crashed == 0 &&
				run.Finished == 3 && run.Communicators == 1 && run.Lost == 2, "%+v", run)
			accept(t, run.Archive)
			a := open(t, run.Archive)
			want := []string{"Rank 0", "Rank 1", "Rank 2"}
			testkit.Same(t, want, processNames(a))
			testkit.Equal(t, propertyText(a, "NCCL_OTF2::PROCESSES_CONTINUED"), "2", "processes continued")
			testkit.Equal(t, propertyText(a, "NCCL_OTF2::LOST::COLLECTOR_DIED::ALL_REDUCE"), "2",
				"AllReduces died with a collector")
			if want :=
				`comm 0 AllReduce 4-5 "world": Rank 1 lacks them: they were in the memory of a collector that died`; len(run.Differences) != 1 || run.Differences[0].String() != want {
				t.Errorf("%v, want %s", run.Differences, want)
			}
			var members []string
			for _, c := range a.Defs.Comms {
				members = append(members, fmt.Sprint(a.Defs.String(c.Name), a.Defs.Group(c.Group).Members))
			}
			wantMembers := []string{"world[0 1 2]", "world network[4 6 8 3 5 7]"}
			testkit.Same(t, wantMembers, members)
			got := make(map[string]int)
			for _, p := range transferPuts(t, a) {
				got[strings.TrimSuffix(p.From, "/world net send")+" to "+strings.TrimSuffix(p.To, "/world net recv")]++
			}
			wantPuts := map[string]int{"Rank 0 to Rank 1": 8, "Rank 1 to Rank 2": 6, "Rank 2 to Rank 0": 8}
			testkit.Same(t, wantPuts, got)
		})
	}
}
