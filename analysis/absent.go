// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// formatRanks writes an ascending list of ranks as facts.AbsentRanks reads it.
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

// NotRecorded are the ranks that an archive has no data of.
type NotRecorded struct {
	Processes int    `json:"processes"` // of those of which only the communicator is known, as many as one lacks at least
	Ranks     string `json:"ranks"`     // of the world: "4-15,20"; "" if that is not known of any

	unknown bool // there are some of which only the communicator is known
}

// absentGroups is how many location groups stand for processes without data, of which the archive says how many there are.
// Archives that do not mark them have a group for each.
func absentGroups(defs *otf2.Definitions, missing uint64) uint64 {
	if n := len(facts.AbsentRanks(defs)); n > 0 {
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
	for _, ranks := range facts.AbsentRanks(defs) {
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
