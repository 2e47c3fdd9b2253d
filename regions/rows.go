// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Rows are used again. The first threads, and the first communicator ranks on a GPU, have rows of their own. Later ones
// get the rows of those that have ended before they began, so that the number of rows goes with how many there are at
// one time, not with how many there have been.

// OwnRows is how many rows of a class there are before any is used again.
const OwnRows = 64

// rowClass is what rows have in common that may be used for one another.
type rowClass struct {
	kind    experiment.LocationKind
	gpu     int
	channel uint8
}

var threadRows = rowClass{kind: experiment.KindThread}

// rows are the locations of a process by what becomes of them.
type rows struct {
	most int // that there may be
	made map[rowClass]int
	idle map[rowClass][]*location // whose owners have ended, in the order of their ends
	full bool                     // said that there are too many
}

func newRows() rows {
	return rows{most: maxRows, made: make(map[rowClass]int), idle: make(map[rowClass][]*location)}
}

// lookedAt is how many idle rows are tried: the latest owners' communicators may have gone on beside a new one.
const lookedAt = 16

// row gives somebody whose life began at a time a location: a new one, or one whose last event was before that. nil if
// there are too many.
func (b *board) row(class rowClass, typ otf2.LocationType, who experiment.Owner, foreign int, begin uint64) *location {
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
	if b.fail(err) {
		return nil
	}
	l.class, l.TID = class, who.TID
	b.rows.made[class]++
	return l
}

// release gives back the row of somebody who has ended.
func (b *board) release(l *location) {
	if l != nil {
		b.rows.idle[l.class] = append(b.rows.idle[l.class], l)
	}
}

// goneRow takes nothing any more: the row of whoever has ended.
func goneRow() *location {
	w := otf2.NewMemoryEventWriter(nil)
	_ = w.Close() // there is nothing in it
	return &location{w: w, over: true}
}
