// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Operation is one member's part in a collective, or one end of a message, with what is known about the member.
type Operation struct {
	facts.Operation
	Communicator *membership.Communicator
	Rank         int          // in the communicator
	During       Occasion     // the phase that it was called in; nil: none, or unknown
	CallTime     uint64       // how long the call that led to it took, ns; see callTimes
	Called       bool         // CallTime is known
	Local        causes.Local // its place among the operations of its rank; set if causes of waits are wanted
}

// Phase is a phase of the application. Equal values are the same phase.
type Phase interface {
	Path() string  // names of the phases around it and its own
	Around() Phase // the phase around it; nil: none
}

// Occasion is one run through a phase.
type Occasion interface {
	Phase() Phase
	Path() string // as for Phase, with the names in this run
}

// Sequence names the sequence of a message as in an archive's properties.
func (op *Operation) Sequence() string { return op.PairName(op.Rank) }

// OperationReader finds the operations of communicators' members in events.
type OperationReader struct {
	*facts.Reader
	Comms  map[otf2.CommRef]*membership.Communicator
	Member map[otf2.LocationRef]bool // members of any communicator; in an archive only those looked up so far
	whole  bool                      // Comms has all communicators
	emit   func(*Operation)
	Alone  uint64 // operations on communicators of one rank, which have no events of their own
	op     Operation
}

// NewOperationReader returns a reader of an archive's events that passes each operation of a member to emit when it
// ends. An operation is valid until emit returns.
func NewOperationReader(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator,
	emit func(*Operation)) *OperationReader {
	r := NewOperationsOf(facts.ArchiveNames(defs, comms), attribute.Find(defs), comms, emit)
	r.whole = true
	return r
}

// NewOperationsOf is like NewOperationReader for events whose names do not come from an archive; the caller sets
// Member.
func NewOperationsOf(names facts.Names, attributes *attribute.Table, comms map[otf2.CommRef]*membership.Communicator,
	emit func(*Operation)) *OperationReader {
	r := &OperationReader{Reader: facts.NewReader(names, attributes), Comms: comms,
		Member: make(map[otf2.LocationRef]bool), emit: emit}
	r.Operation, r.Leave = r.operation, r.launch
	for _, c := range comms {
		if c.Calls {
			r.Calls = func(ref otf2.CommRef) bool { c := comms[ref]; return c != nil && c.Calls }
			r.Lacks = func(ref otf2.CommRef, l otf2.LocationRef, function string, ordinal uint64) bool {
				c := comms[ref]
				return c != nil && c.Lacks(l, function, ordinal)
			}
			break
		}
	}
	return r
}

// operation passes on the operations of members, except collectives of a location with itself.
func (r *OperationReader) operation(f *facts.Operation) {
	comm := r.Comms[f.Comm]
	if comm == nil || comm.Self && !f.Message {
		return
	}
	rank := comm.RankOf(f.Location)
	if rank < 0 {
		return
	}
	o := &r.op // set in place: a literal would be built elsewhere and copied
	o.Operation, o.Communicator, o.Rank = *f, comm, rank
	o.During, o.CallTime, o.Called, o.Local = nil, 0, false, causes.Local{}
	r.emit(o)
}

func (r *OperationReader) launch(l *facts.Region) {
	if l.Number > 0 && l.Ended == 0 && !r.isMember(l.Location) {
		r.Alone += l.Operations
	}
}

// isMember reports whether a location is a member of any communicator.
func (r *OperationReader) isMember(l otf2.LocationRef) bool {
	is, known := r.Member[l]
	if known || !r.whole {
		return is
	}
	for _, c := range r.Comms {
		is = is || !c.Self && c.RankOf(l) >= 0
	}
	r.Member[l] = is
	return is
}

// Ascending lists locations in the order of their ids.
func Ascending(locations map[otf2.LocationRef]bool) []otf2.LocationRef {
	return slices.Sorted(maps.Keys(locations))
}

// SendRecv is the name of messages, as in nccl-tests: a Send and its Recv are one operation.
const SendRecv = "SendRecv"
