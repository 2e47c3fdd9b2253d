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

// localTables holds the tables that map each process's ids to the archive's. With them, event files can be used
// unchanged.
type localTables struct {
	of     map[*jobs.Process][]*otf2.MappingTable
	marked map[*jobs.Process]*otf2.MappingTable // region tables for rows whose forwarded calls are marked
}

// add adds the table that maps a process's ids of a kind to the archive's. If all ids are equal, no table is needed.
func (t *localTables) add(p *jobs.Process, kind otf2.MappingType, global []uint64) {
	if table := otf2.OptimalMapping(kind, global); table != nil {
		t.of[p] = append(t.of[p], table)
	}
}

// write writes each location's mapping tables and clock offsets. The locations of a process share one file through hard
// links; rows whose forwarded calls are marked share another. Existing files are overwritten: they are from an earlier
// call, and have no readers yet.
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

// isSameFile reports whether two paths lead to the same file.
func isSameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}
