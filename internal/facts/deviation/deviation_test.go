// SPDX-License-Identifier: Apache-2.0

package deviation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

const (
	t0 = shardtest.Epoch + 10_000_000
	us = 1_000
)

// asked is what a rank does instead of an AllReduce of 100 float32 elements.
type asked struct {
	rank, at int
	do       func(p *shardtest.Process, begin uint64)
}

func elements(n uint64, datatype string) func(*shardtest.Process, uint64) {
	return func(p *shardtest.Process, begin uint64) {
		p.Collective(0, shardtest.Op{Function: "AllReduce", Begin: begin, End: begin + us, Count: n,
			Datatype: datatype})
	}
}

func root(rank uint32) func(*shardtest.Process, uint64) {
	return func(p *shardtest.Process, begin uint64) { p.Broadcast(0, int(rank), begin, begin+us, 100, "gpu") }
}

// Of a job of three ranks that differ in some operations, unify names these and no others.
func TestOnlyWhatDeviatesIsNamed(t *testing.T) {
	var said strings.Builder
	for _, tc := range []struct {
		name string
		ops  []int // that each rank makes
		but  []asked
		last func(rank int, p *shardtest.Process)
	}{
		{"nothing", []int{200, 200, 200}, nil, nil},
		{"one count", []int{200, 200, 200}, []asked{{1, 70, elements(50, "")}}, nil},
		{"in the first window", []int{67, 67, 67}, []asked{{1, 7, elements(50, "")}}, nil},
		{"two, and a run", []int{300, 300, 300},
			[]asked{{2, 3, elements(5, "")}, {0, 250, elements(6, "")}, {0, 251, elements(6, "")}}, nil},
		{"one type", []int{20, 20, 20}, []asked{{0, 9, elements(100, "ncclInt32")}}, nil},
		{"one type and count", []int{20, 20, 20}, []asked{{0, 9, elements(50, "ncclFloat64")}}, nil},
		{"another type and size", []int{20, 20, 20}, []asked{{0, 9, elements(60, "ncclFloat64")}}, nil},
		{"one root", []int{0, 0, 0}, []asked{{0, 0, root(2)}, {1, 0, root(2)}, {2, 0, root(1)}}, nil},
		{"all differ", []int{3, 3, 3}, []asked{{1, 1, elements(50, "")}, {2, 1, elements(60, "")}}, nil},
		{"one makes fewer", []int{17, 17, 16}, nil, nil},
		{"one makes fewer behind a digest", []int{130, 130, 70}, nil, nil},
		{"fewer, and one other", []int{130, 130, 70}, []asked{{2, 66, elements(50, "")}}, nil},
		{"with losses nobody knows which is which", []int{200, 200, 200}, []asked{{1, 70, elements(50, "")}},
			func(rank int, p *shardtest.Process) {
				if rank == 2 {
					p.Shard.Counts.Lost = map[string]map[string]uint64{"memory": {"Coll": 1}}
				}
			}},
	} {
		dir := filepath.Join(t.TempDir(), "job")
		for rank, n := range tc.ops {
			p := shardtest.New(t, dir, fmt.Sprintf("rank%d", rank)).Launched("slurm", rank, 3).On("n0", 100+rank)
			p.World()
			for i := range max(n, 1) {
				begin := t0 + uint64(i)*10*us
				at := slices.IndexFunc(tc.but, func(a asked) bool { return a.rank == rank && a.at == i })
				switch {
				case at >= 0:
					tc.but[at].do(p, begin)
				case n > 0:
					elements(100, "")(p, begin)
				}
			}
			if tc.last != nil {
				tc.last(rank, p)
			}
			p.Finish()
		}
		r := testkit.Value(scorep.Unify(dir, nil))(t)
		fmt.Fprintf(&said, "%s:\n", tc.name)
		for _, d := range r.Runs[0].Differences {
			fmt.Fprintf(&said, "  %s %d-%d: %s, deviant %v\n", d.Function, d.First, d.Last, d.Detail, d.Deviants)
		}
	}
	golden.Text(t, "testdata/deviations.txt", said.String())
}

// Where an event file lacks what the shard speaks of, its windows count as different.
func TestFilesThatLackOperations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "job")
	for rank := range 2 {
		p := shardtest.New(t, dir, fmt.Sprintf("rank%d", rank)).Launched("slurm", rank, 2).On("n0", 100+rank)
		p.World()
		for i := range 100 {
			elements(uint64(100+100*rank*(i/70)), "")(p, t0+uint64(i)*10*us)
		}
		p.Finish()
		if rank == 1 {
			testkit.Must(t, os.Remove(filepath.Join(p.Dir, "1.evt")))
		}
	}
	r := testkit.Value(scorep.Unify(dir, nil))(t)
	d := r.Runs[0].Differences
	testkit.Check(t, len(d) == 1 && d[0].First == 64 && d[0].Last == 99, "%+v", d)
}
