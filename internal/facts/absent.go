// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// UnknownRanks is the value of PropNoData when the ranks are unknown.
const UnknownRanks = "unknown"

// AbsentRanks lists, for each location group that stands for ranks without data (see PropNoData), their ranks in the
// world, ascending. The list is empty where the ranks are unknown.
func AbsentRanks(defs *otf2.Definitions) map[otf2.LocationGroupRef][]int {
	all := make(map[otf2.LocationGroupRef][]int)
	for _, p := range defs.LocationGroupProperties {
		if g := defs.LocationGroup(p.LocationGroup); p.Type == otf2.TypeString &&
			defs.String(p.Name) == PropNoData.Key() &&
			g != nil && g.Type == otf2.LocationGroupTypeProcess {
			all[p.LocationGroup] = parseRanks(defs.String(otf2.StringRef(p.Value)))
		}
	}
	for _, g := range defs.LocationGroups {
		if g.Type == otf2.LocationGroupTypeAccelerator {
			delete(all, g.Creator) // who has a GPU has data
		}
	}
	return all
}

// parseRanks parses an ascending list of ranks such as "0-3,7". It returns an empty list for malformed text and for too
// many ranks.
func parseRanks(text string) (ranks []int) {
	next := 0
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < next || last < first || last-first >= experiment.MaxRanks-len(ranks) {
			return nil
		}
		for r := first; r <= last; r++ {
			ranks = append(ranks, r)
		}
		next = last + 1
	}
	return ranks
}

// absentOf returns, for each entry of a list of all locations, the index (from 0) of the rank without data that the
// entry stands for. It returns nil if there are no such ranks.
func absentOf(defs *otf2.Definitions, list []uint64) []int32 {
	ranks := AbsentRanks(defs)
	if len(ranks) == 0 {
		return nil
	}
	entries, seen := make(map[uint64]int), make(map[uint64]int)
	for _, l := range list {
		entries[l]++
	}
	nth := make([]int32, len(list))
	for i, l := range list {
		if entries[l] < 2 {
			continue
		}
		if d := defs.Location(otf2.LocationRef(l)); d != nil {
			if n := len(ranks[d.Group]); n > 0 && entries[l]%n == 0 {
				nth[i] = int32(seen[l] / (entries[l] / n))
			}
		}
		seen[l]++
	}
	return nth
}
