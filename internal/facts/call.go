// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Operations that are calls of a thread: those of MPI, as Score-P records them. A thread is in a message as long as it
// is in the call that ends it, and is there for the other end from the call on that begins it; of blocking ones both
// are one call. Messages that one call ends, on one communicator, are one launch: the thread waits for all of them at
// one time.

// isCall tells whether a communicator's operations are calls.
func (row *Row) isCall(comm otf2.CommRef) bool {
	return row.reader.Calls != nil && row.reader.Calls(comm)
}

// sourceOfCall is what the times of a collective are that is a call. What goes on beside the thread, from a request to
// its end, says nothing of when the thread waited.
func sourceOfCall(blocking bool) Source {
	if blocking {
		return SourceCall
	}
	return SourceEnqueue
}

// nextOf counts a sequence on.
func (row *Row) nextOf(key sequence) uint64 {
	row.follow(key)
	n := *row.next
	*row.next = n + 1
	return n
}

// blockingMessage takes an event of MPI_Send, MPI_Recv and their like. Elsewhere than in calls there are none.
func (row *Row) blockingMessage(ev *otf2.Event) {
	comm := otf2.CommRef(ev.Args[1])
	if !row.isCall(comm) {
		return
	}
	s := &row.reader.begun
	row.begin(ev, false, s)
	s.message, s.comm, s.peer, s.tag, s.length = true, comm, int(ev.Args[0]), uint32(ev.Args[2]), ev.Args[3]
	function := "Recv"
	if ev.Kind == otf2.EventMpiSend {
		function = "Send"
		s.ordinal = row.nextOf(sequence{comm, function, s.peer, s.tag})
	}
	row.message(ev, function, s)
}

// inCall keeps a message until the call returns that it ends in.
func (row *Row) inCall(o *Operation, s *started) {
	o.Begin, o.Since, o.Source, o.Ordinal, o.tag = s.entered, s.entered, SourceCall, s.ordinal, s.tag
	n := len(row.open)
	if n > 0 {
		o.Since = row.open[n-1].Begin
	}
	row.returned = append(row.returned, *o)
	if n == 0 { // the call is not there
		row.callReturns(o.End)
	}
}

// callReturns passes on the messages that ended in the innermost region: communicator by communicator, in the order in
// which they were begun. In that order MPI matches those of one pair and tag.
func (row *Row) callReturns(t otf2.Timestamp) {
	all := row.returned
	if len(all) == 0 {
		return
	}
	row.returned = row.returned[:0]
	slices.SortStableFunc(all, func(a, b Operation) int {
		return cmp.Or(
			cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Begin, b.Begin))
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
			o.Ordinal = row.nextOf(sequence{o.Comm, o.Function, o.Peer, o.tag})
		}
		o.StartUp = row.startUp(o)
		o.Ordinal |= uint64(o.tag) << 32
		if row.reader.Operation != nil {
			row.reader.Operation(o)
		}
	}
	clear(all)
}
