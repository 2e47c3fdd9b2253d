// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"maps"
	"slices"
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Sums of transfers: one region without duration on the network's row for all transfers of an operation with one peer
// in one direction, written when they are complete. Its sums equal those of the regions and transfers that would be
// there otherwise (netrank.go, proxy.go), so that they are times of the row.
//
// An operation's sums are written when it is complete and none of its ProxyOps is open, at the latest when the
// operation is written. Later transfers of it, and transfers without a known operation (of another process, or of a
// refused event), are written when their last ProxyOp ends. So an operation may have several records, which add up.

// sumKey is the key by which transfers are summed up.
type sumKey struct {
	parent uint64 // handle of the operation, 0 if there is none
	peer   int32  // −1 if there is none
	send   bool
}

// netSum is the sum of some transfers.
type netSum struct {
	net  *network
	side *netSide
	key  sumKey
	open int   // ProxyOps in the sum that have not ended
	plan *plan // nil: not known, or written

	figures
}

// figures are the figures of a record.
type figures struct {
	proxyOps, steps, transfers, bytes uint64
	times, stretches                  [numNetPhases]uint64 // by phase
	openPhase                         netPhase             // in which the data ended; a side has at most one
	openTime                          uint64
	sent                              bool // something was sent: the link's meter may have time
	longest                           uint64
	longestPhase                      netPhase
	longestChannel                    uint8
}

// linkMeter measures the time with a transfer under way to a peer.
type linkMeter struct {
	open  int
	since uint64
	busy  uint64 // of which no record has told
}

// maxSums bounds the sums of a communicator rank that wait for their operations to complete.
const maxSums = 65536

// raiseClock returns the time that an event of time t would have on the row: events of a row never go back.
func (s *netSide) raiseClock(t uint64) uint64 {
	s.clock = max(s.clock, t)
	return s.clock
}

// sumOf finds or adds the sum for a ProxyOp, or for steps without one (nil), on a side.
func (net *network) sumOf(o *proxyOp, side *netSide) *netSum {
	if o != nil && o.carriers.sum != nil && o.carriers.sum.side == side {
		return o.carriers.sum
	}
	n := side.rank
	key := sumKey{peer: -1, send: side == &n.send}
	if o != nil {
		key.parent, key.peer = o.parent, o.peer
	}
	s := n.sums[key]
	if s == nil {
		if n.sums == nil {
			n.sums = make(map[sumKey]*netSum)
		}
		s = &netSum{net: net, side: side, key: key}
		n.sums[key] = s
	}
	if o == nil {
		return s
	}
	if s.plan == nil && o.op != nil {
		s.plan = o.op.plan
		s.plan.net.sums = append(s.plan.net.sums, s)
		s.plan.countBytes(unsafe.Sizeof(*s))
	}
	o.leaveSum()
	o.carriers.sum = s
	s.open++
	s.proxyOps++
	return s
}

// leaveSum removes a ProxyOp from its sum.
func (o *proxyOp) leaveSum() {
	if o.carriers.sum != nil {
		o.carriers.sum.open--
		o.carriers.sum = nil
	}
}

// leaveSum removes a ProxyOp that has ended from its sum, and writes the sum if nothing more of it will come.
func (net *network) leaveSum(o *proxyOp, t uint64) {
	s := o.carriers.sum
	o.leaveSum()
	if s != nil && s.open == 0 && (s.plan == nil || s.plan.completion.at != 0 || len(s.side.rank.sums) > maxSums) {
		s.writeRecord(t)
	}
}

// leaveLoose notes that a step has left its row. If it has no ProxyOp and is the last such step, its sum is complete.
func (net *network) leaveLoose(s *proxyStep, side *netSide, t uint64) {
	if s.op != nil || side.head != nil || !net.opts.NetSums {
		return
	}
	if sum := side.rank.sums[sumKey{peer: -1, send: side == &side.rank.send}]; sum != nil && sum.open == 0 {
		sum.writeRecord(t)
	}
}

// settleSums writes the sums of a complete plan that have nothing open.
func (p *plan) settleSums(t uint64) {
	waiting := p.net.sums[:0]
	for _, s := range p.net.sums {
		if s.open == 0 {
			s.writeRecord(t)
		} else {
			waiting = append(waiting, s)
		}
	}
	clear(p.net.sums[len(waiting):])
	p.net.sums = waiting
}

// leaveSums writes the sums so far of a plan that is being written and forgotten.
func (p *plan) leaveSums(t uint64) {
	for _, s := range p.net.sums {
		s.writeRecord(t)
		s.plan = nil
	}
	p.net.sums = nil
}

// closeSums writes the remaining sums of a network: it is finalized, or the data ends.
func (net *network) closeSums(n *netRank, t uint64) {
	all := slices.SortedFunc(maps.Values(n.sums), func(a, b *netSum) int {
		return cmp.Or(cmp.Compare(a.key.parent, b.key.parent), cmp.Compare(a.key.peer, b.key.peer))
	})
	for _, s := range all {
		s.writeRecord(t)
	}
	n.sums, n.meters = nil, nil
}

// addPhase adds a phase of the oldest transfer that took some time (ns).
func (s *netSum) addPhase(phase netPhase, took uint64, unfinished bool) {
	if unfinished {
		s.openPhase, s.openTime = phase, took
		return
	}
	s.stretches[phase]++
	s.times[phase] += took
}

// addArrival adds the bytes of a received transfer.
func (s *netSum) addArrival(bytes uint64) {
	if bytes > 0 {
		s.transfers++
		s.bytes += bytes
	}
}

