// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// What an operation's transfers say of the links and the GPU that carried them. Rows of networks show the oldest step
// alone; which step waited for what is seen here only, where each of them passes (docs/nccl-profiler-api.md §3.2,
// states of ProxyStep).
//
// A link is busy while at least one of the operation's transfers to a peer has been handed to the network and is not
// known to be sent.
//
// The GPU holds its transfers up from the last moment at which something came that it may have waited for, data that
// arrived or room in a buffer, until it has filled or emptied one. Where it waits for others that time is short,
// whatever it waits for and however long: what comes last is what was missing. So it needs no knowledge of the
// algorithm, and no other rank's clock.

// link is what an operation sent to one peer.
type link struct {
	peer             int32
	open             int    // transfers under way
	since            uint64 // the first of them
	busy             uint64
	bytes, transfers uint64
}

// gpuTurn is the GPU's part in the transfers of a plan on one channel, which it works on in one order.
type gpuTurn struct {
	channel uint8
	send    bool // something is sent, and received, on it
	recv    bool
	since   uint64 // the last thing came, or was done; 0: nothing yet
	held    uint64 // after the first
	steps   uint64 // buffers filled or emptied
	// The first thing that was done, and since when it might have been: before that the kernel begins.
	firstSince, first uint64
}

// linkTo finds or adds the link of an operation to a peer.
func (op *operation) linkTo(peer int32) *link {
	for _, l := range op.links {
		if l.peer == peer {
			return l
		}
	}
	l := &link{peer: peer}
	op.links = append(op.links, l)
	return l
}

// turnOn finds or adds the turn of a plan's channel.
func (p *plan) turnOn(channel uint8) *gpuTurn {
	for _, t := range p.turns {
		if t.channel == channel {
			return t
		}
	}
	t := &gpuTurn{channel: channel}
	p.turns = append(p.turns, t)
	p.grow(unsafe.Sizeof(*t))
	return t
}

// carry makes what a step of a ProxyOp is counted in, with its first one.
func (o *proxyOp) carry() {
	if o.turn != nil || o.op == nil {
		return
	}
	o.turn = o.op.plan.turnOn(o.channel)
	if o.send {
		o.link = o.op.linkTo(o.peer)
		o.turn.send = true
	} else {
		o.turn.recv = true
	}
}

// passes takes a step from its phase to the next one; netNone: it is over. bytes are those that it hands to the
// network, known if sized.
func (s *proxyStep) passes(to netPhase, t, bytes uint64, sized bool) {
	if s.op == nil {
		return
	}
	s.op.carry()
	if s.op.turn == nil {
		return
	}
	switch {
	case s.phase == netSendGPU, s.phase == netRecvGPU:
		s.op.turn.done(t)
	case to == netSendGPU, to == netRecvFlush, to == netRecvGPU:
		s.op.turn.since = max(s.op.turn.since, t)
	}
	switch {
	case s.op.link == nil:
	case to == netSend && !sized:
		s.linked = true
		s.op.link.begin(t, 0)
	case to == netSend && bytes > 0:
		s.linked = true
		s.op.link.begin(t, bytes)
	case to == netNone:
		s.leaveLink(t)
	}
}

// leaveLink takes a step off its link.
func (s *proxyStep) leaveLink(t uint64) {
	if s.linked {
		s.linked = false
		s.op.link.end(t)
	}
}

// done takes something that the GPU has done.
func (u *gpuTurn) done(t uint64) {
	u.steps++
	switch {
	case u.since == 0: // what it waited for was not seen
	case u.first == 0:
		u.firstSince, u.first = u.since, t
	case t > u.since:
		u.held += t - u.since
	}
	u.since = t
}

func (l *link) begin(t, bytes uint64) {
	if l.open == 0 {
		l.since = t
	}
	l.open++
	l.bytes += bytes
	l.transfers++
}

func (l *link) end(t uint64) {
	if l.open--; l.open == 0 && t > l.since {
		l.busy += t - l.since
	}
}

// ways is 2 where the network brings what the GPU works on, and takes what comes of it. Else the rest of it may go a
// way that nobody sees, and so may be what it waits for.
func (u *gpuTurn) ways() uint8 {
	if u.send && u.recv {
		return 2
	}
	return 1
}

// begun is how long the GPU held the first transfer up. What came before the kernel is not the GPU's; where it is not
// known when that began, nothing is.
func (u *gpuTurn) begun(when gpuclock.Interval, source string) uint64 {
	if since := max(u.firstSince, when.Begin); source == TimingGPU && u.first > since {
		return u.first - since
	}
	return 0
}

// heldMost is the turn on which the GPU held transfers up longest, for how long, and how much of that was before it had
// done anything; nil if it has none. Channels work side by side; those that say more come first.
func (p *plan) heldMost(when gpuclock.Interval, source string) (most *gpuTurn, ns, first uint64) {
	for _, u := range p.turns {
		begun := u.begun(when, source)
		if held := begun + u.held; most == nil || u.ways() > most.ways() || u.ways() == most.ways() && held > ns {
			most, ns, first = u, held, begun
		}
	}
	return most, ns, first
}

// turnAttributes tell of the GPU's part in a plan's transfers.
func (p *plan) turnAttributes(a *otf2.AttributeList, when gpuclock.Interval, source string) {
	if u, held, first := p.heldMost(when, source); u != nil {
		a.Uint64(AttrGPUHeld, held)
		a.Uint64(AttrGPUHeldFirst, first)
		a.Uint64(AttrGPUSteps, u.steps)
		a.Uint8(AttrGPUWays, u.ways())
	}
}

// busiest is the link that was busy longest, of equal ones that to the lowest rank; nil if nothing was sent.
func (op *operation) busiest() (most *link) {
	for _, l := range op.links {
		if l.transfers > 0 && (most == nil || l.busy > most.busy || l.busy == most.busy && l.peer < most.peer) {
			most = l
		}
	}
	return most
}

// linkAttributes tell of the link that an operation kept busy longest.
func (op *operation) linkAttributes(a *otf2.AttributeList) {
	l := op.busiest()
	if l == nil || l.peer < 0 {
		return
	}
	a.Uint32(AttrLinkPeer, uint32(l.peer))
	a.Uint64(AttrLinkBusy, l.busy)
	a.Uint64(AttrLinkBytes, l.bytes)
	a.Uint64(AttrLinkTransfers, l.transfers)
}
