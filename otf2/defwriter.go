// SPDX-License-Identifier: Apache-2.0

package otf2

import "fmt"

// GlobalDefWriter writes the global definitions of an archive, <archive>.def. It has one method per definition,
// whose arguments are the record's fields in on-disk order without superseded ones (Region and Group: in
// libotf2's order). The file appears under its name at Close, replacing an older one.
//
// Readers want definitions before their use and ids of each kind counted 0, 1, 2, …; the number of records,
// Count, must stand in the anchor. The first error of the file sticks and is returned by Close.
type GlobalDefWriter struct{ recordFile }

// CreateGlobalDefWriter begins the file at path; chunkSize is the anchor's DefChunkSize, 0 means
// DefaultDefChunkSize.
func CreateGlobalDefWriter(path string, chunkSize uint64) (*GlobalDefWriter, error) {
	f, err := createRecordFile(path, chunkSize, DefaultDefChunkSize)
	if err != nil {
		return nil, err
	}
	return &GlobalDefWriter{*f}, nil
}

// Count returns the number of records written.
func (w *GlobalDefWriter) Count() uint64 { return w.count }

// Close ends the file and gives it its name. After an error of an earlier call, which it returns, no file appears.
func (w *GlobalDefWriter) Close() error { return w.finish() }

// Abort gives the file up: nothing appears under its name, an older file of that name stays.
func (w *GlobalDefWriter) Abort() { w.abort() }

// Write writes a record as it was read or composed, fields in on-disk order, superseded ones included.
//
// Errors: ErrInvalid for a record whose fields do not match its kind or a text with a NUL, ErrTooLarge for one
// that does not fit a chunk, else the file's error, which sticks.
func (w *GlobalDefWriter) Write(r *Record) error {
	spec := &globalDefTable[r.ID]
	if spec.Name == "" {
		return fmt.Errorf("otf2: definition kind %d is not known: %w", r.ID, ErrInvalid)
	}
	return w.writeRecord(spec, r)
}

// ClockOffset is one point of a location's clock correction: at Time, local ticks, Offset must be added. Between
// two points the offset is interpolated linearly, outside them extrapolated; a single point has no effect.
type ClockOffset struct {
	Time   Timestamp
	Offset int64
	StdDev float64 // of the measurement, informative
}

// WriteLocalDefs writes a location's definitions, <location>.def: its mapping tables (nil ones are left out, at
// most one of each type) and clock offsets (strictly increasing times). The file appears under its name when it
// is complete. chunkSize is the anchor's DefChunkSize, 0 means DefaultDefChunkSize.
func WriteLocalDefs(path string, maps []*MappingTable, clocks []ClockOffset, chunkSize uint64) error {
	return writeLocalDefs(createAtomic, path, maps, clocks, chunkSize)
}

// WriteLocalDefsInPlace is WriteLocalDefs for archives of many locations without readers so far: it overwrites an
// existing file, also under its other links.
func WriteLocalDefsInPlace(path string, maps []*MappingTable, clocks []ClockOffset, chunkSize uint64) error {
	return writeLocalDefs(createInPlace, path, maps, clocks, chunkSize)
}

func writeLocalDefs(create func(path string) (*atomicFile, error), path string, maps []*MappingTable,
	clocks []ClockOffset, chunkSize uint64) error {
	if err := checkLocalDefs(maps, clocks); err != nil {
		return err
	}
	w, err := newRecordFile(create, path, chunkSize, DefaultDefChunkSize)
	if err != nil {
		return err
	}
	for _, m := range maps {
		if m == nil {
			continue
		}
		if err := w.emit(localMappingTable, m.append(append(w.start(), byte(m.Type))), 0); err != nil {
			w.abort()
			return err
		}
	}
	for _, c := range clocks {
		if err := w.emit(localClockOffset, c.append(w.start()), 0); err != nil {
			w.abort()
			return err
		}
	}
	return w.finish()
}

// Record ids of local definition files.
const (
	localMappingTable = 5
	localClockOffset  = 6
)

func checkLocalDefs(maps []*MappingTable, clocks []ClockOffset) error {
	var seen [256]bool
	for _, m := range maps {
		if m == nil {
			continue
		}
		if m.Len() == 0 {
			return fmt.Errorf("otf2: mapping table %v has no entries, which readers refuse: %w", m.Type, ErrInvalid)
		}
		if seen[m.Type] {
			return fmt.Errorf("otf2: two mapping tables of type %v: %w", m.Type, ErrInvalid)
		}
		seen[m.Type] = true
	}
	for i := 1; i < len(clocks); i++ {
		if clocks[i].Time <= clocks[i-1].Time {
			return fmt.Errorf("otf2: clock offset at %d after one at %d: %w", clocks[i].Time, clocks[i-1].Time,
				ErrInvalid)
		}
	}
	return nil
}
