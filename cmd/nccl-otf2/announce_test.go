// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A task has recorded if a process of its machine has its rank, or has a rank that is not its launcher's.
func TestRecordedByTask(t *testing.T) {
	const here = "this boot"
	of := func(boot, launcher string, rank int) experiment.Entry {
		return experiment.Entry{Process: &description.Process{BootID: boot,
			Launcher: provenance.Launcher{Name: launcher, Rank: rank, Size: 4}}}
	}
	task := config.Launcher{Name: "slurm", Rank: 2, Size: 4}
	for _, c := range []struct {
		name    string
		entries []experiment.Entry
		want    bool
	}{
		{"nothing", nil, false},
		{"its own", []experiment.Entry{of(here, "slurm", 1), of(here, "slurm", 2)}, true},
		{"others of the machine", []experiment.Entry{of(here, "slurm", 1), of(here, "slurm", 3)}, false},
		{"of torchrun's workers", []experiment.Entry{of(here, "torchrun", 7)}, true},
		{"of torchrun's workers on another machine", []experiment.Entry{of("another", "torchrun", 2)}, false},
		{"without the launcher's variables", []experiment.Entry{of(here, "", -1)}, true},
		{"of its rank on another machine", []experiment.Entry{of("another", "slurm", 2)}, false},
		{"not described", []experiment.Entry{{}}, true},
	} {
		testkit.Equal(t, recordedByTask(c.entries, task, here), c.want, "%s", c.name)
	}
}

// A shard that has not said yet whose it is, is waited for: a rank that records nothing may end while the others begin.
func TestShardsThatBeginAreWaitedFor(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Value(experiment.Create(dir, "one"))(t)
	t.Cleanup(func() { _ = s.Close() })
	over, cancel := context.WithCancel(t.Context())
	cancel()
	entries, err := listShards(over, dir)
	testkit.Require(t, err == nil && len(entries) == 1 && entries[0].State == experiment.Starting, "%+v, %v", entries,
		err)
	written := time.AfterFunc(100*time.Millisecond, func() {
		err := s.Write(&description.Process{Version: description.Version, UUID: "one",
			Launcher: provenance.Launcher{Name: "slurm", Rank: 1}})
		testkit.Check(t, err == nil, "%v", err)
	})
	defer written.Stop()
	entries, err = listShards(t.Context(), dir)
	testkit.Check(t, err == nil && len(entries) == 1 && entries[0].Process != nil &&
		entries[0].Process.Launcher.Rank == 1, "%+v, %v", entries, err)
}
