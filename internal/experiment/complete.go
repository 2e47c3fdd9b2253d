// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
)

// Complete reports whether the shards of a job are all there and none is being written. The launcher states the number
// of processes; without one, every communicator must have all its ranks.
func Complete(entries []Entry) bool {
	type communicator struct {
		id     uint64
		nranks int
	}
	size := 0
	processes := make(map[provenance.Launcher]bool)
	members := make(map[communicator]map[int]bool)
	for _, e := range entries {
		if e.State == Starting || e.State == Writing {
			return false
		}
		if e.Process == nil {
			continue
		}
		size = max(size, e.Process.Launcher.Size)
		processes[e.Process.Launcher] = true
		for _, c := range e.Process.Comms {
			k := communicator{c.ID, c.NRanks}
			keyed.Map(members, k)[c.Rank] = true
		}
	}
	if size > 0 {
		return len(processes) >= size
	}
	for k, ranks := range members {
		if len(ranks) < k.nranks {
			return false
		}
	}
	return true
}
