// SPDX-License-Identifier: Apache-2.0

package property

import (
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// UnknownRanks is the value of NoData when the ranks are unknown.
const UnknownRanks = "unknown"

// AbsentRanks lists, for each location group that stands for ranks without data (see NoData), their ranks in the
// world, ascending. The list is empty where the ranks are unknown.
func AbsentRanks(defs *otf2.Definitions) map[otf2.LocationGroupRef][]int {
	all := make(map[otf2.LocationGroupRef][]int)
	for _, p := range defs.LocationGroupProperties {
		if g := defs.LocationGroup(p.LocationGroup); p.Type == otf2.TypeString &&
			defs.String(p.Name) == NoData.Key() &&
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
		if err != nil || first < next || last < first || last-first >= description.MaxRanks-len(ranks) {
			return nil
		}
		for r := first; r <= last; r++ {
			ranks = append(ranks, r)
		}
		next = last + 1
	}
	return ranks
}
