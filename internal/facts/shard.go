// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// What ids mean in the event files of a process, before they are part of an archive: shard.json says.

// ShardNames tells what ids mean in a process's event files. Its attributes are those of package regions: a [Reader] of
// them has nil attributes.
func ShardNames(p *experiment.Process) Names { return shardNames{p} }

type shardNames struct{ *experiment.Process }

func (n shardNames) String(ref otf2.StringRef) string {
	if int64(ref) < int64(len(n.Strings)) {
		return n.Strings[ref]
	}
	return ""
}

func (n shardNames) RegionName(ref otf2.RegionRef) string {
	if int64(ref) < int64(len(n.Regions)) {
		return n.Regions[ref].Name
	}
	return ""
}

func (n shardNames) CommSize(ref otf2.CommRef) int {
	if int64(ref) < int64(len(n.Comms)) {
		return n.Comms[ref].NRanks
	}
	return 0
}

// Rank is that of the process: its locations show no other rank of a communicator of its own.
func (n shardNames) Rank(ref otf2.CommRef, _ otf2.LocationRef) int {
	if int64(ref) < int64(len(n.Comms)) {
		return n.Comms[ref].Rank
	}
	return -1
}
