// SPDX-License-Identifier: Apache-2.0

package analysis

import "ncclotf2/otf2"

// Listener is told what Operations finds, while it reads. Any of its functions may be nil.
type Listener struct {
	// Lanes is called first, with the number of lanes. A process is in one lane with all its locations.
	Lanes func(n int)
	// Event is called with every event: those of a lane one after the other, in order of time; lanes at the same
	// time. The event is valid during the call.
	Event func(lane int, ev *otf2.Event)
	// Operation and Wait are called by one goroutine, behind the events.
	Operation func(*Part)
	Wait      func(*Wait)
}

// Part is one member's part in a collective, or one end of a message.
type Part struct {
	Location otf2.LocationRef
	// Enter is the number of the region that the part is in: that of the n-th Enter of the location, from 0.
	// NoRegion without one.
	Enter    uint64
	Comm     otf2.CommRef
	Rank     int // in the communicator
	Function string
	Ordinal  uint64
	Message  bool
	Peer     int    // of a message: the other end's rank
	Root     uint32 // of a collective; otf2.CollectiveRootNone
	// Sent and Received are the bytes that the events tell; of a message both are its length.
	Sent, Received uint64
	Event          uint64 // id of NCCL's event, 0: not told
	Grouped        bool   // launched together with others, whose times it has
	Alike          bool   // false: the archive says that not all members recorded it alike
}

// NoRegion is the Part.Enter of operations outside of regions.
const NoRegion = ^uint64(0)

// Wait is what a region on a communicator rank's location waited for, as WaitStates says.
type Wait struct {
	Location otf2.LocationRef
	Enter    uint64 // see Part
	Waited   uint64 // ns, from the region's begin on
	Kind     string // as in WaitStates.Kinds
	For      int    // the rank that it waited for, an index into WaitStates.Ranks
	// First: in the first collective of a communicator, which counts as start-up if more follow.
	First bool
}

func (l *Listener) lanes(n int) {
	if l != nil && l.Lanes != nil {
		l.Lanes(n)
	}
}

// operation tells of a part; pair names a message as the archive's properties do.
func (l *Listener) operation(op *operation, alike bool) {
	if l == nil || l.Operation == nil {
		return
	}
	l.Operation(&Part{
		Location: op.location, Enter: op.enter, Comm: op.comm.ref, Rank: op.rank, Function: op.function, Ordinal: op.ordinal,
		Message: isMessage(op.function), Peer: op.peer, Root: op.root, Sent: op.sent, Received: op.received,
		Event: op.event, Grouped: op.grouped, Alike: alike,
	})
}

func (l *Listener) wait(location otf2.LocationRef, enter, waited uint64, kind waitKind, awaited int, first bool) {
	if l != nil && l.Wait != nil && waited > 0 {
		l.Wait(&Wait{Location: location, Enter: enter, Waited: waited, Kind: waitKindNames[kind], For: awaited, First: first})
	}
}

func isMessage(function string) bool { return function == "Send" || function == "Recv" }