// sumStep adds the time of a step in the phase that it leaves.
func (net *network) sumStep(s *proxyStep, t uint64) {
	if !net.opts.NetSums || s.side == nil || t <= s.since {
		return
	}
	sum := net.sumOf(s.op, s.side)
	if took := t - s.since; took > sum.longest {
		sum.longest, sum.longestPhase, sum.longestChannel = took, s.phase, 0
		if s.op != nil {
			sum.longestChannel = s.op.channel
		}
	}
}

// sumPut adds a transfer that is handed to the network, and returns an id that is not 0.
func (net *network) sumPut(side *netSide, o *proxyOp, bytes, t uint64) uint64 {
	net.windowOf(o.rank, o.peer)
	s := net.sumOf(o, side)
	s.transfers++
	s.bytes += bytes
	s.sent = true
	n := side.rank
	m := n.meters[o.peer]
	if m == nil {
		if n.meters == nil {
			n.meters = make(map[int32]*linkMeter)
		}
		m = &linkMeter{}
		n.meters[o.peer] = m
	}
	if m.open == 0 {
		m.since = side.raiseClock(t)
	}
	m.open++
	return 1
}

// sumComplete takes the end of a transfer.
func (net *network) sumComplete(side *netSide, o *proxyOp, t uint64) {
	net.sumOf(o, side).sent = true
	if m := side.rank.meters[o.peer]; m != nil && m.open > 0 {
		m.busy += m.upTo(side.raiseClock(t))
		m.open--
	}
}

// upTo adds the time since the previous call to the busy time if a transfer is under way.
func (m *linkMeter) upTo(t uint64) uint64 {
	took := t - min(m.since, t)
	m.since = max(m.since, t)
	return took
}

// takeBusy returns and resets the busy time.
func (m *linkMeter) takeBusy(t uint64) (busy uint64) {
	if m.open > 0 {
		m.busy += m.upTo(t)
	}
	busy, m.busy = m.busy, 0
	return busy
}

// writeRecord writes the record of a sum if it is not empty, and drops the sum if nothing more is expected of it.
func (s *netSum) writeRecord(t uint64) {
	if sums := s.side.rank.sums; s.open == 0 && sums[s.key] == s {
		delete(sums, s.key)
	}
	if (s.figures == figures{proxyOps: s.proxyOps}) {
		return
	}
	loc, net := s.side.loc, s.net
	if loc == nil {
		return // without a row in the other mode, too
	}
	if s.key.send {
		net.flushPolls(s.side.rank)
	}
	region := net.defs.regionRef(sumNames[s.key.send], GroupNetwork, otf2.RegionRoleDataTransfer)
	net.writeRegion(loc, t, t, s.addFigures(net.emptyAttributes(), t), region)
	s.figures = figures{}
}

// sumNames are the names of the regions: true for sent transfers.
var sumNames = map[bool]string{true: NameSendSums, false: NameRecvSums}

// sumAttributes are the attributes with the times and the numbers of phases.
var sumAttributes = [numNetPhases]struct{ time, times otf2.AttributeRef }{
	netSendGPU: {AttrGPUWait, AttrGPUWaits}, netSendPeer: {AttrPeerWait, AttrPeerWaits},
	netSend: {AttrNetworkTime, AttrNetworkTimes},
	netRecv: {AttrNetworkTime, AttrNetworkTimes}, netRecvFlush: {AttrFlushTime, AttrFlushTimes},
	netRecvGPU: {AttrGPUWait, AttrGPUWaits},
}

// addFigures adds the figures that are not 0. PROXY_OPS, by which a record is recognized, is always added; the number
// of steps is left out if all had bytes.
func (s *netSum) addFigures(a *otf2.AttributeList, t uint64) *otf2.AttributeList {
	net := s.net
	a.Uint32(AttrProxyOps, uint32(s.proxyOps))
	if s.key.parent != 0 {
		a.Uint64(AttrParentID, s.key.parent)
	}
	if s.key.peer >= 0 {
		a.Uint32(AttrPeer, uint32(s.key.peer))
	}
	if n := s.side.rank; s.sent {
		a.RmaWin(AttrWindow, otf2.RmaWinRef(n.window))
		addNumber(a, AttrBusy, n.meters[s.key.peer].takeBusy(t))
	}
	if s.steps != s.transfers {
		a.Uint32(AttrSteps, uint32(s.steps))
	}
	addNumber(a, AttrTransfers, s.transfers)
	addNumber(a, AttrBytes, s.bytes)
	for phase := netNone + 1; phase < numNetPhases; phase++ {
		if s.stretches[phase] > 0 {
			net.phaseRegion(phase) // defines the name for readers
			addNumber(a, sumAttributes[phase].time, s.times[phase])
			addNumber(a, sumAttributes[phase].times, s.stretches[phase])
		}
	}
	if s.openPhase != netNone {
		net.phaseRegion(s.openPhase)
		a.String(AttrOpenPhase, net.defs.stringRef(netPhases[s.openPhase].name))
		a.Uint64(AttrOpenTime, s.openTime)
	}
	if s.longest > 0 {
		a.Uint64(AttrLongest, s.longest)
		a.String(AttrLongestPhase, net.defs.stringRef(netPhases[s.longestPhase].name))
		addNumber32(a, AttrLongestOn, uint32(s.longestChannel))
	}
	return a
}

func addNumber32(a *otf2.AttributeList, ref otf2.AttributeRef, n uint32) {
	if n != 0 {
		a.Uint32(ref, n)
	}
}

// addNumber adds a number that is not 0.
func addNumber(a *otf2.AttributeList, ref otf2.AttributeRef, n uint64) {
	if n != 0 {
		a.Uint64(ref, n)
	}
}
