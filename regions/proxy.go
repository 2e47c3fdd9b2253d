// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// ProxyOp and ProxyStep: transfers, their bytes and their ends. docs/nccl-profiler-api.md §3.4 says which of them stop,
// and which start again.

// proxyOp is an open ProxyOp event: one channel's network traffic with one peer for an operation. ProxyOps of
// transports other than the network have no event after their begin (docs/nccl-profiler-api.md §3.4, 10).
type proxyOp struct {
	handle, parent uint64
	rank           *netRank
	op             *operation // nil if unknown, written already, or of another process
	channel        uint8
	peer           int32
	send           bool
	alive          bool         // it has had a state or a step
	steps          []*proxyStep // open
	sent           uint64       // API v1 … v3: bytes so far, by its states
	unsized        uint64       // transfers without a size in their own states
	carriers       carriers

	older, newer *proxyOp
}

// proxyStep is an open ProxyStep event: one transfer.
type proxyStep struct {
	handle uint64
	op     *proxyOp // nil if unknown
	rank   *netRank
	number int32
	qp     int32 // queue pair, if the network plugin reported it
	hasQP  bool
	phase  netPhase
	since  uint64 // when the phase began
	put    uint64 // matching id of its RmaPut, 0 if there is none
	bytes  int64  // its bytes that are counted as in flight
	linked bool   // it keeps the link of its ProxyOp busy

	side       *netSide // nil before its first phase
	prev, next *proxyStep
}

// stepsAtOnce is NCCL_STEPS: a step begins when the one stepsAtOnce before it has ended.
const stepsAtOnce = 8

func (net *network) startProxyOp(th *thread, t uint64, r *shm.Record) {
	n := net.netOf(r)
	if n == nil {
		net.countOddity(oddForeign)
		return
	}
	n.carriedBy(th)
	if net.proxies[r.Handle] != nil {
		return // handles are never used twice
	}
	if n.ops >= maxProxyOps {
		net.countOddity(oddForgottenEvent)
		net.endOp(n.oldest, t)
	}
	o := &proxyOp{handle: r.Handle, parent: r.Arg, rank: n, channel: r.Channel, peer: r.Peer,
		send: r.Flags&shm.FlagSend != 0, older: n.newest}
	if n.newest != nil {
		n.newest.newer = o
	} else {
		n.oldest = o
	}
	n.newest = o
	n.ops++
	net.proxies[r.Handle] = o
	if o.op = net.ops.byHandle[r.Arg]; o.op != nil {
		p := o.op.plan
		p.net.proxies = append(p.net.proxies, o)
		p.countBytes(unsafe.Sizeof(*o))
		if p.net.start == 0 {
			p.net.start = t
		}
		if len(p.gpu.stamps.Kernels) == 0 {
			p.completion.at = 0
		}
	}
}

// markAlive notes that a ProxyOp will stop.
func (o *proxyOp) markAlive() {
	if o.alive {
		return
	}
	o.alive = true
	if o.op != nil {
		o.op.plan.net.open++
		o.op.plan.comm.reports.quietPlans = 0
	}
}

// stateProxyOp takes the states with the progress of an operation. Up to NCCL 2.26 (API v1 … v3) they have its bytes so
// far and the states of transfers do not, so there is one put for all its transfers.
func (net *network) stateProxyOp(_ *thread, t uint64, r *shm.Record) {
	o := net.proxies[r.Handle]
	if o == nil {
		net.countOddity(oddStrayState)
		return
	}
	o.markAlive()
	if r.Flags&shm.FlagHasArg == 0 {
		return
	}
	switch r.Aux {
	case 2, 3: // ProxyOpSendTransmitted, ProxyOpSendDone
		o.sent = max(o.sent, r.Arg)
	}
}

