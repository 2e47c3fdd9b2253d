// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// rows holds the locations of an archive.
type rows struct {
	*roster
	on        target
	networks  *networks
	repeated  repeated
	locations []*location // sorted by id after locate
	ids       map[*jobs.Process]map[uint32]*location
}

// location is one location of the archive.
type location struct {
	otf2.Location
	number uint32
	part   *jobs.Process         // nil: stands for processes without data
	source *description.Location // nil: the row has no events
	typ    otf2.LocationType
	name   string
	gpu    int
	marked bool // its forwarded calls, also on a Score-P row, are marked
}

// locationID returns the id of a location, as in Score-P: the local number in the upper half, the process's index in
// the lower half.
func locationID(number uint32, process int) otf2.LocationRef {
	return otf2.LocationRef(uint64(number)<<32 | uint64(process))
}

func locationOf(p *jobs.Process, number uint32) otf2.LocationRef {
	return locationID(p.Base+number, p.Index)
}

// placeLocation returns the empty location of a place without data.
func placeLocation(pl *jobs.Place) otf2.LocationRef { return locationID(pl.Base, pl.Index) }

// locate creates the rows of all processes, including rows for communicator ranks without events.
func (r *rows) locate() {
	next := make(map[*jobs.Process]uint32)
	for _, p := range r.run.Processes {
		next[p] = r.locateProcess(p)
	}
	r.locateMembers(next)
	r.locateNetworks()
	for _, pl := range r.world.Places {
		if pl.Process == nil {
			r.locations = append(r.locations, &location{
				Location: otf2.Location{Self: placeLocation(pl), Group: otf2.LocationGroupRef(pl.Index)},
				name:     "no data", typ: otf2.LocationTypeCPUThread,
			})
		}
	}
	slices.SortFunc(r.locations, func(x, y *location) int { return cmp.Compare(x.Self, y.Self) })
}

// locateProcess creates the rows that a process has recorded. It returns the first unused number.
func (r *rows) locateProcess(p *jobs.Process) (next uint32) {
	threads := 0
	for i := range p.Shard.Locations {
		l := &p.Shard.Locations[i]
		next = max(next, l.Number+1)
		if r.repeated[p][l.Number] {
			continue
		}
		do, name := r.on.row(p, l)
		r.on.countTreatment(do)
		if do == leaveRow {
			continue
		}
		row := r.add(p, l.Number, name, l.Type, gpuOfLocation(p, l))
		row.source, row.marked = l, do == markRow
		if l.Type == otf2.LocationTypeCPUThread {
			threads++
		}
	}
	if threads == 0 && !r.on.hasProcess(p) { // readers expect a thread in every process
		r.add(p, next, "Thread 0", otf2.LocationTypeCPUThread, 0)
		next++
	}
	return next
}

// locateMembers sets the location of each communicator member. Members without operations get rows numbered from next
// on.
func (r *rows) locateMembers(next map[*jobs.Process]uint32) {
	idle := make(map[jobs.Device][]*location) // rows of ranks without operations
	for _, in := range r.instances {
		taken := make(map[jobs.Device]int)
		for m := range in.Present() {
			c := m.Comm()
			if c.Location >= 0 {
				m.Location = r.ids[m.Process][uint32(c.Location)].Self
				continue
			}
			// One row of a GPU stands for all its ranks without rows, because each row needs files.
			dev := jobs.Device{Process: m.Process, GPU: gpuOf(m.Process, m.Index)}
			nth := taken[dev]
			taken[dev]++
			if nth == len(idle[dev]) {
				idle[dev] = append(idle[dev], r.add(m.Process, next[m.Process],
					fmt.Sprintf("%s"+regions.RankRow+"%d", in.Name, c.Rank), otf2.LocationTypeAcceleratorStream,
					dev.GPU))
				next[m.Process]++
			} else {
				idle[dev][nth].name = noOperations
			}
			m.Location = idle[dev][nth].Self
		}
	}
}

// locateNetworks sets the locations of members of networks.
func (r *rows) locateNetworks() {
	for _, n := range r.networks.all {
		if n.of == nil {
			continue
		}
		for m := range n.of.Present() {
			if c := m.Comm(); c.Location >= 0 {
				m.Location = r.ids[m.Process][uint32(c.Location)].Self
			} else if m.Location == 0 { // without operations, its process's row stands for it
				m.Location = r.standsFor(m.Process)
			}
		}
	}
}

// standsFor returns the row that stands for a process as a whole.
func (r *rows) standsFor(p *jobs.Process) otf2.LocationRef {
	if first := r.firstOf(p); first != nil {
		return first.Self
	}
	return r.on.standsFor(p) // all rows of the process were left out
}

// noOperations is the name of a GPU's row that several communicator ranks without operations share.
const noOperations = "no operations"

// add adds a row of a process.
func (r *rows) add(p *jobs.Process, number uint32, name string, typ otf2.LocationType, gpu int) *location {
	l := &location{
		Location: otf2.Location{Self: locationOf(p, number), Group: otf2.LocationGroupRef(p.Index)},
		number:   number, part: p, typ: typ, name: name, gpu: gpu,
	}
	r.locations = append(r.locations, l)
	keyed.Map(r.ids, p)[number] = l
	return l
}

// rowName returns the name of a row. A row that several communicator ranks shared is called "shared" with its number.
// Threads keep their numbered names.
func rowName(l *description.Location) string {
	if !l.Shared() || l.Kind == description.KindThread {
		return l.Name
	}
	shared := fmt.Sprintf("shared %d", l.Number)
	switch l.Kind {
	case description.KindEnqueue:
		return regions.EnqueueRow + shared
	case description.KindNetSend:
		return shared + regions.SendRow
	case description.KindNetRecv:
		return shared + regions.RecvRow
	case description.KindChannel:
		return shared + l.Name[max(0, strings.LastIndex(l.Name, regions.ChannelRow)):]
	}
	return shared
}

// firstOf returns the process's row with the lowest number, its first application thread if it has one; nil if it has
// no rows.
func (r *rows) firstOf(p *jobs.Process) *location {
	var first *location
	for _, l := range r.ids[p] {
		if first == nil || l.number < first.number {
			first = l
		}
	}
	return first
}

// distinguishRanks adds the rank to the names of network and enqueue rows where a process has several ranks in one
// communicator, because their rows would have the same name.
func (r *rows) distinguishRanks() {
	type row struct {
		part *jobs.Process
		name string
	}
	rank := func(l *location) (at row, rank int, ok bool) {
		s := l.source
		if s == nil || s.Comm < 0 || s.Comm >= len(l.part.Shard.Comms) {
			return row{}, 0, false
		}
		switch s.Kind {
		case description.KindNetSend, description.KindNetRecv, description.KindEnqueue:
			return row{l.part, l.name}, l.part.Shard.Comms[s.Comm].Rank, true
		}
		return row{}, 0, false
	}
	rows := make(map[row]int)
	for _, l := range r.locations {
		if at, _, ok := rank(l); ok {
			rows[at]++
		}
	}
	for _, l := range r.locations {
		if at, rank, ok := rank(l); ok && rows[at] > 1 {
			l.name = naming.AddOwner(l.name, rank)
		}
	}
}
