// SPDX-License-Identifier: Apache-2.0

package waitfor_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// created are the communicators of a rank of four: the world, and those that it has come to the creation of.
func created(more func(rank int) []experiment.Comm) comms {
	return func(rank int) []experiment.Comm {
		return append([]experiment.Comm{{ID: 1, Name: "world", NRanks: 4, Rank: rank}}, more(rank)...)
	}
}

// X is a communicator of so many ranks in which each has its number in the world, without those named.
func x(ranks int, without ...int) comms {
	return created(func(rank int) []experiment.Comm {
		if rank >= ranks || slices.Contains(without, rank) {
			return nil
		}
		return []experiment.Comm{{ID: 9, Name: "X", NRanks: ranks, Rank: rank}}
	})
}

const notSaid = "Not known whether they wait for a rank in the creation of a communicator (ncclCommInitRank, " +
	"ncclCommSplit), because one is recorded only when all of its ranks have come"

// Of a communicator that some ranks have come to and others have not, these are named where it is known which they are.
// Otherwise it is said since when ranks have been silent, and why no more is known.
func TestCreation(t *testing.T) {
	for _, tc := range []struct {
		name     string
		comms    comms
		also     func(rank int, p *shardtest.Process)
		culprits []int
		says     string
	}{
		{"one of four has not come", x(4, 3), nil, []int{3},
			"Rank 3 has not come as far in the creation of X (4 ranks) as Ranks 0-2"},
		{"two have not", x(4, 0, 2), nil, []int{0, 2},
			"Ranks 0,2 have not come as far in the creation of X (4 ranks) as Ranks 1,3"},
		{"it has been used", x(4, 3), func(rank int, p *shardtest.Process) {
			if rank < 3 {
				p.Shard.Comms[1].Sequences = map[string]experiment.Sequence{"AllReduce": {Count: 1}}
			}
		}, nil, "Ranks 0-3 have recorded nothing for 29.9 s; Ranks 0-2 have joined 2 communicators, Rank 3 1 " +
			"communicator. " + notSaid},
		{"all have come", x(4), nil, nil, "Ranks 0-3 have recorded nothing for 29.9 s. " + notSaid},
		{"which one it is, is not known", x(3, 2), nil, nil, "X, on which nothing was called, has 3 ranks, of which 2 " +
			"are recorded. " + notSaid},
		{"it may be in it", x(4, 3), func(rank int, p *shardtest.Process) {
			if rank == 3 {
				p.Comm(experiment.Comm{ID: 9, Name: "X", NRanks: 4, Rank: 0, InitTime: t0})
			}
		}, nil, notSaid},
		{"one goes on", x(0), func(rank int, p *shardtest.Process) {
			if rank == 3 {
				p.Shard.LastTime = t0 + 28*s
			}
		}, nil, "Ranks 0-2 have recorded nothing for 29.9 s, Rank 3 for 3 s. " + notSaid},
		{"one is not recorded", x(0), func(_ int, p *shardtest.Process) { p.Shard.Launcher.Size = 5 }, nil,
			"; of 1 of the job's 5 processes nothing is recorded. " + notSaid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			make := func(alive bool) string {
				dir := filepath.Join(t.TempDir(), "job")
				for rank := range 4 {
					p := shardtest.New(t, dir, fmt.Sprintf("rank%d", rank)).Launched("slurm", rank, 4).On("n0", 100+rank)
					p.GPU(rank, "", "")
					for _, c := range tc.comms(rank) {
						c.InitTime = t0
						p.Comm(c)
					}
					p.Shard.LastTime = t0 + 1100*ms
					if tc.also != nil {
						tc.also(rank, p)
					}
					if alive {
						p.Flush()
						continue
					}
					status := uint32(9)
					p.Shard.End = &experiment.End{Time: t0 + 31*s, Called: true, Status: &status}
					p.Finish()
				}
				return dir
			}
			dir := make(true)
			h := testkit.Value(hang.Find(dir, time.Unix(0, t0+31*s), nil))(t)
			var who []int
			for _, c := range h.Jobs[0].Culprits {
				who = append(who, c.Rank)
			}
			testkit.Same(t, who, tc.culprits)
			var text bytes.Buffer
			testkit.Must(t, report.Hang(h).WriteText(&text))
			testkit.Check(t, strings.Contains(text.String(), tc.says), "no %q in %s", tc.says, &text)
			h = testkit.Value(hang.Find(dir, time.Unix(0, t0+2*s), nil))(t)
			testkit.Check(t, h.Jobs[0].Silent == "" && len(h.Jobs[0].Culprits) == 0, "after a second: %+v", h.Jobs[0])
			a := jobtest.Open(t, testkit.Value(scorep.Unify(make(false), nil))(t).Runs[0].Archive)
			r := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
			all := waitfor.OfArchive(a.Anchor)
			if len(tc.culprits) > 0 {
				testkit.Require(t, len(all) == len(tc.culprits), "%+v", all)
				r.Summary.Silent = all[0].Evidence
			}
			testkit.Check(t, strings.Contains(r.Summary.Silent, tc.says), "no %q in the archive: %q", tc.says,
				r.Summary.Silent)
		})
	}
}
