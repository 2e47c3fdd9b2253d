// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/collectors"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// However far threads run ahead of each other: a process that is stopped after some calls, to be killed there, has made
// the communicators that are among them, for which the others wait.
func TestStopsBehindCommunicators(t *testing.T) {
	p := planned(21, 1982)
	s := scenario.Random(p.job, scenario.RandomOptions{Release: p.release, Processes: p.processes, Calls: p.calls,
		Hazards: p.hazards})
	rec := testkit.Value(s.Load(filepath.Join(t.TempDir(), "recording")))(t)
	stops := make(map[int]int)
	ahead := 0
	for k, process := range rec.Processes {
		var last *replay.Call
		for _, c := range process.Calls {
			if c.Kind == replay.CallInit {
				last = c
			}
		}
		stops[k] = last.Index + 1
		for _, c := range process.Calls { // the thread of the last one is slow, the others are not
			switch {
			case c.Thread == last.Thread && c.Index >= last.Index:
				c.T = last.T + uint64(300*time.Millisecond)
			case c.Index > last.Index:
				ahead++
			}
		}
	}
	testkit.Require(t, ahead != 0, "no thread can run ahead")
	ctx, cancel := context.WithTimeout(context.Background(), mostTime)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "experiment")
	res := testkit.Value(replay.Run(ctx, rec, replay.Options{
		Host: builtFile(t, replay.HostFile), Plugin: builtFile(t, "libnccl-profiler-otf2.so"), Clock: replay.ClockLive,
		Pace: replay.PaceRecorded, Ledger: true,
		Env:     []string{"NCCL_OTF2_DIR=" + dir},
		StopAt:  func(process int) int { return stops[process] },
		Stopped: func(_, pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) },
	}))(t)
	for k, r := range res.Processes {
		testkit.Check(t, r.Signal == syscall.SIGKILL, "process %d: signal %v, status %d", k, r.Signal, r.ExitCode)
		for i, returned := range r.Returned[:stops[k]] {
			testkit.Check(t, rec.Processes[k].Calls[i].Kind != replay.CallInit || returned != 0,
				"process %d was stopped before it made the communicator of call %d", k, i)
		}
	}
	collectors.Await(t, dir)
}
