// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/effect"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// TransferKinds are the kinds of events that transfers are decoded from.
var TransferKinds = otf2.Kinds(otf2.EventRmaPut, otf2.EventRmaOpCompleteNonBlocking, otf2.EventRmaOpCompleteBlocking)

// Transfer is what the network carried from one rank to another in one piece, as the sender's proxy recorded it.
type Transfer struct {
	Details    // of its beginning: Parent is the operation's event
	Location   otf2.LocationRef
	Window     otf2.RmaWinRef
	To         int // rank in the window's communicator
	Matching   uint64
	Begin, End otf2.Timestamp // handed to the network, and known to be sent
	Ended      bool           // End is known; else it is Begin
	Bytes      uint64
}

func (row *Row) beginTransfer(ev *otf2.Event) {
	step := effect.StepOf(ev)
	t := Transfer{
		Details: NoDetails, Location: ev.Location, Window: step.Put.Window, To: int(step.To), Bytes: step.Bytes,
		Matching: step.Put.Matching,
		Begin:    ev.Time, End: ev.Time,
	}
	r := row.reader
	if len(ev.Attributes) > 0 {
		r.Read(ev, &t.Details)
	}
	if r.Put != nil {
		r.Put(&t)
	}
	if r.Transfer == nil {
		return
	}
	if old, twice := row.puts[step.Put]; twice {
		r.Transfer(&old)
	}
	if row.puts == nil {
		row.puts = make(map[effect.PutName]Transfer)
	}
	row.puts[step.Put] = t
}

func (row *Row) endTransfer(ev *otf2.Event) {
	if len(row.puts) == 0 {
		return
	}
	key, done := effect.StepOf(ev).Put, &row.reader.done
	var ok bool
	if *done, ok = row.puts[key]; ok {
		delete(row.puts, key)
		done.End, done.Ended = ev.Time, true
		row.reader.Transfer(done)
	}
}

// Unended lists the transfers of all rows without an end so far, by their begins.
func (r *Reader) Unended() (all []Transfer) {
	for _, row := range r.rows.All() {
		for _, t := range row.puts {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Transfer) int {
		return cmp.Or(cmp.Compare(a.Location, b.Location), cmp.Compare(a.Begin, b.Begin),
			cmp.Compare(a.Window, b.Window), cmp.Compare(a.Matching, b.Matching))
	})
	return all
}
