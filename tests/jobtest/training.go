// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"fmt"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// A training job of some ranks, made up: one process for each rank, eight on a host; communicators of all ranks, of the
// eight of a host (tensor parallel) and of those with the same place on their hosts (data parallel). In each step a
// rank computes, and takes part in three AllReduces of its host, one of its data-parallel group and one of all. One
// rank computes longer.

// PerHost is how many ranks of a training job run on each host.
const PerHost = 8

const (
	steps    = 40
	compute  = 300_000 // ns, before each AllReduce
	slower   = 1_000_000
	exchange = 200_000
	elements = 1024
	begin    = shardtest.Epoch + 1_000_000_000
)

// group is a kind of communicator: its number and a rank's place in it.
type group struct {
	name string
	of   func(rank int) (number, place int)
	size func(ranks int) int
}

var (
	world  = group{"world", func(r int) (int, int) { return 0, r }, func(n int) int { return n }}
	tensor = group{"tp", func(r int) (int, int) { return r / PerHost, r % PerHost }, func(int) int { return PerHost }}
	data   = group{"dp", func(r int) (int, int) { return r % PerHost, r / PerHost },
		func(n int) int { return n / PerHost }}

	groups = []group{world, tensor, data}
	step   = []int{1, 1, 1, 2, 0} // its AllReduces, by indices into groups
)

// interval is a rank's part of an AllReduce.
type interval struct{ begin, end uint64 }

// run works out when each rank was in each AllReduce, by rank.
func run(ranks, late int) [][]interval {
	clock, all := make([]uint64, ranks), make([][]interval, ranks)
	for r := range clock {
		clock[r] = begin
	}
	for range steps {
		for _, g := range step {
			last := make(map[int]uint64)
			for r := range clock {
				clock[r] += compute
				if r == late && g == 0 {
					clock[r] += slower
				}
				number, _ := groups[g].of(r)
				last[number] = max(last[number], clock[r])
			}
			for r := range clock {
				number, _ := groups[g].of(r)
				all[r] = append(all[r], interval{clock[r], last[number] + exchange})
				clock[r] = last[number] + exchange
			}
		}
	}
	return all
}

// WriteTraining writes the shards of a training job into a directory. ranks is a multiple of PerHost; rank late is
// late.
func WriteTraining(t testing.TB, dir string, ranks, late int) {
	t.Helper()
	writeTraining(t, dir, ranks, late, false)
}

// WriteMarkedTraining writes the same, with each step marked by the application as a phase: "step 0", "step 1" and so
// on.
func WriteMarkedTraining(t testing.TB, dir string, ranks, late int) {
	t.Helper()
	writeTraining(t, dir, ranks, late, true)
}

func writeTraining(t testing.TB, dir string, ranks, late int, marked bool) {
	t.Helper()
	for r, intervals := range run(ranks, late) {
		writeRank(t, dir, r, ranks, intervals, marked)
	}
}

func writeRank(t testing.TB, dir string, r, ranks int, intervals []interval, marked bool) {
	p := shardtest.New(t, dir, fmt.Sprintf("%05d", r)).On(fmt.Sprintf("node%04d", r/PerHost), 1000+r).Launched(
		"slurm", r, ranks)
	p.GPU(r%PerHost, fmt.Sprint("GPU-", r), "")
	var comms []int
	for k, g := range groups {
		number, place := g.of(r)
		comms = append(comms, p.Comm(description.Comm{
			ID: uint64(k+1)<<32 | uint64(number), Name: fmt.Sprint(g.name, number), NRanks: g.size(ranks), Rank: place,
			InitTime: begin - 1_000_000 + uint64(k),
		}))
	}
	since := uint64(begin)
	for i, at := range intervals {
		kind, event := step[i%len(step)], uint64(i+1)
		if marked && i%len(step) == 0 {
			testkit.Must(t, p.Writer(0).Enter(otf2.Timestamp(since), nil, phase(p, i/len(step))))
		}
		p.CallFor("ncclAllReduce", event, at.begin-10_000, at.begin-5_000)
		p.Collective(comms[kind], shardtest.Op{Function: "AllReduce", Begin: at.begin, End: at.end, Count: elements,
			Algo: "RING", Proto: "SIMPLE", Channels: 4, Parent: event})
		if marked && i%len(step) == len(step)-1 {
			testkit.Must(t, p.Writer(0).Leave(otf2.Timestamp(at.end), nil, phase(p, i/len(step))))
			since = at.end
		}
	}
	p.Finish()
}

// phase is the region of a step.
func phase(p *shardtest.Process, number int) otf2.RegionRef {
	region := p.Region(fmt.Sprint("step ", number), regions.GroupApplication, otf2.RegionRoleCode)
	p.Shard.Regions[region].Paradigm = otf2.ParadigmUser
	return region
}
