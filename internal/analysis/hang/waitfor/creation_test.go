// SPDX-License-Identifier: Apache-2.0

package waitfor_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// created are the communicators of a rank of four: the world, and those that it has come to the creation of.
func created(more func(rank int) []description.Comm) comms {
	return func(rank int) []description.Comm {
		return append([]description.Comm{{ID: 1, Name: "world", NRanks: 4, Rank: rank}}, more(rank)...)
	}
}

// X is a communicator of so many ranks in which each has its number in the world, without those named.
func x(ranks int, without ...int) comms {
	return created(func(rank int) []description.Comm {
		if rank >= ranks || slices.Contains(without, rank) {
			return nil
		}
		return []description.Comm{{ID: 9, Name: "X", NRanks: ranks, Rank: rank}}
	})
}

// Of a communicator that some ranks have come to and others have not, these are named where it is known which they are.
// Otherwise it is said since when ranks have been silent, and why no more is known.
func TestCreation(t *testing.T) {
	var said bytes.Buffer
	for _, tc := range []struct {
		name  string
		comms comms
		also  func(rank int, p *shardtest.Process)
	}{
		{"one of four has not come", x(4, 3), nil},
		{"two have not", x(4, 0, 2), nil},
		{"it has been used", x(4, 3), func(rank int, p *shardtest.Process) {
			if rank < 3 {
				p.Shard.Comms[1].Sequences = map[string]sequence.Sequence{"AllReduce": {Count: 1}}
			}
		}},
		{"all have come", x(4), nil},
		{"which one it is, is not known", x(3, 2), nil},
		{"it may be in it", x(4, 3), func(rank int, p *shardtest.Process) {
			if rank == 3 {
				p.Comm(description.Comm{ID: 9, Name: "X", NRanks: 4, Rank: 0, InitTime: t0})
			}
		}},
		{"one goes on", x(0), func(rank int, p *shardtest.Process) {
			if rank == 3 {
				p.Shard.LastTime = t0 + 28*s
			}
		}},
		{"one is not recorded", x(0), func(_ int, p *shardtest.Process) { p.Shard.Launcher.Size = 5 }},
	} {
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
				p.Shard.End = &description.End{Time: t0 + 31*s, Called: true, Status: &status}
				p.Finish()
			}
			return dir
		}
		dir := make(true)
		h := testkit.Value(hang.Find(dir, time.Unix(0, t0+31*s), nil))(t)
		h.Directory = tc.name
		list(&said, h.Jobs[0].Culprits)
		testkit.Must(t, report.Hang(h).WriteText(&said))
		h = testkit.Value(hang.Find(dir, time.Unix(0, t0+2*s), nil))(t)
		testkit.Check(t, h.Jobs[0].Silent == "" && len(h.Jobs[0].Culprits) == 0, "after a second: %+v", h.Jobs[0])
		a := jobtest.Open(t, testkit.Value(scorep.Unify(make(false), nil))(t).Runs[0].Archive)
		r := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
		fmt.Fprintf(&said, "in the archive: %s\n", r.Summary.Silent)
		list(&said, waitfor.OfArchive(a.Anchor))
	}
	golden.Text(t, "testdata/creation.txt", said.String())
}