func (net *network) stopProxyOp(_ *thread, t uint64, r *shm.Record) {
	o := net.proxies[r.Handle]
	if o == nil {
		net.countOddity(oddStrayStop)
		return
	}
	if o.sent > 0 {
		o.unsized = 0
		side := net.openSide(o.rank, true)
		if id := net.beginTransfer(side, o, o.sent, nil, t); id != 0 {
			net.completePut(side, o, id, t, false)
		}
	}
	if o.op != nil {
		o.markAlive()
		o.op.plan.net.stop = max(o.op.plan.net.stop, t)
	}
	net.endOp(o, t)
}

// endOp drops a ProxyOp: it has stopped, or is not awaited any more.
func (net *network) endOp(o *proxyOp, t uint64) {
	for len(o.steps) > 0 {
		net.countOddity(oddUnstoppedStep)
		net.endStep(o.steps[0], t, true)
	}
	net.oddities[oddUnsizedTransfer] += o.unsized
	n := o.rank
	if o.older != nil {
		o.older.newer = o.newer
	} else {
		n.oldest = o.newer
	}
	if o.newer != nil {
		o.newer.older = o.older
	} else {
		n.newest = o.older
	}
	n.ops--
	delete(net.proxies, o.handle)
	defer net.leaveSum(o, t)
	if o.op != nil {
		p := o.op.plan
		o.op = nil
		if o.alive {
			p.net.open--
		}
		net.ops.noteCompletion(p, t)
	}
}

func (net *network) startStep(_ *thread, t uint64, r *shm.Record) {
	o := net.proxies[r.Arg]
	var n *netRank
	if o != nil {
		n = o.rank // the parent has the foreign context, too (docs/nccl-profiler-api.md §6)
	} else if n = net.netOf(r); n == nil {
		net.countOddity(oddForeign)
		return
	}
	if net.steps[r.Handle] != nil {
		return
	}
	if o != nil {
		o.markAlive()
		for i := 0; i < len(o.steps); {
			switch old := o.steps[i]; {
			case old.number == r.Step:
				net.countOddity(oddRepeatedStep)
				net.endStep(old, t, true)
			case old.number <= r.Step-stepsAtOnce || len(o.steps) > 2*stepsAtOnce:
				net.countOddity(oddUnstoppedStep)
				net.endStep(old, t, true)
			default:
				i++
			}
		}
	}
	s := net.freeSteps
	if s == nil {
		s = &proxyStep{}
	} else {
		net.freeSteps = s.next
	}
	*s = proxyStep{handle: r.Handle, op: o, rank: n, number: r.Step}
	net.steps[r.Handle] = s
	if o != nil {
		o.steps = append(o.steps, s)
		return
	}
	// Without a ProxyOp nothing shows the end of a step that is never stopped.
	if gone, full := n.loose.Put(r.Handle, s); full {
		net.countOddity(oddForgottenEvent)
		net.endStep(gone, t, true)
	}
}

func (net *network) stateStep(_ *thread, t uint64, r *shm.Record) {
	s := net.steps[r.Handle]
	if s == nil {
		net.countOddity(oddStrayState)
		return
	}
	var phase netPhase
	if r.Aux < stateCount {
		phase = phaseOfState[r.Aux]
	}
	if phase == netNone || phase == s.phase {
		return
	}
	if s.side != nil && netPhases[phase].send != (s.side == &s.rank.send) {
		net.countOddity(oddStrayState)
		return
	}
	sized := r.Flags&shm.FlagHasArg != 0 // API v4 and later
	s.enterPhase(phase, t, r.Arg, sized)
	net.sumStep(s, t)
	s.phase, s.since = phase, t
	if s.op != nil && s.op.op != nil {
		s.op.op.net.lastPhase = netPhases[phase].name
	}
	side := s.side
	if side == nil {
		side = net.openSide(s.rank, netPhases[phase].send)
		if side.loc == nil {
			return // its communicator is not known yet
		}
		if side.steps >= maxSteps {
			net.countOddity(oddForgottenEvent)
			net.endStep(side.head, t, true)
		}
		side.addStep(s)
		if net.opts.NetSums {
			net.sumOf(s.op, side).steps++
		}
	}
	if side.head == s {
		net.followOldest(side, t)
	}
	switch {
	case phase == netRecvFlush && sized:
		net.counts[netRecvBytes] += r.Arg
		if net.opts.NetSums {
			net.sumOf(s.op, side).addArrival(r.Arg)
		}
		net.inFlight(side, s, t, r.Arg)
	case phase == netSend && s.put == 0:
		switch {
		case s.op == nil:
			net.countOddity(oddUnplacedTransfer)
		case sized:
			if s.put = net.beginTransfer(side, s.op, r.Arg, s, t); s.put != 0 {
				net.inFlight(side, s, t, r.Arg)
			}
		default:
			s.op.unsized++
		}
	}
}

