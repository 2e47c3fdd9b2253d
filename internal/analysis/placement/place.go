// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// NetworkRow identifies the rank whose transfers a row shows.
type NetworkRow struct {
	Comm otf2.CommRef // of the operations
	Rank int          // in the communicator
}

// NetworkRows returns, for the rows of proxies, whose transfers they show, if known.
func NetworkRows(defs *otf2.Definitions) map[otf2.LocationRef]NetworkRow {
	ranks := property.NetworkRanks(defs)
	all := make(map[otf2.LocationRef]NetworkRow)
	for _, c := range membership.AllCommunicators(defs) {
		if !c.Network || c.Parent == otf2.UndefinedComm {
			continue
		}
		for l := range c.Ranks {
			if rank, ok := ranks[l]; ok {
				all[l] = NetworkRow{c.Parent, rank}
			}
		}
	}
	return all
}

// Place describes where a location is.
type Place struct {
	Process otf2.LocationGroupRef
	Host    string
	GPU     string // name of the device, "" for a row of the CPU
	Device  otf2.SystemTreeNodeRef
}

// PlaceOf returns where a location is, according to the definitions.
func PlaceOf(defs *otf2.Definitions, l otf2.LocationRef) Place {
	d := defs.Location(l)
	if d == nil {
		return Place{Process: otf2.UndefinedLocationGroup, Device: otf2.UndefinedSystemTreeNode}
	}
	p := Place{Process: ProcessOf(defs, d.Group), GPU: GpuOf(defs, d.Group), Device: otf2.UndefinedSystemTreeNode}
	p.Host = HostOf(defs, p.Process)
	if g := defs.LocationGroup(d.Group); g != nil && p.GPU != "" {
		p.Device = g.SystemTreeParent
	}
	return p
}
