// SPDX-License-Identifier: Apache-2.0

package analysis

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Slice is one of several parts of an archive's locations, with about the same number of events each. The parts are
// the same on every machine, and in sequence they are all locations. The zero value is all locations.
type Slice struct{ Number, Of int } // Number from 1

// Cut returns the slice's part of a list of locations, in the same order.
func (s Slice) Cut(defs *otf2.Definitions, locations []otf2.LocationRef) []otf2.LocationRef {
	if s.Of == 0 {
		return locations
	}
	weight := func(l otf2.LocationRef) float64 {
		if d := defs.Location(l); d != nil {
			return float64(d.Events) + 1
		}
		return 1
	}
	all := 0.0
	for _, l := range locations {
		all += weight(l)
	}
	before := 0.0
	var cut []otf2.LocationRef
	for _, l := range locations {
		if int(before/all*float64(s.Of)) == s.Number-1 {
			cut = append(cut, l)
		}
		before += weight(l)
	}
	return cut
}
