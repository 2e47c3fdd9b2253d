// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// definer makes an archive's definitions from its roster, rows and networks, and the tables that map each process's ids
// to the archive's.
type definer struct {
	*roster
	*definitions
	*rows
	tables      *localTables
	ownParadigm bool // see UnifyOptions
}

// define builds all definitions except the clock's. The event files must have been placed, because the definitions
// contain their event counts.
func (d *definer) define() {
	d.text("")
	d.attributes()
	tree := newSystemTree(d.definitions, d.world, d.on)
	d.defineLocations(tree)
	d.defineRegions()
	d.defineMetrics(tree)
	d.defineParadigms()
	d.defineComms()
	d.nameRanks()
	d.mapIDs()
}

// mapIDs makes the tables that map each process's attribute, communicator, string and window ids to the archive's.
func (d *definer) mapIDs() {
	comms := make(map[*jobs.Process][]uint64)
	for _, p := range d.run.Processes {
		table := make([]uint64, len(p.Shard.Comms))
		for i := range table {
			table[i] = math.MaxUint64 // undefined, as for communicators of one rank: no event refers to them
		}
		comms[p] = table
	}
	for _, in := range d.instances {
		for m := range in.Present() {
			comms[m.Process][m.Index] = uint64(in.Ref)
		}
	}
	attributes := make([]uint64, len(regions.Attributes))
	for _, at := range regions.Attributes { // local ids count from 0
		attributes[at.Ref] = uint64(d.from.attribute + at.Ref)
	}
	for _, p := range d.ordered() {
		d.tables.add(p, otf2.MappingAttribute, attributes)
		d.tables.add(p, otf2.MappingComm, comms[p])
		global := make([]uint64, len(p.Shard.Strings))
		for i, s := range p.Shard.Strings {
			global[i] = uint64(d.text(s))
		}
		d.tables.add(p, otf2.MappingString, global)
		wins := make([]uint64, len(d.networks.windows[p]))
		for i, n := range d.networks.windows[p] {
			wins[i] = uint64(n.ref)
		}
		d.tables.add(p, otf2.MappingRmaWin, wins)
	}
}
