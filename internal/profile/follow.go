// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Follower sums up the communicator ranks of a process while it writes its events to files. It reads each event once,
// at the first [Follower.Read] that finds it. Its memory is that of an [Aggregator], whatever the length of the files.
type Follower struct {
	*Aggregator
	names *localNames
	path  string
	tails map[uint32]*otf2.EventTail
}

// localNames resolves local ids, as far as the process has described them.
type localNames struct {
	facts.Names
	process   *description.Process
	locations map[otf2.LocationRef]Location
}

func (n *localNames) RegionOf(ref otf2.RegionRef) Region {
	if int64(ref) >= int64(len(n.process.Regions)) {
		return Region{}
	}
	r := &n.process.Regions[ref]
	return Region{Name: r.Name, Group: r.Group, Role: r.Role}
}

func (n *localNames) LocationOf(ref otf2.LocationRef) Location { return n.locations[ref] }

// Follow returns a follower of the shard in a folder.
func Follow(path string) *Follower {
	names := &localNames{locations: make(map[otf2.LocationRef]Location)}
	g := NewAggregator(names, nil)
	g.samples = true
	return &Follower{Aggregator: g, names: names, path: path, tails: make(map[uint32]*otf2.EventTail)}
}

// Read reads the events written since the last call, as far as p, the present description of the shard, describes them.
// The error is that of a damaged file; all others have been read.
func (f *Follower) Read(p *description.Process) (damage error) {
	f.names.Names, f.names.process = facts.ShardNames(p), p
	for i := range p.Locations {
		loc := &p.Locations[i]
		if loc.Kind != description.KindRank {
			continue
		}
		ref := otf2.LocationRef(loc.Number)
		l := Location{Kind: loc.Kind}
		if loc.Comm >= 0 && loc.Comm < len(p.Comms) {
			l.Ranks, l.Rank = p.Comms[loc.Comm].NRanks, p.Comms[loc.Comm].Rank
		}
		f.names.locations[ref] = l
		if err := f.read(loc, ref, p.EventChunkSize); err != nil && damage == nil {
			damage = err
		}
	}
	return damage
}

// read reads a location's events up to where its description ends: later ids may not be described yet.
func (f *Follower) read(loc *description.Location, ref otf2.LocationRef, chunk uint64) error {
	t := f.tails[loc.Number]
	if t == nil {
		var err error
		if t, err = otf2.NewEventTail(experiment.EventFile(f.path, loc.Number), ref, chunk); err != nil {
			return err
		}
		f.tails[loc.Number] = t
	}
	if t.Offset() >= loc.Bytes {
		return nil
	}
	for ev, err := range t.Events() {
		if err != nil {
			return err
		}
		f.Event(ev)
		if t.Offset() >= loc.Bytes {
			break
		}
	}
	return nil
}
