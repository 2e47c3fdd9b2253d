// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Transfer is one piece of data that the network carried between two ranks, as the sender's proxy saw it.
type Transfer struct {
	Comm         otf2.CommRef // of the operation, not of its network; UndefinedComm if unknown
	Communicator string
	From         int // rank in the communicator, −1: unknown
	To           int
	Location     otf2.LocationRef // of the sending proxy
	Target       otf2.LocationRef // row of the receiver's transfers; UndefinedLocation if unknown
	Channel      int              // −1: unknown, like the following ones
	Step         int
	QP           int
	Begin, End   otf2.Timestamp // when it was handed to the network, and when it was known to be sent
	Ended        bool           // End is known; otherwise it equals Begin
	Bytes        uint64
	Parent       uint64 // id of the operation's event, 0: unknown
}

// EachTransfer passes the transfers of an archive to f, by sending location in the order of their ids, and for each
// location in the order of their ends; transfers without an end come last. It covers a slice of the rows that show
// transfers. A transfer is valid until f returns. The first error of f ends the reading and is returned. problems
// names files that cannot be read to their end.
func EachTransfer(a *otf2.Archive, slice analysis.Slice, f func(*Transfer) error) (problems []string, err error) {
	r := NewTransferReader(a)
	m := r.lane.matrix
	var t Transfer
	var done []transfer
	flush := func(all []transfer) error {
		for i := range all {
			m.fillTransfer(&t, &all[i])
			if err := f(&t); err != nil {
				return err
			}
		}
		return nil
	}
	for _, l := range slice.Cut(a.Defs, r.Locations()) {
		lane := m.lane()
		for ev, damage := range a.Events(&otf2.Selection{Locations: []otf2.LocationRef{l},
			Kinds: facts.TransferKinds}) {
			if damage != nil {
				problems = append(problems, damage.Error())
				continue
			}
			done = lane.event(ev, done[:0])
			if err := flush(done); err != nil {
				return problems, err
			}
		}
		lane.done = nil
		for _, t := range lane.operations.Unended() {
			lane.transfer(&t)
		}
		if err := flush(lane.done); err != nil {
			return problems, err
		}
	}
	return problems, nil
}

// TransferReader finds the transfers in the events of one or several locations.
type TransferReader struct {
	lane     *matrixLane
	done     []transfer
	transfer Transfer
}

// NewTransferReader returns a reader of an archive's transfers.
func NewTransferReader(a *otf2.Archive) *TransferReader {
	return &TransferReader{lane: newMatrix(a.Defs).lane()}
}

// Locations lists the rows that show transfers, in the order of their ids.
func (r *TransferReader) Locations() []otf2.LocationRef {
	locations := make(map[otf2.LocationRef]bool)
	for _, w := range r.lane.windows {
		for _, l := range w.Members {
			locations[l] = true
		}
	}
	for l := range r.lane.ranks {
		locations[l] = true
	}
	return analysis.Ascending(locations)
}

// Unended returns the number of transfers that have begun but not ended.
func (r *TransferReader) Unended() int { return len(r.lane.operations.Unended()) }

// Event takes the next event, and returns the transfer that ends with it, or nil. The transfer is valid until the next
// call.
func (r *TransferReader) Event(ev *otf2.Event) *Transfer {
	r.done = r.lane.event(ev, r.done[:0])
	if len(r.done) == 0 {
		return nil
	}
	r.lane.fillTransfer(&r.transfer, &r.done[len(r.done)-1])
	return &r.transfer
}

func (m *matrix) fillTransfer(t *Transfer, from *transfer) {
	*t = Transfer{
		Comm: otf2.UndefinedComm, Communicator: from.network.Communicator, From: from.from, To: from.To,
		Location: from.Location,
		Target:   otf2.UndefinedLocation, Channel: int(from.Channel), Step: int(from.Step), QP: int(from.QP),
		Begin: from.Begin, End: from.End,
		Ended: from.Ended, Bytes: from.Bytes, Parent: from.Parent,
	}
	if p := from.network.parent; p != nil {
		t.Comm = p.Ref
	}
	if c := m.rows[from.network.Comm]; c != nil && from.To < len(c.Members) {
		t.Target = c.Members[from.To]
	}
}
