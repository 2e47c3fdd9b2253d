// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/collectors"
)

// Collectors are killed in the middle of a job. Each process stays one process, each communicator one communicator, and
// every operation is in the archive or counted as lost, by its function.
func TestTakeoverCountsEveryOperation(t *testing.T) {
	for _, name := range []string{"02-allcoll-4p-net", "05-p2p-3p", "08-v5-nccl228-3p", "09-straggler-4p"} {
		for _, part := range []int{25, 50, 90} {
			for _, all := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s-%d-%v", name, part, all), func(t *testing.T) {
					t.Parallel()
					takenOver(t, recording(t, name), part, all)
				})
			}
		}
	}
}

func takenOver(t *testing.T, rec *replay.Recording, part int, all bool) {
	dir := filepath.Join(t.TempDir(), "experiment")
	opt := usual(t, dir, clock(replay.ClockLive), env("NCCL_OTF2_EVENTS=gpu"))
	opt.StopAt = func(process int) int {
		if !all && process > 0 {
			return 0
		}
		return 1 + len(rec.Processes[process].Calls)*part/100
	}
	var killed atomic.Int64
	opt.Stopped = func(_, pid int) {
		for _, c := range collectors.Of(dir) {
			if collectors.Follows(c, pid) && collectors.Kill(c) == nil {
				killed.Add(1)
			}
		}
	}
	run(t, rec, opt)
	collectors.Await(t, dir)
	testkit.Require(t, killed.Load() != 0, "no collector was killed")
	anchor := unified(t, dir)
	checkSound(t, anchor, check.Note)

	want := make(map[string]int)
	communicators := make(map[string]bool)
	expected := expect(rec)
	for m, of := range expected.operations {
		for _, ops := range of {
			for _, op := range ops {
				want[op.Name]++
			}
		}
		communicators[m.comm] = true
	}
	got := make(map[string]int)
	for _, e := range shardsOf(t, dir) {
		for function, n := range e.Counts.Lost[loss.WithCollector] {
			got[function] += int(n)
		}
	}
	a := openArchive(t, anchor)
	processes := 0
	for _, g := range a.Defs.LocationGroups {
		if g.Type == otf2.LocationGroupTypeProcess {
			processes++
		}
	}
	testkit.Check(t, processes == len(rec.Processes) && len(a.Defs.Comms) == len(communicators),
		"%d processes and %d communicators, want %d and %d", processes, len(a.Defs.Comms), len(rec.Processes),
		len(communicators))
	for _, l := range a.Defs.Locations {
		for e, err := range a.EventsOf(l.Self) {
			testkit.Must(t, err)
			switch e.Kind {
			case otf2.EventMpiIsend:
				got["Send"]++
			case otf2.EventMpiIrecv:
				got["Recv"]++
			case otf2.EventMpiCollectiveEnd, otf2.EventNonBlockingCollectiveComplete:
				got[collectiveName(otf2.CollectiveOp(e.Args[0]))]++
			}
		}
	}
	for _, function := range []string{"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "AlltoAll",
		"Gather", "Scatter", "Send", "Recv"} {
		testkit.Check(t, got[function] == want[function],
			"%s: %d in the archive or counted as lost, %d were called", function, got[function], want[function])
	}
}

// collectiveName is NCCL's name of a collective as archives have it.
func collectiveName(op otf2.CollectiveOp) string {
	return map[otf2.CollectiveOp]string{
		otf2.CollectiveOpAllreduce: "AllReduce", otf2.CollectiveOpAllgather: "AllGather",
		otf2.CollectiveOpReduceScatterBlock: "ReduceScatter",
		otf2.CollectiveOpBcast:              "Broadcast", otf2.CollectiveOpReduce: "Reduce",
		otf2.CollectiveOpAlltoall: "AlltoAll",
		otf2.CollectiveOpGather:   "Gather", otf2.CollectiveOpScatter: "Scatter",
	}[op]
}
