// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Ids in the event files of a process, before they are part of an archive, refer to shard.json.

// ShardNames returns the Names of a process's event files. Their attribute ids are those of package regions: their
// [Reader] has nil attributes.
func ShardNames(p *description.Process) Names { return shardNames{p} }

type shardNames struct{ *description.Process }

func (n shardNames) String(ref otf2.StringRef) string { return *described(n.Strings, ref) }

func (n shardNames) RegionName(ref otf2.RegionRef) string { return described(n.Regions, ref).Name }

func (n shardNames) CommSize(ref otf2.CommRef) int { return described(n.Comms, ref).NRanks }

// Rank is the rank of the process: its locations belong to no other rank of its communicators.
func (n shardNames) Rank(ref otf2.CommRef, _ otf2.LocationRef) int {
	if int64(ref) < int64(len(n.Comms)) {
		return n.Comms[ref].Rank
	}
	return -1
}

// described returns the description with an id, an empty one if there is none.
func described[E any, R ~uint32](all []E, ref R) *E {
	if int64(ref) < int64(len(all)) {
		return &all[ref]
	}
	return new(E)
}

// archiveNames implements Names for an archive.
type archiveNames struct {
	*otf2.Definitions
	membership.CommTable
}

// ArchiveNames returns the Names of an archive with these definitions and communicators.
func ArchiveNames(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator) Names {
	return archiveNames{defs, comms}
}
