// SPDX-License-Identifier: Apache-2.0

package facts

import "slices"

// Operations of one launch share its time equally if they are equal; one member's row shows whether they are.

// deliver passes an operation on. Operations of a launch of several wait until the row knows whether they are equal.
func (row *Row) deliver(o *Operation) {
	if row.reader.Operation == nil {
		return
	}
	n := len(row.open)
	if !o.Grouped || n == 0 || row.open[n-1].differs {
		row.reader.Operation(o)
		return
	}
	l := &row.open[n-1]
	first := len(row.held) - l.held
	if l.held > 0 && !o.equal(&row.held[first]) {
		l.differs = true
		row.release(n - 1)
		row.reader.Operation(o)
		return
	}
	row.held = append(row.held, *o)
	if l.held++; uint64(l.held) == l.Operations {
		row.release(n - 1)
	}
}

// release passes on the operations that wait for an open region. They are equal if they are all operations of the
// region.
func (row *Row) release(at int) {
	l := &row.open[at]
	if l.held == 0 {
		return
	}
	if behind := row.open[at+1:]; len(behind) > 0 { // operations of inner regions come later
		to := len(row.held)
		for i := range behind {
			to -= behind[i].held
		}
		held := slices.Clone(row.held[to-l.held : to])
		row.held = append(slices.Delete(row.held, to-l.held, to), held...)
	}
	all := row.held[len(row.held)-l.held:]
	equal := 0
	if n := uint64(l.held); !l.differs && n > 1 && (l.Operations < 2 || n == l.Operations) {
		equal = l.held
	}
	row.held, l.held = row.held[:len(row.held)-l.held], 0
	for i := range all {
		all[i].Equal = equal
		row.reader.Operation(&all[i])
	}
	clear(all)
}

// equal reports whether two operations of a launch are the same work on different buffers.
func (o *Operation) equal(x *Operation) bool {
	return o.Comm == x.Comm && o.Function == x.Function && o.Message == x.Message && o.Peer == x.Peer &&
		o.Root == x.Root &&
		o.Size == x.Size && o.Datatype == x.Datatype && o.InPlace == x.InPlace && o.Graph == x.Graph
}

// InPlace states whether the two buffers of a member of a collective are the same, see regions.Collective.SameBuffer.
type InPlace uint8

// Values of InPlace.
const (
	InPlaceUnknown InPlace = iota
	OutOfPlace
	InPlaceOnly
)

func (r *Reader) inPlace(o *Operation) InPlace {
	c := o.Collective
	if c == nil || o.Send == 0 || o.Recv == 0 {
		return InPlaceUnknown
	}
	same, known := c.SameBuffer(o.Send, o.Recv, o.Count*r.ElementSize(o.Datatype), r.Names.Rank(o.Comm, o.Location))
	switch {
	case !known:
		return InPlaceUnknown
	case same:
		return InPlaceOnly
	}
	return OutOfPlace
}
