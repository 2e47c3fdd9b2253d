// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ncclotf2/otf2"
	"ncclotf2/scorep"
	"ncclotf2/shard"
)

// AbsentRanks lists the ranks of the world that location groups stand for which have no data, ascending (see
// scorep.NoDataProperty). Those of which nobody knows the ranks have an empty list.
func AbsentRanks(defs *otf2.Definitions) map[otf2.LocationGroupRef][]int {
	all := make(map[otf2.LocationGroupRef][]int)
	for _, p := range defs.LocationGroupProperties {
		if g := defs.LocationGroup(p.LocationGroup); p.Type == otf2.TypeString && defs.String(p.Name) == scorep.NoDataProperty &&
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

// parseRanks reads an ascending list of ranks: "0-3,7". What is none, or has too many, is empty.
func parseRanks(text string) (ranks []int) {
	next := 0
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < next || last < first || last-first >= shard.MaxRanks-len(ranks) {
			return nil
		}
		for r := first; r <= last; r++ {
			ranks = append(ranks, r)
		}
		next = last + 1
	}
	return ranks
}

// formatRanks writes an ascending list of ranks as parseRanks reads it.
func formatRanks(ranks []int) string {
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		text := strconv.Itoa(ranks[i])
		if j > i {
			text += "-" + strconv.Itoa(ranks[j])
		}
		parts = append(parts, text)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// absentOf tells, for each entry of a list of all locations, which of the ranks without data it is that its location stands
// for, from 0. nil: there are none.
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

// NotRecorded are the ranks that an archive has no data of.
type NotRecorded struct {
	Processes int    `json:"processes"` // of those of which only the communicator is known, as many as one lacks at least
	Ranks     string `json:"ranks"`     // of the world: "4-15,20"; "" if that is not known of any

	unknown bool // there are some of which only the communicator is known
}

// absentGroups is how many location groups stand for processes without data, of which the archive says how many there are.
// Archives that do not mark them have a group for each.
func absentGroups(defs *otf2.Definitions, missing uint64) uint64 {
	if n := len(AbsentRanks(defs)); n > 0 {
		return uint64(n)
	}
	return missing
}

// notRecorded collects the ranks without data. missing is how many processes the archive says have none.
func notRecorded(defs *otf2.Definitions, missing uint64) *NotRecorded {
	if missing == 0 {
		return nil
	}
	n := &NotRecorded{Processes: int(missing)}
	var all []int
	for _, ranks := range AbsentRanks(defs) {
		all = append(all, ranks...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	n.Ranks, n.unknown = formatRanks(all), len(all) < n.Processes
	return n
}

// maxRanksText bounds how many stretches of ranks a line names.
const maxRanksText = 24

// text names them in a line.
func (n *NotRecorded) text() string {
	parts := strings.Split(n.Ranks, ",")
	text := "ranks " + n.Ranks
	switch {
	case n.Ranks == "":
		return fmt.Sprintf("of %s nothing was recorded; which ranks they are is not known", count(n.Processes, "process", "processes"))
	case len(parts) > maxRanksText:
		text = fmt.Sprintf("ranks %s and %d more stretches", strings.Join(parts[:maxRanksText], ","), len(parts)-maxRanksText)
	}
	if n.unknown {
		text += " and others"
	}
	return "nothing was recorded of " + text
}

// recorded are the rows of tables of ranks without those that have no data.
func recorded[T any](rows []T, absent func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(rows), absent)
}
