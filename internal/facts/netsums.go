// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// NetSums sums up the transfers of one operation with one rank in one direction, for recordings with sums instead of
// single transfers (NCCL_OTF2_EVENTS=net-sums). An operation may have several records per rank, which add up: no
// transfer is in two of them.
type NetSums struct {
	Location  otf2.LocationRef
	Time      otf2.Timestamp // when the record was complete
	Send      bool
	Parent    uint64         // id of the operation's event, 0: not known
	Peer      int            // rank in the communicator, −1: not known
	Window    otf2.RmaWinRef // of what was sent; UndefinedRmaWin: nothing was
	ProxyOps  uint64
	Steps     uint64
	Transfers uint64 // steps with bytes; sent ones would be a Transfer each
	Bytes     uint64
	// Phases of the row are those of the oldest transfer under way: ns of those that have ended, and how many of them.
	Times  [naming.NumNetPhases]uint64
	Phases [naming.NumNetPhases]uint64
	// Unfinished is set if a phase was open when the data ended: OpenPhase, for OpenTime ns, which are in no sum.
	Unfinished bool
	OpenPhase  naming.NetPhase
	OpenTime   uint64
	Busy       uint64 // ns with a transfer under way from this row to the peer, since its previous record
	// Longest is the longest time (ns) of a single step in one phase, 0: none is known; LongestPhase and LongestChannel
	// are of that step.
	Longest        uint64
	LongestPhase   naming.NetPhase
	LongestChannel int
}

// isSums reports whether a region records sums, and for which direction.
func (r *Reader) isSums(region otf2.RegionRef) (send, is bool) {
	known := r.sums.Get(region)
	if known == 0 {
		known = 2 + slices.Index(naming.SumNames, r.Names.RegionName(region)) // 1: none of them
		r.sums.Set(region, known)
	}
	return known == 2, known > 1
}

// readNetSums decodes a region that may record sums. Regions of other tools with the same name lack PROXY_OPS.
func (row *Row) readNetSums(ev *otf2.Event) {
	r := row.reader
	send, is := r.isSums(otf2.RegionRef(ev.Args[0]))
	if !is {
		return
	}
	s := NetSums{Location: ev.Location, Time: ev.Time, Send: send, Peer: -1, Window: otf2.UndefinedRmaWin}
	phases := [3]naming.NetPhase{naming.NetRecvGPU, naming.NetRecvFlush, naming.NetRecv}
	if send {
		phases = [3]naming.NetPhase{naming.NetSendGPU, naming.NetSendPeer, naming.NetSend}
	}
	is, stated := false, false
	for i := range ev.Attributes {
		a := &ev.Attributes[i]
		ref, ok := r.attributes.Resolve(a.ID)
		if !ok {
			continue
		}
		switch ref {
		case regions.AttrProxyOps:
			s.ProxyOps, is = a.Bits, true
		case regions.AttrParentID:
			s.Parent = a.Bits
		case regions.AttrPeer:
			s.Peer = int(a.Bits)
		case regions.AttrWindow:
			s.Window = otf2.RmaWinRef(a.Bits)
		case regions.AttrSteps:
			s.Steps, stated = a.Bits, true
		case regions.AttrTransfers:
			s.Transfers = a.Bits
		case regions.AttrBytes:
			s.Bytes = a.Bits
		case regions.AttrGPUWait:
			s.Times[phases[0]] = a.Bits
		case regions.AttrPeerWait, regions.AttrFlushTime:
			s.Times[phases[1]] = a.Bits
		case regions.AttrNetworkTime:
			s.Times[phases[2]] = a.Bits
		case regions.AttrGPUWaits:
			s.Phases[phases[0]] = a.Bits
		case regions.AttrPeerWaits, regions.AttrFlushTimes:
			s.Phases[phases[1]] = a.Bits
		case regions.AttrNetworkTimes:
			s.Phases[phases[2]] = a.Bits
		case regions.AttrOpenPhase:
			s.Unfinished, s.OpenPhase = true, r.phaseNamed(a)
		case regions.AttrOpenTime:
			s.OpenTime = a.Bits
		case regions.AttrBusy:
			s.Busy = a.Bits
		case regions.AttrLongest:
			s.Longest = a.Bits
		case regions.AttrLongestPhase:
			s.LongestPhase = r.phaseNamed(a)
		case regions.AttrLongestOn:
			s.LongestChannel = int(a.Bits)
		}
	}
	if !stated {
		s.Steps = s.Transfers
	}
	if is {
		r.Sums(&s)
	}
}

// phaseNamed returns the phase that an attribute names; the first one if the name is unknown.
func (r *Reader) phaseNamed(a *otf2.AttributeValue) naming.NetPhase {
	return naming.NetPhase(max(slices.Index(naming.NetPhaseNames[:], r.Names.String(otf2.StringRef(a.Bits))), 0))
}
