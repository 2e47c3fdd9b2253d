// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// defineLocations defines the PROCESS location groups, 0…P−1, then the ACCELERATOR groups, then all locations in
// their groups.
func (d *definer) defineLocations(t *systemTree) {
	for _, pl := range d.world.Places {
		if pl.Process != nil && d.on.hasProcess(pl.Process) {
			continue
		}
		node := t.unknown
		if pl.Process != nil {
			node = t.host(pl.Process)
		}
		group := d.locationGroup(pl.Name, otf2.LocationGroupTypeProcess, node, otf2.UndefinedLocationGroup)
		if pl.Process != nil {
			d.LocationGroupProperties = append(d.LocationGroupProperties, otf2.LocationGroupProperty{
				LocationGroup: group, Name: d.text(property.PID.Key()), Type: otf2.TypeUint64,
				Value: otf2.Value(pl.Process.Shard.PID),
			})
			continue
		}
		ranks := property.UnknownRanks
		if pl.Ranks != nil {
			ranks = units.Ranks(pl.Ranks)
		}
		d.LocationGroupProperties = append(d.LocationGroupProperties, otf2.LocationGroupProperty{
			LocationGroup: group, Name: d.text(property.NoData.Key()), Type: otf2.TypeString,
			Value: otf2.Value(d.text(ranks)),
		})
	}
	used := make(map[jobs.Device]bool)
	for _, l := range d.locations {
		if l.typ == otf2.LocationTypeAcceleratorStream {
			used[jobs.Device{Process: l.part, GPU: l.gpu}] = true
		}
	}
	groups := make(map[jobs.Device]otf2.LocationGroupRef)
	for _, pl := range d.world.Places {
		if pl.Process == nil {
			continue
		}
		for _, g := range gpusOf(pl.Process) {
			dev := jobs.Device{Process: pl.Process, GPU: g.index}
			if !used[dev] {
				continue
			}
			ordinal := g.shard.Device
			if ordinal < 0 {
				ordinal = g.index
			}
			groups[dev] = d.locationGroup(fmt.Sprintf("%s GPU %d", pl.Name, ordinal), otf2.LocationGroupTypeAccelerator,
				t.devices[dev], otf2.LocationGroupRef(pl.Index))
		}
	}
	d.distinguishRanks()
	for _, l := range d.locations {
		if g, ok := groups[jobs.Device{Process: l.part, GPU: l.gpu}]; ok &&
			(l.typ == otf2.LocationTypeAcceleratorStream || l.typ == otf2.LocationTypeMetric) {
			l.Group = g
		}
		l.Type = l.typ
		l.Name = d.text(l.name)
		d.Locations = append(d.Locations, l.Location)
		d.identify(l)
	}
}

// identify adds the properties by which other tools' data can be matched with a row: the system's thread id (in the
// process's pid namespace) and the thread's name, or the commId and number of nodes of a rank's communicator. A row
// that several owners share has the number of owners instead.
//
// The location group of processes without data has the property property.NoData: their ranks in the world, such as
// "4-15,20", or property.UnknownRanks. All their communicator ranks share one location, which COMM_LOCATIONS lists once
// for each of them, in ascending order of their world ranks.
func (d *definer) identify(l *location) {
	switch s := l.source; {
	case s == nil:
	case s.Shared():
		d.locationProperty(l, property.Owners, otf2.TypeUint64, otf2.Value(s.Owners))
	case s.TID != 0:
		d.locationProperty(l, property.TID, otf2.TypeUint64, otf2.Value(s.TID))
		if s.Thread != "" {
			d.locationProperty(l, property.Thread, otf2.TypeString, otf2.Value(d.text(s.Thread)))
		}
	case s.Kind == description.KindRank && s.Comm >= 0 && s.Comm < len(l.part.Shard.Comms):
		c := &l.part.Shard.Comms[s.Comm]
		d.locationProperty(l, property.CommID, otf2.TypeUint64, otf2.Value(c.ID))
		if c.NNodes > 0 {
			d.locationProperty(l, property.NNodes, otf2.TypeUint64, otf2.Value(c.NNodes))
		}
	}
}

func (d *definer) locationProperty(l *location, name property.Name, typ otf2.Type, value otf2.Value) {
	d.LocationProperties = append(d.LocationProperties,
		otf2.LocationProperty{Location: l.Self, Name: d.text(name.Key()), Type: typ, Value: value})
}
