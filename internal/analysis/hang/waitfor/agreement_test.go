// SPDX-License-Identifier: Apache-2.0

package waitfor_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// detail is how much of a job is recorded.
type detail struct {
	name string
	mask uint32
}

// details are those of the presets, and of the default one where NCCL's kernels are not stamped.
var details = []detail{{"default without KernelCh", 1<<1 | 1<<2}, {"gpu", 1<<6 | 1<<1 | 1<<2},
	{"net", 1<<6 | 1<<3 | 1<<4 | 1<<1 | 1<<2}, {"all", 0xffff}}

// program is what a rank calls, in order: "AR" AllReduce, "AG" AllGather, "RS" ReduceScatter, "BC" Broadcast (each with
// "@comm", ":count", "/root", if these are not 0, 100, 0), ">3" a message to rank 3, "<3" one from it. What ends with
// "!" does not end; with "?!", its GPU does not begin it.
type program string

// play draws the calls of a rank.
func (w program) play(t *testing.T, p *shardtest.Process, d detail) {
	t.Helper()
	functions := map[string]string{"AR": "AllReduce", "AG": "AllGather", "BC": "Broadcast", "RS": "ReduceScatter"}
	for i, word := range strings.Fields(string(w)) {
		begin := uint64(t0 + (1+i)*10*ms)
		word, stuck := strings.CutSuffix(word, "!")
		word, idle := strings.CutSuffix(word, "?")
		word, root, _ := strings.Cut(word, "/")
		word, count, _ := strings.Cut(word, ":")
		word, comm, _ := strings.Cut(word, "@")
		number := func(text string, otherwise int) int {
			if text == "" {
				return otherwise
			}
			return testkit.Value(strconv.Atoi(text))(t)
		}
		on, n, of := number(comm, 0), number(count, 100), number(root, 0)
		key := functions[word]
		switch word[0] {
		case '>':
			key = "Send" + word
			p.Send(on, number(word[1:], 0), begin, begin+ms, uint64(n))
		case '<':
			key = "Recv" + word
			p.Recv(on, number(word[1:], 0), begin, begin+ms, uint64(n))
		default:
			p.Collective(on, shardtest.Op{Function: key, Begin: begin, End: begin + ms, Count: uint64(n), Root: uint32(of)})
		}
		c := &p.Shard.Comms[on]
		c.Begun = begin
		if stuck && d.mask&(1<<6) != 0 {
			p.Shard.Pending = append(p.Shard.Pending, description.Pending{Comm: on, Function: key, Since: begin,
				Ordinal: c.Sequences[key].Count - 1, State: "running", Begun: !idle, Count: uint64(n), Datatype: "ncclFloat32", Root: of,
				Stream: 7})
		}
	}
}

// The same ranks are named whatever is recorded, for the same reason, and by the archive as by the shards.
func TestWhoDisagrees(t *testing.T) {
	var said strings.Builder
	for _, tc := range []struct {
		name     string
		comms    comms
		programs []program
	}{
		{"a message without its receiver", worlds(1), []program{"AR AR!", "AR >2! AR!", "AR AR!", "AR AR!"}},
		{"a message without its sender", worlds(1), []program{"AR", "AR", "AR <3!", "AR"}},
		{"two that send to each other", worlds(1), []program{"AR >1!", "AR >0!", "AR", "AR"}},
		{"three that send in a circle", worlds(1), []program{"AR >1!", "AR >2!", "AR >0!", "AR"}},
		{"another order on one communicator", worlds(1), []program{"AR AR! BC!", "AR BC! AR!", "AR AR! BC!", "AR AR! BC!"}},
		{"another order, and all ended", worlds(1), []program{"AR RS AG AR", "AR RS AG AR", "AR RS AG AR", "AR AG RS AR"}},
		{"another order of two and two", worlds(1), []program{"AR! BC!", "AR! BC!", "BC! AR!", "BC! AR!"}},
		{"one more", worlds(1), []program{"AR AR!", "AR AR!", "AR AG! AR!", "AR AR!"}},
		{"one less", worlds(1), []program{"AG! AR!", "AG! AR!", "AR!", "AG! AR!"}},
		{"another count, and that rank has ended it", worlds(1), []program{"AR AR:50", "AR AR!", "AR AR!", "AR AR!"}},
		{"a message of another length", worlds(1), []program{"AR >1:100 >1:100 AR", "AR <0:100 <0:50 AR", "AR AR", "AR AR"}},
		{"another count on two communicators", worlds(2), []program{"AR AR:50 AR@1 AR@1:60", "AR AR AR@1 AR@1",
			"AR AR AR@1 AR@1", "AR AR AR@1 AR@1"}},
		{"another root", worlds(1), []program{"BC/1!", "BC/1!", "BC/1!", "BC/0"}},
		{"another order on two communicators", worlds(2), []program{"AR@0! AR@1!", "AR@1!", "AR@0! AR@1!", "AR@0!"}},
		{"another order on parts of the world", pairs, []program{"AR@1 AR@0!", "AR@0!", "AR@1 AR@0!", "AR@1!"}},
		{"a chain of communicators", chain, []program{"AR@0!", "AR@0 AR@1!", "AR@0 AR@1!", ""}},
		{"two kinds of communicators", grid, []program{"AR@1 AR@0!", "AR@1!", "AR@1 AR@0!", ""}},
	} {
		for _, d := range details {
			fmt.Fprintf(&said, "%s, %s\n", tc.name, d.name)
			dir, job := killed(t, tc.comms, tc.programs, d, nil)
			list(&said, waitfor.Culprits(job, waitfor.Find(job, time.Unix(0, t0+40*s))))
			list(&said, ofArchive(t, dir))
			for _, f := range testkit.Value(check.Archive(filepath.Join(dir, "traces.otf2"), nil))(t).Findings {
				fmt.Fprintln(&said, " ", f)
			}
		}
	}
	golden.Text(t, "testdata/disagreements.txt", said.String())
}

