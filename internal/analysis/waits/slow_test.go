// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/transfers"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// ringOf sends messages from each of four ranks to the next, and all of one link before those of the next one. Sends
// only fill a buffer; on the link from rank 1 to 2 messages are on the way for long.
func ringOf(s *slowness, times int) {
	const us = 1000
	comm := &membership.Communicator{Ref: 0}
	for k := range 4 {
		from, to := (1+k)%4, (2+k)%4
		took := uint64(100 * us)
		if from == 1 {
			took = 30_000 * us
		}
		for i := range times {
			begin := otf2.Timestamp(1_000_000 * us * (i + 1))
			plan := func(rank int, took uint64) *messagePlan {
				return &messagePlan{part: part{Rank: rank, Begin: begin, Time: took}, Comm: comm}
			}
			send := &MessageEnd{Send: true, Begin: begin, Plan: plan(from, 10*us), Ordinal: uint64(i), size: 80_000}
			send.carried.Link = facts.Link{Peer: int32(to), Busy: took, Bytes: 80_000, Transfers: 3}
			recv := &MessageEnd{Begin: begin, Plan: plan(to, took), Ordinal: uint64(i), size: 80_000}
			recv.carried.Link.Peer = -1
			s.message(send, recv)
			s.countHeldUp(send.Plan)
			s.countHeldUp(recv.Plan)
		}
	}
}

// A slow link is found although all its messages come before those that they can be compared with. It is why operations
// took longer on the receiver.
func TestSlowLinkComesFirst(t *testing.T) {
	s := &slowness{counter: transfers.New(), hosts: make([]int, 4), longer: newLonger(4)}
	ringOf(s, 9)
	slow := s.result(make([]Row, 4), make([]string, 4))
	testkit.Require(t, len(slow.Rows) == 1, "%+v", slow.Rows)
	f := &slow.Rows[0].Finding
	testkit.Check(t, f.Kind == transfers.Link && f.Rank == 1 && f.Peer == 2 && f.Slow >= 8, "%+v", f)
	testkit.Require(t, len(slow.Longer) == 1, "%+v", slow.Longer)
	l := slow.Longer[0]
	testkit.Check(t, l.Rank == 2 && l.By == 1 && l.Part > 0.85 && l.Part <= 1, "%+v", l)
}
