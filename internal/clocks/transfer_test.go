// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// noNames are those of an archive without definitions.
type noNames struct{}

func (noNames) String(otf2.StringRef) string            { return "" }
func (noNames) RegionName(otf2.RegionRef) string        { return "" }
func (noNames) CommSize(otf2.CommRef) int               { return 0 }
func (noNames) Rank(otf2.CommRef, otf2.LocationRef) int { return -1 }

// Of each operation, peer and channel the first transfer and the first arrival are taken, once it is known which
// operation the rows speak of.
func TestFirstTransfers(t *testing.T) {
	const (
		regionReady, regionArrived, regionOther = 0, 1, 2
		window, otherWindow                     = 0, 1
		attrParent, attrChannel                 = regions.AttrParentID, regions.AttrChannel
		attrPeer, attrStep                      = regions.AttrPeer, regions.AttrStep
	)
	comm := &membership.Communicator{Ref: 5}
	newReader := func(out *[]opSample) *transferReader {
		windows := map[otf2.RmaWinRef]*membership.Communicator{window: {Parent: 5, Network: true},
			otherWindow: {Parent: 6, Network: true}}
		phases := map[otf2.RegionRef]naming.NetPhase{regionReady: naming.NetSendPeer, regionArrived: naming.NetRecvFlush}
		return newTransferReader(noNames{}, nil, phases, windows, comm, func(s opSample) { *out = append(*out, s) })
	}
	at := func(kind otf2.EventKind, args []uint64, parent, channel uint64, more ...otf2.AttributeValue) *otf2.Event {
		return &otf2.Event{Kind: kind, Args: args,
			Attributes: append([]otf2.AttributeValue{{ID: attrParent, Bits: parent}, {ID: attrChannel, Bits: channel}},
				more...)}
	}
	enter := func(region, parent, channel, peer uint64) *otf2.Event {
		return at(otf2.EventEnter, []uint64{region}, parent, channel, otf2.AttributeValue{ID: attrPeer, Bits: peer})
	}
	put := func(win, peer, parent, channel, step uint64) *otf2.Event {
		return at(otf2.EventRmaPut, []uint64{win, peer, 100, 0}, parent, channel,
			otf2.AttributeValue{ID: attrStep, Bits: step})
	}
	allReduce := opName{function: "AllReduce", ordinal: 3, peer: -1}
	transfer := func(time float64, channel int) opSample {
		return opSample{function: "AllReduce", kind: opTransfer, ordinal: 3, peer: 1, channel: channel, begin: time,
			hasBegin: true}
	}
	arrival := func(time float64, channel int) opSample {
		return opSample{function: "AllReduce", kind: opArrival, ordinal: 3, peer: 1, channel: channel, end: time,
			hasEnd: true}
	}
	type step struct {
		time float64
		ev   *otf2.Event
	}
	for _, c := range []struct {
		name   string
		events []step
		op     opName
		want   []opSample
	}{
		{"sent", []step{{1, enter(regionReady, 7, 0, 1)}, {2, enter(regionReady, 7, 0, 1)},
			{3, put(window, 1, 7, 0, 0)}, {4, put(window, 1, 7, 0, 0)}}, allReduce, []opSample{transfer(2, 0)}},
		{"two channels", []step{{1, enter(regionReady, 7, 0, 1)}, {2, enter(regionReady, 7, 1, 1)},
			{3, put(window, 1, 7, 1, 0)}, {4, put(window, 1, 7, 0, 0)}}, allReduce,
			[]opSample{transfer(2, 1), transfer(1, 0)}},
		{"not the first step", []step{{1, enter(regionReady, 7, 0, 1)}, {3, put(window, 1, 7, 0, 1)}}, allReduce, nil},
		{"never seen ready", []step{{3, put(window, 1, 7, 0, 0)}}, allReduce, nil},
		{"ready for another peer", []step{{1, enter(regionReady, 7, 0, 2)}, {3, put(window, 1, 7, 0, 0)}}, allReduce,
			nil},
		{"another communicator's window", []step{{1, enter(regionReady, 7, 0, 1)}, {3, put(otherWindow, 1, 7, 0, 0)}},
			allReduce, nil},
		{"arrived", []step{{1, enter(regionOther, 7, 0, 1)}, {2, enter(regionArrived, 7, 0, 1)},
			{3, enter(regionArrived, 7, 0, 1)}}, allReduce, []opSample{arrival(2, 0)}},
		{"of another operation", []step{{2, enter(regionArrived, 8, 0, 1)}}, allReduce, nil},
		{"a message", []step{{2, enter(regionArrived, 7, 0, 1)}}, opName{function: "Recv", ordinal: 3, peer: 1},
			[]opSample{{function: "message", kind: opArrival, ordinal: 3, peer: 1, end: 2, hasEnd: true}}},
		{"a message from another", []step{{2, enter(regionArrived, 7, 0, 2)}},
			opName{function: "Recv", ordinal: 3, peer: 1}, nil},
	} {
		for _, early := range []bool{true, false} { // the operation is known before or after its transfers
			var got []opSample
			r := newReader(&got)
			if early {
				r.nameOperation(7, c.op)
			}
			for _, s := range c.events {
				r.readEvent(s.ev, s.time)
			}
			if !early {
				r.nameOperation(7, c.op)
			}
			testkit.Equal(t, cmp.Diff(c.want, got, cmp.AllowUnexported(opSample{})), "",
				"%s (known early: %v)", c.name, early)
		}
	}
}
