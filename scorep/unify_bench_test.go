// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// BenchmarkUnify unifies jobs of ten locations per process: the time should grow with the number of
// locations (reported per location) and not with that of events.
func BenchmarkUnify(b *testing.B) {
	for _, c := range []struct{ processes, operations int }{{100, 1}, {100, 100}, {1000, 1}} {
		b.Run(fmt.Sprintf("locations=%d/operations=%d", c.processes*10, c.operations), func(b *testing.B) {
			dir := b.TempDir()
			for r := range c.processes {
				p := shardtest.New(b, dir, fmt.Sprintf("%05d", r)).On(fmt.Sprint("n", r/8), r).Launched(
					"slurm", r, c.processes)
				p.GPU(r%8, fmt.Sprint("GPU-", r), "")
				for i := range uint64(9) {
					comm := p.Comm(description.Comm{ID: i, Name: fmt.Sprint("c", i), NRanks: c.processes, Rank: r,
						InitTime: t0 + i})
					for k := range uint64(c.operations) {
						p.AllReduce(comm, t0+1000*(k+1), t0+1000*(k+1)+900, 1)
					}
				}
				p.Finish()
			}
			for b.Loop() {
				testkit.Value(Unify(dir, nil))(b)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*c.processes*10), "µs/location")
		})
	}
}

// BenchmarkMovedEnds unifies a job of Tree AllReduces, whose ends have to be looked for in the events and moved on all
// ranks but one.
func BenchmarkMovedEnds(b *testing.B) {
	for _, c := range []struct {
		ranks, operations int
		early             bool
	}{{64, 2000, false}, {64, 2000, true}, {2048, 60, true}} {
		ranks, operations, early := c.ranks, c.operations, c.early
		b.Run(fmt.Sprintf("ranks=%d/early=%v", ranks, early), func(b *testing.B) {
			dir := b.TempDir()
			for r := range ranks {
				p := shardtest.New(b, dir, fmt.Sprintf("%05d", r)).Launched("slurm", r, ranks)
				comm := p.Comm(description.Comm{ID: 1, Name: "world", NRanks: ranks, Rank: r, InitTime: t0})
				for k := range uint64(operations) {
					begin := t0 + 1_000_000*(k+1)
					p.Collective(comm, shardtest.Op{Function: "AllReduce", Begin: begin,
						End: begin + uint64(10_000+400*r), Sent: 4, Received: 4, Count: 1, Algo: "TREE",
						Uncertainty: 1000, EndsEarly: early})
				}
				p.Finish()
			}
			for b.Loop() {
				testkit.Value(Unify(dir, nil))(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*ranks*operations), "ns/operation")
		})
	}
}
