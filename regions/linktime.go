// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// How links and the GPU carried an operation's transfers. Rows of networks show the oldest step alone; the waits of
// each step are known only here, from the states of ProxyStep (docs/nccl-profiler-api.md §3.2).
//
// A link is busy while at least one of the operation's transfers to a peer has been handed to the network and is not
// known to be sent.
//
// The GPU holds transfers up from the last event that it may have waited for (data that arrived, or a free buffer)
// until it has filled or emptied a buffer. If the GPU was itself waiting for others, this time is short, because the
// last event is the one that it waited for. The measure needs neither the algorithm nor another rank's clock.

// planTraffic is the network's part of a plan.
type planTraffic struct {
	open        int        // ProxyOps that are under way, of the network transport
	proxies     []*proxyOp // all ProxyOps
	turns       []*gpuTurn // of the GPU, by channel
	sums        []*netSum  // of transfers, where they are summed up
	start, stop uint64     // first ProxyOp start … last ProxyOp stop
}

// operationTraffic is the network's part of an operation.
type operationTraffic struct {
	lastPhase string
	links     []*link
}

// carriers are what the transfers of a ProxyOp are counted for: nil before its first step. Without an operation only
// the sum is known.
type carriers struct {
	link *link // of what it sends
	turn *gpuTurn
	sum  *netSum
}

// link is the traffic of an operation to one peer.
type link struct {
	peer             int32
	open             int    // transfers under way
	since            uint64 // begin of the first of them
	busy             uint64
	bytes, transfers uint64
}

// gpuTurn is the GPU's part in the transfers of a plan on one channel, which it processes in order.
type gpuTurn struct {
	channel uint8
	send    bool // the channel sends, and receives
	recv    bool
	since   uint64 // time of the last arrival or step; 0: none yet
	held    uint64 // time held up after the first step
	steps   uint64 // buffers filled or emptied
	last    uint64 // when the GPU was last given data to take, or room to fill
	// The first step of the GPU, and the earliest time at which it could have happened if the kernel ran.
	firstSince, first uint64
}

// linkTo finds or adds the link of an operation to a peer.
func (op *operation) linkTo(peer int32) *link {
	for _, l := range op.net.links {
		if l.peer == peer {
			return l
		}
	}
	l := &link{peer: peer}
	op.net.links = append(op.net.links, l)
	return l
}

// turnOn finds or adds the gpuTurn of a plan's channel.
func (p *plan) turnOn(channel uint8) *gpuTurn {
	for _, t := range p.net.turns {
		if t.channel == channel {
			return t
		}
	}
	t := &gpuTurn{channel: channel}
	p.net.turns = append(p.net.turns, t)
	p.countBytes(unsafe.Sizeof(*t))
	return t
}

// assignCarriers assigns a ProxyOp's link and gpuTurn at its first step.
func (o *proxyOp) assignCarriers() {
	if o.carriers.turn != nil || o.op == nil {
		return
	}
	o.carriers.turn = o.op.plan.turnOn(o.channel)
	if o.send {
		o.carriers.link = o.op.linkTo(o.peer)
		o.carriers.turn.send = true
	} else {
		o.carriers.turn.recv = true
	}
}

// enterPhase moves a step from its phase to the next one; netNone ends it. bytes are handed to the network; they are
// known if sized.
func (s *proxyStep) enterPhase(to netPhase, t, bytes uint64, sized bool) {
	if s.op == nil {
		return
	}
	s.op.assignCarriers()
	if s.op.carriers.turn == nil {
		return
	}
	if to == netSendGPU || to == netRecvGPU {
		s.op.carriers.turn.last = max(s.op.carriers.turn.last, t)
	}
	switch {
	case s.phase == netSendGPU, s.phase == netRecvGPU:
		s.op.carriers.turn.addStep(t)
	case to == netSendGPU, to == netRecvFlush, to == netRecvGPU:
		s.op.carriers.turn.since = max(s.op.carriers.turn.since, t)
	}
	switch {
	case s.op.carriers.link == nil:
	case to == netSend && !sized:
		s.linked = true
		s.op.carriers.link.beginTransfer(t, 0)
	case to == netSend && bytes > 0:
		s.linked = true
		s.op.carriers.link.beginTransfer(t, bytes)
	case to == netNone:
		s.leaveLink(t)
	}
}

