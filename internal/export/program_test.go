// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// programOf exports a job as a program, and returns also the words of each rank's block.
func programOf(t *testing.T, anchor string) (text string, blocks [][]string) {
	t.Helper()
	var out bytes.Buffer
	testkit.Value(Program(jobtest.Open(t, anchor), "-", &out, &Options{Version: "test"}))(t)
	for i, block := range strings.Split(out.String(), "?[")[1:] {
		words, rest, ok := strings.Cut(block, "]\n")
		testkit.Require(t, ok && (rest == "" || rest == strconv.Itoa(i+1)), "rank %d: %q", i, rest)
		blocks = append(blocks, strings.Fields(words))
	}
	return out.String(), blocks
}

func TestJobsBecomePrograms(t *testing.T) {
	text, _ := programOf(t, makeJob(t))
	golden.Text(t, filepath.Join("testdata", "job.program.txt"), text)
}

// The late rank works longer, in each step; the others do not work while they wait for it.
func TestProgramsHaveTheWorkOfRanks(t *testing.T) {
	dir := t.TempDir()
	jobtest.WriteTraining(t, dir, jobtest.PerHost, 5)
	_, blocks := programOf(t, jobtest.Unify(t, dir))
	worked, calls := make([]float64, len(blocks)), 0
	for rank, words := range blocks {
		for _, w := range words {
			if ms, found := strings.CutPrefix(w, "work:"); found {
				worked[rank] += testkit.Value(strconv.ParseFloat(ms, 64))(t)
			} else if w == "ar:1024:f32" { // communicators of one rank have no operations
				calls++
			}
		}
	}
	testkit.Equal(t, calls, 4*40*len(blocks), "calls")
	for rank, w := range worked {
		if more := worked[5] - w; rank != 5 {
			testkit.Check(t, more > 38 && more < 40.001, "rank 5 works %.3f ms longer than rank %d", more, rank)
		}
	}
}

// What runs beside other operations is called without waiting for these; what follows both waits for both.
func TestProgramsDoNotWaitForWhatStillRuns(t *testing.T) {
	_, blocks := programOf(t, jobtest.Make(t, 2, 2, func(r int, p *shardtest.Process) {
		world := p.World()
		at := func(us_ uint64) uint64 { return t0 + us_*us }
		second := p.Comm(description.Comm{ID: 2, Name: "second", NRanks: 2, Rank: r, InitTime: t0})
		p.AllReduce(world, at(100), at(200), 10)
		p.AllReduce(second, at(100), at(200), 20)
		p.AllReduce(world, at(300), at(900), 10)
		p.AllReduce(second, at(400), at(700), 20)
		p.AllReduce(second, at(1000), at(1100), 20)
	}))
	testkit.Equal(t, strings.Join(blocks[0], " "), "comm:0 stream:0 ar:10:f32 comm:1 stream:1 ar:20:f32 sync "+
		"work:0.100 comm:0 stream:0 ar:10:f32 work:0.100 comm:1 stream:1 ar:20:f32 sync work:0.100 ar:20:f32 sync", "rank 0")
}
