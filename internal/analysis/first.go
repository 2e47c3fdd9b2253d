// SPDX-License-Identifier: Apache-2.0

package analysis

import "github.com/nccl-otf2/nccl-otf2/otf2"

// FirstEvent returns the time of an archive's first event, in its ticks; 0 if it has none that can be read. It reads
// one event of each location.
func FirstEvent(a *otf2.Archive) otf2.Timestamp {
	first := otf2.UndefinedTimestamp
	for i := range a.Defs.Locations {
		if a.Defs.Locations[i].Events == 0 {
			continue
		}
		for ev, err := range a.EventsOf(a.Defs.Locations[i].Self) {
			if err == nil {
				first = min(first, ev.Time)
			}
			break
		}
	}
	if first == otf2.UndefinedTimestamp {
		return 0
	}
	return first
}
