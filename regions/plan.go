// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"slices"

	"ncclotf2/plugin/shm"
)

// plan is one entry of a communicator rank's issue order: a Group event, which is one kernel launch
// with all operations in it; or a call for which NCCL reported nothing more.
type plan struct {
	comm   *commRank
	handle uint64
	ops    []*operation
	graph  bool // replayed from a captured graph

	start, stop uint64 // enqueueing on the CPU
	stopped     bool
	launch      *launch // if it happened on the plan's thread, just before
	callOnly    bool

	tasksOpen   int
	kernelsOpen int
	proxiesOpen int
	proxies     []uint64      // handles of all its ProxyOps
	unstamped   int           // KernelCh that ended without a stamp
	spans       []channelSpan // of the GPU, in its clock
	lastReport  uint64        // time of the last KernelCh callback
	netStart    uint64        // network activity: first ProxyOp start … last ProxyOp stop
	netStop     uint64
	completeAt  uint64 // when the last child ended; 0 before
	incomplete  bool   // closed by a limit or at the end
}

// channelSpan is a pair of GPU stamps.
type channelSpan struct {
	channel    uint8
	begin, end uint64
}

// operation is a Coll or P2p event, or a call that got none.
type operation struct {
	handle, parent uint64
	plan           *plan
	call           *call // nil if NCCL named none
	p2p            bool
	task           bool // there was a Coll or P2p event
	name           string
	seq, count     uint64
	datatype       string
	algo, proto    string
	channels       uint32
	warps          uint32
	root, peer     int32
	send, recv     uint64 // buffer addresses
	tag            uint64
	stopped        bool
	kernelsDone    int
}

// kernelsDue is the number of KernelCh events that NCCL makes for the operation: one a channel, none
// for messages to oneself (their traffic has no proxy work; notes on the API, §7.4).
func (o *operation) kernelsDue() int {
	if o.p2p && int(o.peer) == o.plan.comm.Rank {
		return 0
	}
	return int(o.channels)
}

func (m *Model) startGroup(th *thread, t uint64, r *shm.Record) {
	comm := m.comm(r.Aux)
	if comm == nil {
		m.oddity(OddForeign)
		return
	}
	p := &plan{comm: comm, handle: r.Handle, start: t}
	if th.launch != nil && th.launch.comm == comm {
		p.launch = th.launch
	}
	th.launch = nil
	m.plans[r.Handle] = p
	m.enqueue(comm, p, t)
}

func (m *Model) enqueue(c *commRank, p *plan, t uint64) {
	if len(c.queue) == 0 {
		c.headAt = t
	}
	c.queue = append(c.queue, p)
}

func (m *Model) stopGroup(th *thread, t uint64, r *shm.Record) {
	p := m.plans[r.Handle]
	if p == nil || p.stopped {
		m.oddity(OddStrayStop)
		return
	}
	delete(m.plans, r.Handle)
	p.stop, p.stopped = t, true

	// What earlier groups called on this communicator and no plan has taken up will get none.
	newest := int64(0)
	for _, op := range p.ops {
		if op.call != nil && !op.call.graph {
			newest = max(newest, op.call.groupNumber())
		}
	}
	m.resolveCalls(p.comm, newest)

	if th.group == nil && th.loc == nil {
		m.writeEnqueue(p)
	}
	m.progress(p, t)
}

func (m *Model) startTask(_ *thread, t uint64, r *shm.Record) {
	comm := m.comm(r.Aux)
	if comm == nil {
		m.oddity(OddForeign)
		return
	}
	p := m.plans[r.ParentGroup]
	if p == nil { // no Group event: the settings or the memory did not allow it
		p = &plan{comm: comm, start: t, stopped: true, stop: t}
		m.enqueue(comm, p, t)
	}
	op := &operation{
		handle: r.Handle, parent: r.Arg, plan: p, call: m.calls[r.Arg], p2p: r.Type == shm.EventP2p, task: true,
		name: r.Func, seq: r.Seq, count: r.Count, datatype: r.Datatype, algo: r.Algo, proto: r.Proto,
		channels: uint32(r.NChannels), warps: uint32(r.NWarps), root: r.Root, peer: r.Peer,
		send: r.SendBuff, recv: r.RecvBuff, tag: r.UserTag,
	}
	if op.call != nil {
		if op.call.graph {
			p.graph = true
		} else {
			comm.calls = slices.DeleteFunc(comm.calls, func(c *call) bool { return c == op.call })
			delete(m.calls, op.call.handle)
		}
	}
	p.ops = append(p.ops, op)
	p.tasksOpen++
	m.operations[r.Handle] = op
}

func (m *Model) stopTask(_ *thread, t uint64, r *shm.Record) {
	op := m.operations[r.Handle]
	if op == nil || op.stopped {
		m.oddity(OddStrayStop)
		return
	}
	op.stopped = true
	op.plan.tasksOpen--
	op.plan.stop = max(op.plan.stop, t)
	m.progress(op.plan, t)
}

func (m *Model) startProxyOp(_ *thread, t uint64, r *shm.Record) {
	op := m.operations[r.Arg]
	if op == nil {
		return // its operation is written already, or runs in another process (PXN)
	}
	p := op.plan
	p.proxiesOpen++
	p.proxies = append(p.proxies, r.Handle)
	if p.netStart == 0 {
		p.netStart = t
	}
	m.proxies[r.Handle] = p
}

