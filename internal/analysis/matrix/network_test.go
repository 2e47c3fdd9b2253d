// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

func networks(a *otf2.Archive) ([]matrix.NetworkMatrix, []string) {
	r := matrix.Read(a, nil)
	return r.Networks, r.Problems
}

func TestTheNetworkMatrixIsThatOfThePuts(t *testing.T) {
	path := jobtest.WithNetwork(t)
	res := jobtest.Check(t, path)
	testkit.Check(t, len(res.Findings) == 0, "findings:\n%s", jobtest.Lines(res))
	got, problems := networks(jobtest.Open(t, path))
	want := []matrix.NetworkMatrix{{
		Communicator: "world", Comm: 1, Ranks: 3, Total: matrix.Traffic{13, 3*1000 + 3*1001 + 3*1002 + 21 + 500},
		Cells: []matrix.Cell{
			{0, 1, matrix.Traffic{3, 3000}}, {0, 2, matrix.Traffic{2, 507}}, {1, 0, matrix.Traffic{1, 7}},
			{1, 2, matrix.Traffic{3, 3003}},
			{2, 0, matrix.Traffic{3, 3006}}, {2, 1, matrix.Traffic{1, 7}},
		},
	}}
	diff := cmp.Diff(want, got)
	testkit.Check(t, diff == "" && len(problems) == 0, "%v %v", problems, diff)
	// The rest of the report does not mistake the network for a communicator of the program.
	with, without := jobtest.Operations(t, path).Summary, jobtest.Operations(t, jobtest.Typical(t, nil)).Summary
	testkit.Check(t, with.Communicators == without.Communicators && with.Ranks == without.Ranks &&
		with.GPUs == without.GPUs && with.Processes == without.Processes, "with a network %+v,\nwithout %+v", with,
		without)
}

func TestSendersThatAreNotReportedAreNotGuessed(t *testing.T) {
	s := jobtest.Load(t, jobtest.WithNetwork(t))
	reported := 0 // number of senders with sends: only rank 0
	s.Defs.LocationProperties = slices.DeleteFunc(s.Defs.LocationProperties, func(p otf2.LocationProperty) bool {
		if s.Defs.String(p.Name) == property.Rank.Key() {
			reported++
		}
		return reported > 1
	})
	got, _ := networks(jobtest.Open(t, s.Write()))
	testkit.Check(t, len(got) == 1 && got[0].UnknownSender.Transfers == 9 && len(got[0].Cells) == 2 &&
		got[0].Total.Transfers == 13, "%+v", got)
}

func TestArchivesWithoutNetworksHaveNoMatrix(t *testing.T) {
	for _, path := range []string{jobtest.Typical(t, nil),
		filepath.Join("..", "..", "..", "tests", "jobtest", "testdata", "scorep-mpi", "traces.otf2")} {
		got, problems := networks(jobtest.Open(t, path))
		testkit.Check(t, len(got) == 0 && len(problems) == 0, "%s: %+v, %v", path, got, problems)
	}
}

// The matrix has each transfer in the right cell, whoever sends it.
func TestNetworkMatrixOfAnyJob(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := testkit.Value(os.MkdirTemp(t.TempDir(), "job"))(rt)
		size := rapid.IntRange(2, 5).Draw(rt, "ranks")
		var procs []*shardtest.Process
		for r := range size {
			p := shardtest.New(t, dir, fmt.Sprint("p", r)).On("node0", r).Launched("slurm", r, size)
			p.GPU(r, "", "")
			p.Comm(description.Comm{ID: 1, Name: "world", NRanks: size, Rank: size - 1 - r, InitTime: t0})
			if rapid.Bool().Draw(rt, "network") {
				p.Network(0)
				procs = append(procs, p)
			} else {
				p.Finish()
			}
		}
		want := make(map[[2]int]matrix.Traffic)
		now := uint64(t0)
		for range rapid.IntRange(0, 20).Draw(rt, "transfers") {
			if len(procs) == 0 {
				break
			}
			now += 1000
			p := rapid.SampledFrom(procs).Draw(rt, "sender")
			to, bytes := rapid.IntRange(0, size-1).Draw(rt, "receiver"), rapid.Uint64Range(1, 1<<40).Draw(rt, "bytes")
			p.Put(0, to, now, now+500, bytes)
			at := [2]int{p.Shard.Comms[0].Rank, to}
			cell := want[at]
			cell.Add(bytes)
			want[at] = cell
		}
		for _, p := range procs {
			p.Finish()
		}
		anchor := jobtest.Unify(t, dir)
		res := jobtest.Check(t, anchor)
		testkit.Check(rt, res.Errors() == 0, "findings:\n%s", jobtest.Lines(res))
		got := make(map[[2]int]matrix.Traffic)
		matrices, _ := networks(jobtest.Open(t, anchor))
		for _, m := range matrices {
			for _, c := range m.Cells {
				got[[2]int{c.From, c.To}] = c.Traffic
			}
		}
		diff := cmp.Diff(want, got)
		testkit.Check(rt, diff == "" && (len(matrices) == 1) == (len(procs) > 0), "%v %v", len(matrices), diff)
	})
}

// A collector that died leaves an archive that reports it and is sound.
func TestContinuedProcessesAreSound(t *testing.T) {
	dir := t.TempDir()
	var before map[string]sequence.Sequence
	for _, uuid := range []string{"p0", "p1", "p1-again"} {
		rank := int(uuid[1] - '0')
		p := shardtest.New(t, dir, uuid).On("node0", rank).Launched("slurm", rank, 2)
		p.Shard.Tag, p.Shard.Host = uint16(rank+1), hostname(t)
		p.GPU(rank, "", "")
		comm := description.Comm{ID: 1, Name: "world", NRanks: 2, Rank: rank, InitTime: t0}
		if uuid == "p1-again" {
			comm.Sequences = maps.Clone(before)
		}
		p.Comm(comm)
		p.Network(0)
		first, n := uint64(0), uint64(130)
		if rank == 1 {
			n = 65
		}
		if uuid == "p1-again" {
			first = 65
			p.Shard.Settings = map[string]string{description.SettingContinues: "p1"}
		}
		for i := range n {
			p.AllReduce(0, t0+(first+i+1)*us, t0+(first+i+1)*us+500, 10)
			p.Put(0, 1-rank, t0+(first+i+1)*us, t0+(first+i+1)*us+500, 40)
		}
		if uuid == "p1" {
			before = p.Shard.Comms[0].Sequences
			p.Flush()
			p.Crash(-1, nil)
		} else {
			p.Finish()
		}
	}
	out, err := scorep.Unify(dir, nil)
	if err != nil || len(out.Runs) != 1 || !out.Runs[0].Complete { // nothing was in the memory of the one that died
		t.Fatalf("%+v, %v", out, err)
	}
	res := jobtest.Check(t, out.Runs[0].Archive)
	testkit.Check(t, res.Errors() == 0 && len(res.Findings) == 0, "findings:\n%s", jobtest.Lines(res))
	matrices, _ := networks(jobtest.Open(t, out.Runs[0].Archive))
	want := []matrix.Cell{{0, 1, matrix.Traffic{130, 130 * 40}}, {1, 0, matrix.Traffic{130, 130 * 40}}}
	testkit.Check(t, len(matrices) == 1 && cmp.Diff(want, matrices[0].Cells) == "", "%+v", matrices)
}

func hostname(t *testing.T) string {
	t.Helper()
	name := testkit.Value(os.Hostname())(t)
	return name
}
