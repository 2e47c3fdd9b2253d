// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// The collector at work beside it, no thread of the job faults from its second operation on, whatever is recorded: all
// memory for records is used for the first time here, and its pages are in place before.
func TestNoPageFaults(t *testing.T) {
	t.Parallel()
	host := newHost(t, "").host
	const spooled = "spool"
	for _, c := range []struct {
		name     string
		settings []string
	}{
		{"light", []string{"NCCL_OTF2_EVENTS=light"}},
		{"default", nil},
		{"net", []string{"NCCL_OTF2_EVENTS=net"}},
		{"all", []string{"NCCL_OTF2_EVENTS=all"}},
		{spooled, []string{"NCCL_OTF2_EVENTS=all", "NCCL_OTF2_COLLECTOR=spool"}},
		{"put off", []string{"NCCL_OTF2_BACKLOG=on"}},
		{"in shm", []string{"NCCL_OTF2_EVENTS=net", "NCCL_OTF2_RING=shm"}},
		{"profile", []string{"NCCL_OTF2_EVENTS=net", "NCCL_OTF2_MODE=profile"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			const ranks, rate, seconds = 2, 150, 1.5
			run := testkit.Value(host.Start(t.Context(), host.Plugin, append(c.settings, "NCCL_OTF2_DIR="+dir), "job",
				ranks, 0,
				ranks, rate, seconds, 0))(t)
			var job caller.Job
			log, err := run.Wait(&job)
			testkit.Require(t, err == nil && log == "", "%v: %s", err, log)
			testkit.Equal(t, job.Faults, 0, "page faults in %d callbacks", job.Calls())
			if c.name == spooled {
				return
			}
			_, err = caller.Await(t.Context(), dir, 1)
			testkit.Check(t, err == nil, "%v", err)
			testkit.Must(t, removeAll(dir))
		})
	}
}
