// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Operations ahead of time: event files of their own, for who watches a running job, of rows of communicator ranks.
// They are there only while somebody does, are of no archive, and never brought to the disk. When they have become
// large the next generation begins, in which what is behind the last one's end comes; the one before stays until then.
const (
	aheadSuffix = ".ahead"
	// AheadChunkSize is that of the files.
	AheadChunkSize = 256 << 10
	// mostAheadOpen is how many are open at a time, beside the event files.
	mostAheadOpen = 16
)

// AheadFile is one of a shard.
type AheadFile struct {
	Path       string
	Generation uint64 // from 1
	Number     uint32 // of the location
}

// AheadFiles are those of a shard, the oldest of each location first.
func AheadFiles(shard string) (files []AheadFile) {
	for _, path := range regular.Matches(shard, "*"+aheadSuffix) {
		f := AheadFile{Path: path}
		if _, err := fmt.Sscanf(filepath.Base(path), "%d.%d"+aheadSuffix, &f.Generation, &f.Number); err == nil &&
			aheadName(f.Generation, f.Number) == filepath.Base(path) {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b AheadFile) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Generation, b.Generation))
	})
	return files
}

func aheadName(generation uint64, number uint32) string {
	return fmt.Sprintf("%d.%d%s", generation, number, aheadSuffix)
}

// Ahead creates the file of a location for what is written ahead of time. What events refer to is on disk first, see
// BeforeEvents.
func (s *Store) Ahead(generation uint64, number uint32) (*otf2.EventWriter, error) {
	if err := s.inPlace(); err != nil {
		return nil, err
	}
	if s.ahead == nil {
		s.ahead = newEventFiles(s.root)
		s.ahead.before, s.ahead.most = s.files.before, min(s.ahead.most, mostAheadOpen)
	}
	name := aheadName(generation, number)
	f, err := s.ahead.create(name, false)
	if err != nil {
		return nil, err
	}
	w, err := otf2.NewEventWriter(f, &otf2.EventWriterOptions{ChunkSize: AheadChunkSize})
	if err != nil {
		_ = f.Close()
		_ = s.root.Remove(name)
		return nil, err
	}
	return w, nil
}

// RemoveAhead removes what was written ahead of time in generations before one. Files of them must be closed, or not be
// written any more.
func (s *Store) RemoveAhead(before uint64) {
	for _, f := range AheadFiles(s.path) {
		if f.Generation < before {
			_ = s.root.Remove(filepath.Base(f.Path))
		}
	}
}