// leaveLink removes a step from its link.
func (s *proxyStep) leaveLink(t uint64) {
	if s.linked {
		s.linked = false
		s.op.carriers.link.endTransfer(t)
	}
}

// addStep takes a step of the GPU.
func (u *gpuTurn) addStep(t uint64) {
	u.steps++
	switch {
	case u.since == 0: // the event that it waited for was not recorded
	case u.first == 0:
		u.firstSince, u.first = u.since, t
	case t > u.since:
		u.held += t - u.since
	}
	u.since = t
}

func (l *link) beginTransfer(t, bytes uint64) {
	if l.open == 0 {
		l.since = t
	}
	l.open++
	l.bytes += bytes
	l.transfers++
}

func (l *link) endTransfer(t uint64) {
	if l.open--; l.open == 0 && t > l.since {
		l.busy += t - l.since
	}
}

// countDirections returns 2 if the channel both receives and sends over the network. Otherwise the GPU exchanges data
// with local peers too, and its waits for them are not recorded.
func (u *gpuTurn) countDirections() uint8 {
	if u.send && u.recv {
		return 2
	}
	return 1
}

// firstHold returns for how long the GPU held the first transfer up, counted from the kernel's begin; 0 if that is not
// known.
func (u *gpuTurn) firstHold(when gpuclock.Interval, source string) uint64 {
	if since := max(u.firstSince, when.Begin); source == TimingGPU && u.first > since {
		return u.first - since
	}
	return 0
}

// heldMost returns the channel on which the GPU held transfers up longest, for how long, and the part before its first
// step; nil if there is none. Channels run side by side; those with ways 2 precede.
func (p *plan) heldMost(when gpuclock.Interval, source string) (most *gpuTurn, ns, first uint64) {
	for _, u := range p.net.turns {
		begun := u.firstHold(when, source)
		if held := begun + u.held; most == nil || u.countDirections() > most.countDirections() ||
			u.countDirections() == most.countDirections() && held > ns {
			most, ns, first = u, held, begun
		}
	}
	return most, ns, first
}

// turnAttributes add the GPU's part in a plan's transfers.
func (p *plan) turnAttributes(a *otf2.AttributeList, when gpuclock.Interval, source string) {
	if p.ops[0].addCarried(a, false) {
		return
	}
	if u, held, first := p.heldMost(when, source); u != nil {
		a.Uint64(AttrGPUHeld, held)
		a.Uint64(AttrGPUHeldFirst, first)
		a.Uint64(AttrGPUSteps, u.steps)
		a.Uint8(AttrGPUWays, u.countDirections())
	}
}

// lastGiven returns when the plan's GPU was last given data of the network to take, or room to fill, before which its
// kernel cannot have ended; 0 if it was given nothing.
func (p *plan) lastGiven() (t uint64) {
	for _, u := range p.net.turns {
		t = max(t, u.last)
	}
	return t
}

// busiestLink returns the link that was busy longest, of equal ones the one to the lowest rank; nil if nothing was
// sent.
func (op *operation) busiestLink() (most *link) {
	for _, l := range op.net.links {
		if l.transfers > 0 && (most == nil || l.busy > most.busy || l.busy == most.busy && l.peer < most.peer) {
			most = l
		}
	}
	return most
}

// linkAttributes add the link that an operation kept busy longest.
func (op *operation) linkAttributes(a *otf2.AttributeList) {
	l := op.busiestLink()
	if op.addCarried(a, true) || l == nil || l.peer < 0 {
		return
	}
	a.Uint32(AttrLinkPeer, uint32(l.peer))
	a.Uint64(AttrLinkBusy, l.busy)
	a.Uint64(AttrLinkBytes, l.bytes)
	a.Uint64(AttrLinkTransfers, l.transfers)
}
