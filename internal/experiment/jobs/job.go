// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// RankNames names the ranks of a communicator for people.
func (in *Communicator) RankNames(n *Numbering, kept []Slot) []string {
	names := make([]string, in.Nranks)
	of := make(map[*Process]int)
	for m := range in.Present() {
		of[m.Process]++
	}
	for rank, m := range in.Members {
		if m == nil {
			names[rank] = fmt.Sprintf("%s rank %d", in.Name, rank)
			if world := kept[rank].world(); world >= 0 {
				names[rank] = units.RankName(world)
			}
			continue
		}
		names[rank] = m.Process.Name
		gpu := m.Comm().GPU
		if world, ok := n.device[Device{m.Process, gpu}]; ok {
			names[rank] = units.RankName(world)
		} else if of[m.Process] > 1 && gpu >= 0 && gpu < len(m.Process.Shard.GPUs) {
			names[rank] += fmt.Sprintf(" GPU %d", m.Process.Shard.GPUs[gpu].Device)
		}
	}
	return names
}
