// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Operations that are calls of a thread: MPI's, as Score-P records them. A thread waits in a message during the call
// that ends it, and is available to the other end from the call on that begins it; a blocking message begins and ends
// in one call. Messages on one communicator that end in one call are one launch: the thread waits for all of them
// together.

// isCall reports whether the operations of a communicator are calls.
func (row *Row) isCall(comm otf2.CommRef) bool {
	return row.reader.Calls != nil && row.reader.Calls(comm)
}

// sourceOfCall returns the source of the times of a collective call. A request runs beside its thread, so its interval
// does not show when the thread waited.
func sourceOfCall(blocking bool) Source {
	if blocking {
		return SourceCall
	}
	return SourceEnqueue
}

// nextOrdinal returns the next ordinal of a sequence and advances it.
func (row *Row) nextOrdinal(key numbering) uint64 {
	row.selectSequence(key)
	n := *row.next
	*row.next = n + 1
	return n
}

// blockingMessage handles an event of MPI_Send, MPI_Recv and similar calls. They occur on communicators of calls only.
func (row *Row) blockingMessage(ev *otf2.Event) {
	comm := otf2.CommRef(ev.Args[1])
	if !row.isCall(comm) {
		return
	}
	s := &row.reader.begun
	row.beginOperation(ev, false, s)
	s.message, s.comm, s.peer, s.tag, s.length = true, comm, int(ev.Args[0]), uint32(ev.Args[2]), ev.Args[3]
	function := "Recv"
	if ev.Kind == otf2.EventMpiSend {
		function = "Send"
		s.ordinal = row.nextOrdinal(numbering{comm, function, s.peer, s.tag})
	}
	row.endMessage(ev, function, s)
}

// holdMessage keeps a message until the call that ends it returns.
func (row *Row) holdMessage(o *Operation, s *started) {
	o.Begin, o.Since, o.Source, o.Ordinal, o.tag = s.entered, s.entered, SourceCall, s.ordinal, s.tag
	n := len(row.open)
	if n > 0 {
		o.Since = row.open[n-1].Begin
	}
	row.returned = append(row.returned, *o)
	if n == 0 { // the call's region is missing
		row.deliverMessages(o.End)
	}
}

// deliverMessages delivers the messages that ended in the innermost region, by communicator and in the order in which
// they began: MPI matches messages of one pair and tag in that order.
func (row *Row) deliverMessages(t otf2.Timestamp) {
	all := row.returned
	if len(all) == 0 {
		return
	}
	row.returned = row.returned[:0]
	slices.SortStableFunc(all, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Begin, b.Begin))
	})
	for i := range all {
		o := &all[i]
		if i == 0 || all[i-1].Comm != o.Comm {
			row.calls++
		}
		o.End, o.Launch = t, row.calls
		o.Last = i+1 == len(all) || all[i+1].Comm != o.Comm
		o.Grouped = !o.Last || i > 0 && all[i-1].Comm == o.Comm
		if o.Function == "Recv" {
			o.Ordinal = row.nextOrdinal(numbering{o.Comm, o.Function, o.Peer, o.tag})
		}
		o.StartUp = row.startUp(o)
		o.Ordinal |= uint64(o.tag) << 32
		if row.reader.Operation != nil {
			row.reader.Operation(o)
		}
	}
	clear(all)
}
