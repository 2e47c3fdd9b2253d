// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/collectors"
)

// Of a job that hung for long before it was killed, the report says the same as of one that hung for a moment: without
// GPU times, too, where only the network's events show that operations run.
func TestHangOfAnyAge(t *testing.T) {
	for _, h := range []hanging{
		{v6, "AllReduce", 4, 3, []int{2}, "net", "kill"},
		{v6, "AllReduce", 4, 3, []int{2}, "net-sums", "kill"},
		{v6, "ReduceScatter", 4, 1, []int{0, 3}, "all", "kill"},
	} {
		for _, backlog := range []string{"auto", "off"} {
			t.Run(h.events+"-"+backlog, func(t *testing.T) {
				t.Parallel()
				rec := h.play(t)
				for _, p := range rec.Processes {
					p.Calls[len(p.Calls)-1].T += 40e9
				}
				dir := filepath.Join(t.TempDir(), "experiment")
				opt := usual(t, dir, clock(replay.ClockRecorded), env("NCCL_OTF2_EVENTS="+h.events,
					"NCCL_OTF2_BACKLOG="+backlog, "NCCL_ALLGATHERV_ENABLE=1"))
				opt.StopAt = func(process int) int { return len(rec.Processes[process].Calls) }
				opt.Stopped = func(_, pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
				testkit.Value(replay.Run(t.Context(), rec, opt))(t)
				collectors.Await(t, dir)
				testkit.Equal(t, h.fault(dir, false), "", "when it is dead")
			})
		}
	}
}
