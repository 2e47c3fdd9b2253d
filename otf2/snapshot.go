// SPDX-License-Identifier: Apache-2.0

package otf2

import "iter"

// SnapshotKind is the kind of a snapshot record, its record id in snapshot files. SnapshotStart and SnapshotEnd frame
// a snapshot, the kinds between have the names of events.
type SnapshotKind uint8

// String returns libotf2's name of the record.
func (k SnapshotKind) String() string { return snapshotTable.name(uint8(k)) }

// UpperName returns the name in the spelling of otf2-print.
func (k SnapshotKind) UpperName() string { return snapshotTable.upper(uint8(k)) }

// Fields returns the fields in the order of [Snapshot].Args. The slice must not be modified.
func (k SnapshotKind) Fields() []Field { return snapshotTable[k].Fields }

// Snapshot is one record of a snapshot: the state of a location at Time. Nothing in it is mapped or corrected,
// snapshots hold global ids and final times.
type Snapshot struct {
	Location   LocationRef
	Time       Timestamp
	Kind       SnapshotKind
	Args       []uint64 // as in Event
	Attributes []AttributeValue
}

// SnapshotsOf iterates over the snapshot records of a location in file order; they exist if Anchor.Snapshots is
// not 0. The record is valid until the next one. Errors are as with EventsOf.
func (a *Archive) SnapshotsOf(loc LocationRef) iter.Seq2[*Snapshot, error] {
	return func(yield func(*Snapshot, error) bool) {
		r := newEventReader(&fileSource{path: a.locationFile(loc, ".snap"), budget: a.open, size: -1},
			a.Anchor.EventChunkSize, maxWindow)
		r.event.Location = loc
		r.plans, r.table = snapshotPlans(), &snapshotTable
		defer r.close()
		var s Snapshot
		for {
			ok, err := r.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if !ok {
				return
			}
			e := &r.event
			s = Snapshot{e.Location, e.Time, SnapshotKind(e.Kind), e.Args, e.Attributes}
			if !yield(&s, nil) {
				return
			}
		}
	}
}

// Known reports whether this package knows the kind.
func (k SnapshotKind) Known() bool { return snapshotTable[k].Name != "" }
