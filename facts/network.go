// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/nccl-otf2/nccl-otf2/otf2"

// RankProperty is the property of a network location that tells whose transfers it shows: a rank in the
// communicator whose network it is.
const RankProperty = "NCCL_OTF2::RANK"

// NetworkRanks tells whose transfers network locations show, by rank in their communicator.
func NetworkRanks(defs *otf2.Definitions) map[otf2.LocationRef]int {
	of := make(map[otf2.LocationRef]int)
	for _, p := range defs.LocationProperties {
		if defs.String(p.Name) == RankProperty {
			of[p.Location] = int(p.Value)
		}
	}
	return of
}

// Windows resolves the communicator of each RMA window; those without one are left out.
func Windows(defs *otf2.Definitions) map[otf2.RmaWinRef]*Communicator {
	comms := AllCommunicators(defs)
	all := make(map[otf2.RmaWinRef]*Communicator, len(defs.RmaWins))
	for _, w := range defs.RmaWins {
		if c := comms[w.Comm]; c != nil {
			all[w.Self] = c
		}
	}
	return all
}
