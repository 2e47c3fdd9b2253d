// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
)

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

// writeCounts writes what the archive counts. It has sums over all processes: the first process gets those, the others
// 0, but each has its own losses.
func (l *lines) writeCounts(j *jsonWriter) {
	first := len(l.result.Files) == 0
	for _, of := range [...]struct {
		name    string
		n       map[string]uint64
		written bool
	}{
		{"lost", lossesOf(l.says, l.process.number), true}, {"oddities", l.says.Below(property.Oddities), first},
		{"network", l.says.Below(property.Network), first},
	} {
		if len(of.n) == 0 {
			continue
		}
		j.object(of.name)
		for _, what := range slices.Sorted(maps.Keys(of.n)) {
			if !of.written {
				of.n[what] = 0
			}
			j.unsigned(what, of.n[what])
		}
		j.raw("}")
	}
}

// lossesOf returns what a process has lost, by kind. Archives have the sums of kinds, and those of processes: the kinds
// are distributed over the processes in order, which keeps both.
func lossesOf(ps property.Properties, process int) map[string]uint64 {
	all := make(map[string]uint64)
	begin, own := uint64(0), uint64(0)
	for of, n := range ps.Below(property.LostByProcess) {
		if i, err := strconv.Atoi(of); err == nil && i == process {
			own = n
		} else if err == nil && i < process {
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