func (net *network) stopStep(_ *thread, t uint64, r *shm.Record) {
	s := net.steps[r.Handle]
	if s == nil {
		net.countOddity(oddStrayStop)
		return
	}
	net.endStep(s, t, false)
}

// endStep ends a transfer, and the row follows the next one; unfinished if it was not stopped.
func (net *network) endStep(s *proxyStep, t uint64, unfinished bool) {
	delete(net.steps, s.handle)
	if unfinished {
		s.leaveLink(t)
	} else {
		s.enterPhase(netNone, t, 0, false)
		net.sumStep(s, t)
	}
	if o := s.op; o != nil {
		for i, x := range o.steps {
			if x == s {
				o.steps = append(o.steps[:i], o.steps[i+1:]...)
				break
			}
		}
	} else {
		s.rank.loose.Remove(s.handle)
	}
	if side := s.side; side != nil {
		if s.put != 0 {
			net.completePut(side, s.op, s.put, t, unfinished)
		}
		net.inFlight(side, s, t, 0)
		first := side.head == s
		side.removeStep(s)
		if first {
			net.followOldest(side, t)
		}
		net.leaveLoose(s, side, t)
	}
	*s = proxyStep{next: net.freeSteps}
	net.freeSteps = s
}

// beginTransfer writes a transfer that is handed to the network, and returns the id for its end; 0 if nothing was
// written.
func (net *network) beginTransfer(side *netSide, o *proxyOp, bytes uint64, s *proxyStep, t uint64) uint64 {
	c := o.rank.comm
	switch {
	case bytes == 0:
		net.counts[netEmpty]++
		return 0
	case side.loc == nil || o.peer < 0 || o.peer >= maxRank || c != nil && c.NRanks != 0 && int(o.peer) >= c.NRanks:
		net.countOddity(oddUnplacedTransfer)
		return 0
	}
	net.counts[netPuts]++
	net.counts[netPutBytes] += bytes
	net.flushPolls(o.rank)
	net.writePhaseBegin(side)
	if net.opts.NetSums {
		return net.sumPut(side, o, bytes, t)
	}
	a := net.emptyAttributes()
	a.Uint64(AttrParentID, o.parent)
	a.Uint32(AttrChannel, uint32(o.channel))
	if s != nil {
		a.Uint32(AttrStep, uint32(s.number))
		if s.hasQP {
			a.Uint32(AttrQP, uint32(s.qp))
		}
	}
	side.loc.matching++
	net.keepError(side.loc.w.RmaPut(side.loc.raiseTime(t), a, net.windowOf(o.rank, o.peer), uint32(o.peer), bytes,
		side.loc.matching))
	return side.loc.matching
}

func (net *network) completePut(side *netSide, o *proxyOp, id, t uint64, unfinished bool) {
	net.flushPolls(side.rank)
	net.writePhaseBegin(side)
	if net.opts.NetSums {
		net.sumComplete(side, o, t)
		return
	}
	var a *otf2.AttributeList
	if unfinished {
		a = net.emptyAttributes()
		a.Uint8(AttrUnfinished, 1)
	}
	net.keepError(side.loc.w.RmaOpCompleteNonBlocking(side.loc.raiseTime(t), a, otf2.RmaWinRef(side.rank.window), id))
}
