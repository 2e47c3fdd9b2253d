// SPDX-License-Identifier: Apache-2.0

package analysis

import "ncclotf2/otf2"

// Place is where a location is.
type Place struct {
	Process otf2.LocationGroupRef
	Host    string
	GPU     string // name of the device, "" for a row of the CPU
	Device  otf2.SystemTreeNodeRef
}

// PlaceOf tells where a location is. It gives what the definitions tell.
func PlaceOf(defs *otf2.Definitions, l otf2.LocationRef) Place {
	d := defs.Location(l)
	if d == nil {
		return Place{Process: otf2.UndefinedLocationGroup, Device: otf2.UndefinedSystemTreeNode}
	}
	p := Place{Process: processOf(defs, d.Group), GPU: gpuOf(defs, d.Group), Device: otf2.UndefinedSystemTreeNode}
	p.Host = hostOf(defs, p.Process)
	if g := defs.LocationGroup(d.Group); g != nil && p.GPU != "" {
		p.Device = g.SystemTreeParent
	}
	return p
}
