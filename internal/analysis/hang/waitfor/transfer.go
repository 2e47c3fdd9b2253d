// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// flow identifies one direction between two members on a channel, in an operation that all members are in.
type flow struct {
	from, to, channel int
}

// transfer names the network transfer that blocks an operation that all members are in. Transfers of one step depend
// on each other, because data passes through the members: a sender that waits for its own GPU waits for data that the
// GPU receives, and a sender that waits for its receiver waits for the receiver to pass data on. The stuck transfer is
// one that neither explains: its sender has handed the data to the network, or is done with it, and the receiver has
// not got it. Of several, the one that has lasted longest is returned. ok is false if there is none.
func transfer(o *operation) (s Stop, ok bool) {
	sends, receives := make(map[flow]*description.Transfer), make(map[flow]*description.Transfer)
	recorded := make(map[int]bool) // members whose transfers are recorded
	for i := range o.parts {
		p := &o.parts[i]
		if p.pending == nil {
			continue
		}
		for k := range p.pending.Transfers {
			t := &p.pending.Transfers[k]
			recorded[p.rank] = true
			if t.Send {
				sends[flow{p.rank, t.Peer, t.Channel}] = t
			} else {
				receives[flow{t.Peer, p.rank, t.Channel}] = t
			}
		}
	}
	var stuck *description.Transfer
	var at flow
	found := func(f flow, t *description.Transfer) {
		if stuck == nil || t.Since < stuck.Since || t.Since == stuck.Since && !t.Send {
			stuck, at = t, f
		}
	}
	for f, t := range sends {
		if t.Phase == regions.NameSendNetwork {
			found(f, t)
		}
	}
	if stuck == nil {
		for f, t := range receives {
			if sent := sends[f]; t.Phase == regions.NameRecvNetwork && recorded[f.from] &&
				(sent == nil || sent.Step > t.Step) {
				found(f, t)
			}
		}
	}
	if stuck == nil {
		return s, false
	}
	from, to := o.member(at.from), o.member(at.to)
	if from == nil || to == nil {
		return s, false
	}
	s = Stop{Kind: verdict.SlowTransfer, Among: worlds(o, []*part{from, to}), of: []*operation{o}}
	if w := o.world(from); w >= 0 {
		s.Culprits = []int{w}
	}
	if w := o.world(to); w >= 0 {
		s.Peer = &w
	}
	bytes := ""
	if stuck.Bytes > 0 {
		bytes = fmt.Sprintf(" of %d bytes", stuck.Bytes)
	}
	how := "was handed to the network and has not been sent"
	if !stuck.Send {
		how = "was sent and has not come"
	}
	s.Text = fmt.Sprintf("a transfer%s from %s to %s (channel %d, step %d, phase %q) in %s %s", bytes,
		o.comm.Names[at.from], o.comm.Names[at.to],
		at.channel, stuck.Step, stuck.Phase, o.words(), how)
	return s, true
}

// member returns the part of a rank of the communicator.
func (o *operation) member(rank int) *part {
	for i := range o.parts {
		if o.parts[i].rank == rank {
			return &o.parts[i]
		}
	}
	return nil
}