func (m *Model) stopProxyOp(_ *thread, t uint64, r *shm.Record) {
	p := m.proxies[r.Handle]
	if p == nil {
		return
	}
	delete(m.proxies, r.Handle)
	p.proxiesOpen--
	p.netStop = max(p.netStop, t)
	m.progress(p, t)
}

// resolveCalls turns calls of groups before the given one that no plan took up into operations of
// their own: broadcasts since 2.29, symmetric kernels, copy-engine collectives. They stand behind the
// plans of their own group and before those of later ones, the same on all members.
func (m *Model) resolveCalls(c *commRank, before int64) {
	at := len(c.queue)
	for at > 0 && before != noGroup && !c.queue[at-1].stopped {
		at--
	}
	if at > 0 && before != noGroup {
		at-- // before the plan that just ended
	}
	rest := c.calls[:0]
	for _, call := range c.calls {
		if call.groupNumber() >= before || before != noGroup && !call.over() {
			rest = append(rest, call)
			continue
		}
		delete(m.calls, call.handle)
		if call.p2p { // a message to oneself with one buffer: dropped by NCCL (notes on the API, §4.3)
			m.oddity(OddDroppedMessage)
			continue
		}
		stop := call.stop
		if call.group != nil && call.group.stopped {
			stop = call.group.stop
		}
		p := &plan{comm: c, start: call.start, stop: stop, stopped: true, callOnly: true, completeAt: stop}
		p.ops = []*operation{{
			parent: call.handle, plan: p, call: call, name: call.name, count: call.count,
			datatype: call.datatype, root: call.root, tag: call.tag, stopped: true,
		}}
		if len(c.queue) == 0 {
			c.headAt = stop
		}
		c.queue = slices.Insert(c.queue, at, p)
		at++
	}
	clear(c.calls[len(rest):])
	c.calls = rest
}

// progress notes when the last child of a plan has ended. Proxy work is waited for only where no
// kernels tell when the plan was over: some of NCCL's proxy operations never stop (notes on the API,
// §3.4, 10).
func (m *Model) progress(p *plan, t uint64) {
	if p.completeAt != 0 || !p.stopped || p.tasksOpen > 0 || p.kernelsOpen > 0 {
		return
	}
	due, missing := 0, 0
	if m.Records(shm.EventKernelCh) && p.comm.kernelTimeouts < maxKernelTimeouts {
		for _, op := range p.ops {
			due += op.kernelsDue()
			missing += max(0, op.kernelsDue()-op.kernelsDone)
		}
	}
	if missing > 0 && (p.comm.kernelsSeen || len(p.comm.queue) < maxUnseen) || due == 0 && p.proxiesOpen > 0 {
		return
	}
	p.completeAt = t
}

// maxUnseen and maxQueue bound the memory of what waits: for a communicator rank that has never had a
// KernelCh event, and for any.
const (
	maxUnseen = 4096
	maxQueue  = 65536
)

// maxKernelTimeouts is after how many plans in a row without any KernelCh a communicator rank is no
// longer expected to have them.
const maxKernelTimeouts = 3

// overdue tells whether a plan at the head of the queue has waited long enough for children that
// have not begun: as long as the limit says, or until a later plan of the same communicator, whose
// kernels run after its own, has been complete for a while.
func (m *Model) overdue(c *commRank, p *plan, now uint64) bool {
	if !p.stopped || p.kernelsOpen > 0 {
		return false
	}
	if now > max(p.stop, c.headAt)+m.opts.OperationLimit || len(c.queue) > maxQueue {
		return true
	}
	for _, later := range c.queue[1:] {
		if !later.callOnly && later.completeAt != 0 && len(later.spans) > 0 {
			return now > later.completeAt+m.opts.GPUHold/2
		}
	}
	return false
}

// How far drain goes.
type drainMode int

const (
	drainDue      drainMode = iota // complete, and held long enough for the GPU's clock
	drainComplete                  // complete
	drainAll                       // everything: nothing more will come
)

// drain writes the plans at the head of a communicator rank's queue.
func (m *Model) drain(c *commRank, now uint64, mode drainMode) {
	if len(c.queue) > 0 {
		c.gpu.fit(mode != drainDue)
	}
	for len(c.queue) > 0 {
		p := c.queue[0]
		m.progress(p, now)
		if p.completeAt == 0 {
			if mode != drainAll && !m.overdue(c, p, now) {
				return
			}
			p.incomplete = true
			p.completeAt = now
			if len(p.spans) == 0 {
				c.kernelTimeouts++
			}
		} else if mode == drainDue && len(p.spans) > 0 && now < p.completeAt+m.opts.GPUHold {
			return
		}
		c.queue[0] = nil
		c.queue = c.queue[1:]
		if len(p.spans) > 0 {
			c.kernelTimeouts = 0
		}
		m.writePlan(c, p, now)
		for _, op := range p.ops {
			delete(m.operations, op.handle)
		}
		for _, h := range p.proxies {
			delete(m.proxies, h)
		}
		delete(m.plans, p.handle)
		c.headAt = max(c.headAt, min(now, p.completeAt))
	}
}
