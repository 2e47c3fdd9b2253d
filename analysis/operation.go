// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// operation is one member's part in a collective, or one end of a message, with what is known of its member.
type operation struct {
	facts.Operation
	comm   *facts.Communicator
	rank   int // in the communicator
	phase  *phaseNode
	call   uint64 // how long the call took that asked for it, see callTimes
	called bool   // call is known
}

// pairName names the sequence of a message as sequences of an archive's properties do.
func (op *operation) pairName() string { return op.PairName(op.rank) }

// operationReader finds the operations of communicators' members in events.
type operationReader struct {
	*facts.Reader
	comms  map[otf2.CommRef]*facts.Communicator
	member map[otf2.LocationRef]bool // of any communicator
	emit   func(*operation)
	alone  uint64 // operations on communicators of one rank, which have no events of their own
	op     operation
}

func newOperationReader(defs *otf2.Definitions, comms map[otf2.CommRef]*facts.Communicator, emit func(*operation)) *operationReader {
	r := newOperationsOf(facts.ArchiveNames(defs, comms), facts.FindAttributes(defs), comms, emit)
	for _, c := range comms {
		for _, l := range c.Members {
			r.member[l] = true
		}
	}
	return r
}

// newOperationsOf is newOperationReader for events with other names than an archive's; the caller sets the members.
func newOperationsOf(names facts.Names, attributes *facts.Attributes, comms map[otf2.CommRef]*facts.Communicator, emit func(*operation)) *operationReader {
	r := &operationReader{Reader: facts.NewReader(names, attributes), comms: comms, member: make(map[otf2.LocationRef]bool), emit: emit}
	r.Operation, r.Leave = r.operation, r.launch
	return r
}

// operation passes on the operations of members. A collective that a location does with itself is left out.
func (r *operationReader) operation(f *facts.Operation) {
	comm := r.comms[f.Comm]
	if comm == nil || comm.Self && !f.Message {
		return
	}
	o := &r.op
	*o = operation{Operation: *f, comm: comm, rank: comm.RankOf(f.Location)}
	if o.rank >= 0 {
		r.emit(o)
	}
}

func (r *operationReader) launch(l *facts.Region) {
	if l.Number > 0 && l.Ended == 0 && !r.member[l.Location] {
		r.alone += l.Operations
	}
}
