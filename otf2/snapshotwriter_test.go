// SPDX-License-Identifier: Apache-2.0

package otf2

import "fmt"

// SnapshotWriter writes the snapshot file of a location, <location>.snap: for some times, the state that reading the
// events from there on needs. It has one method per record; all records of a snapshot have its time, and those
// between start and end repeat events that happened before, at their own times. Attributes may be nil.
//
// Nothing in a snapshot is mapped or corrected when it is read: ids must be global and times final. A reader looks
// for snapshots if the anchor's Snapshots is not 0. Memory, flushing and errors are as with [EventWriter].
type SnapshotWriter struct {
	file      EventWriter // has the same chunks and stamps
	open      bool        // within a snapshot
	left      uint64      // records still to come in it
	snapshots uint32
}

// CreateSnapshotWriter creates the file at path, which must not exist. chunkSize is the anchor's EventChunkSize, 0
// means DefaultEventChunkSize.
func CreateSnapshotWriter(path string, chunkSize uint64) (*SnapshotWriter, error) {
	w, err := CreateEventWriter(path, &EventWriterOptions{ChunkSize: chunkSize})
	if err != nil {
		return nil, err
	}
	return &SnapshotWriter{file: *w}, nil
}

// Write writes a record of any kind, as [EventWriter.Write] does. It also refuses, with ErrInvalid, records outside
// a snapshot, and a snapshot with another number of records than its start announced.
func (s *SnapshotWriter) Write(kind SnapshotKind, t Timestamp, a *AttributeList, args []uint64) error {
	switch kind {
	case SnapshotStart:
		if s.open {
			return fmt.Errorf("otf2: snapshot at %d begins within another: %w", t, ErrInvalid)
		}
	case SnapshotEnd:
		if !s.open || s.left > 0 {
			return fmt.Errorf("otf2: snapshot at %d ends %d records early: %w", t, s.left, ErrInvalid)
		}
	default:
		if s.left == 0 {
			return s.unannounced()
		}
	}
	if err := s.file.write(&snapshotTable[kind], uint8(kind), t, a, args); err != nil {
		return err
	}
	switch kind {
	case SnapshotStart:
		s.open, s.left = true, args[0]
		s.snapshots++
	case SnapshotEnd:
		s.open = false
	default:
		s.left--
	}
	return nil
}

func (s *SnapshotWriter) unannounced() error {
	return fmt.Errorf("otf2: record outside a snapshot, or more than its start announced: %w", ErrInvalid)
}

// Snapshots returns the number of snapshots begun.
func (s *SnapshotWriter) Snapshots() uint32 { return s.snapshots }

// Flush brings everything written so far into the file.
func (s *SnapshotWriter) Flush() error { return s.file.Flush() }

// Close flushes and closes the file. A snapshot that was not ended is reported with ErrInvalid.
func (s *SnapshotWriter) Close() error {
	err := s.file.Close()
	if err == nil && s.open {
		err = fmt.Errorf("otf2: snapshot not ended at close: %w", ErrInvalid)
	}
	return err
}
