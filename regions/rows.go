// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Rows are reused. The first threads, and the first communicator ranks on a GPU, have rows of their own. Later ones get
// the rows of those that ended before they began, so that the number of rows depends on how many there are at one time,
// not on how many there have been.

// OwnRows is the number of rows of a class before rows are reused.
const OwnRows = 64

// rowClass is the key of rows that can replace one another.
type rowClass struct {
	kind    description.LocationKind
	gpu     int
	channel uint8
}

var threadRows = rowClass{kind: description.KindThread}

// rows holds the locations of a process by their state.
type rows struct {
	most int // maximum number of rows
	made map[rowClass]int
	idle map[rowClass][]*location // rows whose owners have ended, in the order of their ends
	full bool                     // the excess has been reported
}

func newRows() rows {
	return rows{most: maxRows, made: make(map[rowClass]int), idle: make(map[rowClass][]*location)}
}

// lookedAt is the number of idle rows that are tried: the latest owners may have overlapped with a new one.
const lookedAt = 16

// findRow returns a location for an owner whose life began at a time: a new one, or one whose last event was before
// that. It returns nil if there are too many.
func (b *board) findRow(class rowClass, typ otf2.LocationType, who description.Owner, foreign int,
	begin uint64) *location {
	idle := b.rows.idle[class]
	if b.rows.made[class] >= OwnRows {
		for i := len(idle) - 1; i >= max(0, len(idle)-lookedAt); i-- {
			if l := idle[i]; uint64(l.w.LastTime()) <= begin {
				b.rows.idle[class] = append(idle[:i], idle[i+1:]...)
				l.Owners = max(l.Owners, 1) + 1
				l.Last = &who
				return l
			}
		}
	}
	l, err := b.newLocation(class.kind, typ, who.Name, who.Comm, foreign)
	if b.keepError(err) {
		return nil
	}
	l.class, l.TID = class, who.TID
	b.rows.made[class]++
	return l
}

// releaseRow frees the row of an owner that has ended.
func (b *board) releaseRow(l *location) {
	if l != nil {
		b.rows.idle[l.class] = append(b.rows.idle[l.class], l)
	}
}

// goneRow returns a row that takes no events, for owners that have ended.
func goneRow() *location {
	w := otf2.NewMemoryEventWriter(nil)
	_ = w.Close() // it is empty
	return &location{w: w, over: true}
}
