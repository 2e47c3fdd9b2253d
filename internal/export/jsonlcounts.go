// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
)

// counter is what an archive counted of a kind.
type counter struct {
	name string
	n    map[string]uint64
}

// lacksOperations reports whether an archive may lack operations that its processes called. One whose operations only
// differ between ranks, or have not ended, lacks none.
func lacksOperations(ps property.Properties) bool {
	for _, name := range []property.Name{property.ProcessesRunning, property.ProcessesCrashed,
		property.ProcessesContinued, property.Lost, property.Uncounted, property.Damaged, property.Gaps,
		property.PXNUnresolved, property.RanksUnsized} {
		if n, _ := ps.Number(name); n > 0 {
			return true
		}
	}
	return ps.Incomplete() && (ps.Has(property.ImportedFrom) || len(ps.Below(property.Paused)) > 0)
}

// sumsOf returns what an archive counts of a kind, for the records of a process. It has sums over all processes: the
// first process gets those, the others 0.
func sumsOf(ps property.Properties, kind property.Name, first bool) map[string]uint64 {
	all := ps.Below(kind)
	if !first {
		for what := range all {
			all[what] = 0
		}
	}
	return all
}

// lossesOf returns what a process has lost, by kind. Archives have the sums of kinds, and those of processes: the kinds
// are distributed over the processes in order, which keeps both.
func lossesOf(ps property.Properties, process int) map[string]uint64 {
	all := make(map[string]uint64)
	begin, own := uint64(0), uint64(0)
	for of, n := range ps.Below(property.LostByProcess) {
		switch i, err := strconv.Atoi(of); {
		case err != nil || i > process:
		case i == process:
			own = n
		default:
			begin += n
		}
	}
	end, at := begin+own, uint64(0)
	lost := ps.Below(property.Lost)
	for _, what := range slices.Sorted(maps.Keys(lost)) {
		next := at + lost[what]
		if from, to := max(begin, at), min(end, next); from < to {
			all[what] = to - from
		}
		at = next
	}
	return all
}
