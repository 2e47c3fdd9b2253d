// SPDX-License-Identifier: Apache-2.0

package collector

import "ncclotf2/shard"

// maxUnifyLocations is how many locations a collector unifies by itself; beyond it takes seconds per
// thousand, on a machine where other things may want to run.
const maxUnifyLocations = 2000

// isLast tells that all processes of the job have finished their shards. size is the launcher's number
// of processes, −1 if unknown; then every communicator must have all its ranks.
func isLast(experiment string, size int) (bool, error) {
	entries, err := shard.List(experiment)
	if err != nil {
		return false, err
	}
	type instance struct {
		id     uint64
		nranks int
	}
	members := make(map[instance]map[int]bool)
	ranks := make(map[int]bool)
	locations := 0
	for _, e := range entries {
		if e.State == shard.Writing || e.State == shard.Starting {
			return false, nil
		}
		if e.Process == nil {
			continue
		}
		locations += len(e.Process.Locations)
		if l := e.Process.Launcher; l.Size == size {
			ranks[l.Rank] = true
		}
		for _, c := range e.Process.Comms {
			in := instance{c.ID, c.NRanks}
			if members[in] == nil {
				members[in] = make(map[int]bool)
			}
			members[in][c.Rank] = true
		}
	}
	if locations > maxUnifyLocations {
		return false, nil
	}
	if size > 0 {
		return len(ranks) >= size, nil
	}
	for in, ranks := range members {
		if len(ranks) < in.nranks {
			return false, nil
		}
	}
	return true, nil
}