// killed makes a job of four ranks that were killed 31 s after its start. also changes what is known of a rank.
func killed(t *testing.T, comms comms, programs []program, d detail, also func(rank int, p *shardtest.Process)) (
	string, *progress.Job) {
	t.Helper()
	dir, status := filepath.Join(t.TempDir(), "job"), uint32(9)
	for rank, w := range programs {
		p := shardtest.New(t, dir, fmt.Sprintf("rank%d", rank)).Launched("slurm", rank, 4).On("n0", 100+rank)
		p.GPU(rank, "", "")
		for _, c := range comms(rank) {
			c.InitTime = t0
			p.Comm(c)
		}
		p.Shard.Masks.Record = d.mask
		w.play(t, p, d)
		p.Shard.End = &description.End{Time: t0 + 31*s, Status: &status}
		if also != nil {
			also(rank, p)
		}
		p.Finish()
	}
	all, problems, err := progress.List(dir)
	testkit.Require(t, err == nil && len(all) == 1 && len(problems) == 0, "%v %v %v", all, problems, err)
	return dir, all[0]
}

// Where records are missing, numbers and places have shifted, and nobody is accused.
func TestNobodyIsAccusedWhereRecordsAreMissing(t *testing.T) {
	lossy := map[string]func(p *shardtest.Process){
		"lost": func(p *shardtest.Process) {
			p.Shard.Counts.Lost = map[string]map[string]uint64{"memory": {"Coll": 1}}
		},
		"imported": func(p *shardtest.Process) { p.Shard.Import = &description.Import{From: "a profiler", Partial: true} },
	}
	for name, change := range lossy {
		for _, programs := range [][]program{
			{"AR RS AG AR!", "AR AG RS AR!", "AR RS AG AR!", "AR RS AG AR!"}, {"AR AR!", "AR", "AR AR!", "AR AR!"},
			{"AR >1!", "AR", "AR", "AR"}, {"AR AR:50!", "AR AR!", "AR AR!", "AR AR!"},
		} {
			_, job := killed(t, worlds(1), programs, details[1], func(rank int, p *shardtest.Process) {
				if rank == 1 {
					change(p)
				}
			})
			got := waitfor.Culprits(job, waitfor.Find(job, time.Unix(0, t0+40*s)))
			testkit.Check(t, len(got) == 0, "%s, %q: %+v", name, programs, got)
		}
	}
}

// grid makes communicators tp of ranks 0 and 1, and 2 and 3, then dp of 0 and 2, and 1 and 3.
func grid(rank int) []description.Comm {
	return []description.Comm{
		{ID: uint64(20 + rank/2), Name: fmt.Sprint("tp", rank/2), NRanks: 2, Rank: rank % 2},
		{ID: uint64(30 + rank%2), Name: fmt.Sprint("dp", rank%2), NRanks: 2, Rank: rank / 2},
		{ID: 1, Name: "world", NRanks: 4, Rank: rank},
	}
}

// A GPU that does not begin an operation that the others are in is named where kernels are recorded.
func TestGPUsThatDoNotBegin(t *testing.T) {
	var said strings.Builder
	for _, tc := range []struct {
		name     string
		programs []program
	}{
		{"one", []program{"AR AR!", "AR AR!", "AR AR?!", "AR AR!"}},
		{"half of them", []program{"AR AR!", "AR AR!", "AR AR?!", "AR AR?!"}},
		{"it is still in another operation", []program{"AR AG! AR!", "AR AG! AR!", "AR AG! AR?!", "AR AG! AR!"}},
	} {
		for _, d := range details {
			fmt.Fprintf(&said, "%s, %s\n", tc.name, d.name)
			dir, job := killed(t, worlds(1), tc.programs, d, nil)
			list(&said, waitfor.Culprits(job, waitfor.Find(job, time.Unix(0, t0+40*s))))
			list(&said, ofArchive(t, dir))
		}
	}
	golden.Text(t, "testdata/idle-gpus.txt", said.String())
}
