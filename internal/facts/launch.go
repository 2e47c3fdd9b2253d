// SPDX-License-Identifier: Apache-2.0

package facts

import "slices"

// Whether all operations of a launch are equal, so that each has its part of the launch's time. One member's row says
// so.

// deliver passes an operation on. Those of a launch of several are held until it is known whether they are equal.
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

// release passes on what is held of an open region. If that is all of it the operations are equal.
func (row *Row) release(at int) {
	l := &row.open[at]
	if l.held == 0 {
		return
	}
	if behind := row.open[at+1:]; len(behind) > 0 { // what these hold comes behind it
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

// equal tells whether two operations of a launch are the same work on other buffers.
func (o *Operation) equal(x *Operation) bool {
	return o.Comm == x.Comm && o.Function == x.Function && o.Message == x.Message && o.Peer == x.Peer &&
		o.Root == x.Root &&
		o.Size == x.Size && o.Datatype == x.Datatype && o.InPlace == x.InPlace && o.Graph == x.Graph
}

// InPlace tells whether a member's buffers of a collective are one, see regions.Collective.SameBuffer.
type InPlace uint8

// Buffers: it is not known which they are, there are two, or one.
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
