// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
)

// localTables are the tables from the ids of each process to the archive's: what makes its event files readable as they
// are.
type localTables struct {
	of     map[*jobs.Process][]*otf2.MappingTable
	marked map[*jobs.Process]*otf2.MappingTable // of regions, for rows whose calls are marked as forwarded, see merger
}

// add maps ids of a kind in a process to the archive's; where they are the same there is no table.
func (t *localTables) add(p *jobs.Process, kind otf2.MappingType, global []uint64) {
	if table := otf2.OptimalMapping(kind, global); table != nil {
		t.of[p] = append(t.of[p], table)
	}
}

// write writes each location's mapping tables and clock offsets: once per process, as its locations share them, except
// those whose forwarded calls are marked. It overwrites its own earlier files, which have no readers yet.
func (t *localTables) write(dir string, chunkSize uint64, rows []*location, workers int) error {
	type like struct {
		part   *jobs.Process
		marked bool
	}
	paths := make(map[like][]string)
	var all []like
	for _, l := range rows {
		k := like{l.part, l.marked}
		if paths[k] == nil {
			all = append(all, k)
		}
		paths[k] = append(paths[k], filepath.Join(dir, files.Name(l.Self, ".def")))
	}
	return jobs.ForEach(len(all), workers, func(i int) error {
		k := all[i]
		var maps []*otf2.MappingTable
		var clocks []otf2.ClockOffset
		if k.part != nil {
			maps, clocks = t.of[k.part], k.part.ClockOffsets()
		}
		if k.marked {
			maps = slices.DeleteFunc(slices.Clone(maps),
				func(m *otf2.MappingTable) bool { return m.Type == otf2.MappingRegion })
			maps = append(maps, t.marked[k.part])
		}
		for j, path := range paths[k] {
			if j > 0 && (isSameFile(paths[k][0], path) || files.Link(paths[k][0], path) == nil) {
				continue
			}
			if err := otf2.WriteLocalDefsInPlace(path, maps, clocks, chunkSize); err != nil {
				return fmt.Errorf("write local definitions of %s: %w", filepath.Base(path), err)
			}
		}
		return nil
	})
}

// isSameFile reports whether two names are of one file.
func isSameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}
