// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Operations from begin to end: which plan, call and launch belong together, the order in which the communicator's
// members see them, when an operation is complete, and how long to wait. Facts: docs/nccl-profiler-api.md §3.2 (who
// begins what), §3.4 (what never ends), §3.5 (groups and graphs), §7.4 (kernels that are not counted).

// plan is one entry of a communicator rank's issue order: a Group event, which is one kernel launch with all its
// operations; or a call for which NCCL reported nothing more.
type plan struct {
	comm   *commRank
	handle uint64
	ops    []*operation
	gone   *gone // lost operations before ops; nil: none
	graph  bool  // replayed from a captured graph

	start, stop uint64 // enqueueing on the CPU
	stopped     bool
	launch      *launch // launch of its kernel, nil if not known
	deferred    bool    // a callback of the stream reported the plan, later than its launch
	callOnly    bool
	captureOnly bool                 // captured into a graph, not run
	measurement otf2.MeasurementMode // this entry is a switch of recording, not a plan

	tasksOpen   int
	kernelsOpen int
	proxiesOpen int           // ProxyOps that are under way, of the network transport
	proxies     []*proxyOp    // all its ProxyOps
	turns       []*gpuTurn    // of the GPU, by channel
	netSums     []*netSum     // of its transfers, where they are summed up
	stamps      gpuclock.Plan // of the GPU
	shares      []kernelShare // of its kernels, if they are drawn
	netStart    uint64        // network activity: first ProxyOp start … last ProxyOp stop
	netStop     uint64
	links       cuda.Links // to its kernels, by CUPTI
	difference  uint64     // ns by which the GPU's sources differ on its times; 0 if they agree
	completeAt  uint64     // when the last child ended; 0 before
	incomplete  bool       // ended by a limit or at the end

	bytes   int    // memory of the plan with its operations
	written bool   // it has been written
	floor   uint64 // when the previous plan had been enqueued
	counted int    // number of its operations counted as outstanding

	// The first of each: most plans have no more, and an operation keeps its plan in any case.
	own         operation
	firstOp     [1]*operation
	firstKernel [1]gpuclock.Kernel
}

// kernelShare is what is drawn of one of a plan's kernels besides its stamps.
type kernelShare struct {
	kernel int // index into plan.stamps.Kernels
	op     *operation
	phases []kernelPhase
}

// operation is a Coll or P2p event, or a call without one.
type operation struct {
	handle, parent uint64
	plan           *plan
	index          int32 // in the plan
	call           *call // nil if NCCL named none
	p2p            bool
	task           bool // there was a Coll, P2p or CeColl event
	copied         bool // CeColl: by copy engines
	sym            bool // by a symmetric kernel
	name           string
	seq, count     uint64
	datatype       string
	algo, proto    string
	channels       uint32
	anyChannels    bool // their number is not known
	warps          uint32
	root, peer     int32
	send, recv     uint64 // buffer addresses
	tag, stream    uint64
	kernelVariant  string
	syncStrategy   string
	batches        uint32
	stopped        bool
	kernelsDone    int
	imported       *Imported
	lastNet        string // last phase of its network traffic
	links          []*link
}

// operations holds the operations of the process that have begun and are not written yet, with their calls and kernels.
// Each communicator rank queues them in issue order.
type operations struct {
	*board
	ranks  *ranks
	cuda   *cuda.Recorder
	timing *timing
	writer *planWriter

	// By handle, as long as an event may refer to them.
	calls    map[uint64]*call // also until they are stopped
	plans    map[uint64]*plan
	byHandle map[uint64]*operation
	kernels  bounded.Map[*kernel]
	phases   bounded.Map[*kernel] // KernelPhase: the kernel it is part of
	reports  map[uint64]*Imported // times of operations to come, see Import

	relieveAt int // memory (bytes) of the queues from which on relief is due
}

func newOperations(b *board, rs *ranks, c *cuda.Recorder, t *timing, w *planWriter) *operations {
	return &operations{
		board: b, ranks: rs, cuda: c, timing: t, writer: w,
		calls: make(map[uint64]*call), plans: make(map[uint64]*plan), byHandle: make(map[uint64]*operation),
		kernels: bounded.New[*kernel](maxKernels), phases: bounded.New[*kernel](maxLaunches),
		relieveAt: maxHeld + mostRelief(),
	}
}

// forget drops what is kept of a communicator rank that is gone.
func (ops *operations) forget(c *commRank) {
	for call := range c.calls.allCalls() {
		ops.dropCall(call)
	}
	for handle := range c.captured.Handles() {
		ops.dropCall(c.captured.Get(handle))
	}
	ops.kernels.RemoveFunc(func(_ uint64, k *kernel) bool { return k.comm == c })
	ops.phases.RemoveFunc(func(_ uint64, k *kernel) bool { return k.comm == c })
}

// kernelsDue returns the number of KernelCh events that NCCL makes for the operation: one per channel; none for
// messages to oneself (their traffic has no proxy work; docs/nccl-profiler-api.md §7.4) and for symmetric kernels in
// graphs (§3.6); at least one if the number of channels is not known.
func (op *operation) kernelsDue() int {
	if op.p2p && int(op.peer) == op.plan.comm.Rank || op.sym && op.plan.graph {
		return 0
	}
	if op.anyChannels {
		return 1
	}
	return int(op.channels)
}

func (ops *operations) startGroup(th *thread, t uint64, r *shm.Record) {
	comm := ops.ranks.comm(r.Aux)
	if comm == nil {
		ops.oddity(oddForeign)
		return
	}
	p := &plan{comm: comm, handle: r.Handle, start: t}
	if th.launch != nil && th.launch.comm == comm {
		p.launch = th.launch
		p.launch.Begin(p)
	}
	th.launch = nil
	ops.plans[r.Handle] = p
	comm.addPlan(p, t)
}

func (ops *operations) stopGroup(th *thread, t uint64, r *shm.Record) {
	p := ops.plans[r.Handle]
	if p == nil || p.stopped {
		ops.oddity(oddStrayStop)
		return
	}
	delete(ops.plans, r.Handle)
	if th.group == nil && (th.loc == nil || !ops.callsReported()) && p.comm.announced {
		ops.writeEnqueue(p, t)
	}
	ops.endPlan(p, t)
}

// endPlan notes that a plan has been enqueued.
func (ops *operations) endPlan(p *plan, t uint64) {
	p.stop, p.stopped = t, true
	p.comm.enqueued = max(p.comm.enqueued, t)
	if ops.timing.mayPart(p) {
		p.comm.stamps.Suspect(p.stamps.Number)
	}

	// Calls of earlier groups on this communicator without a plan will get none.
	ops.resolveCalls(p.comm, p.newest())
	switch {
	case p.captureOnly || p.launch != nil:
	case p.graph:
		ops.cuda.Replayed(p)
	default:
		p.findLaunch()
	}
	ops.progress(p, t)
}

// findLaunch finds the launch of a plan that a callback of the stream reported, as NCCL does while graphs may be
// running (docs/nccl-profiler-api.md §3.5): plans of a group come in the order of its launches.
func (p *plan) findLaunch() {
	if len(p.ops) == 0 || p.ops[0].call == nil || p.ops[0].call.group == nil {
		return
	}
	for _, l := range p.ops[0].call.group.launches {
		if l.comm == p.comm && !l.HasPlan() && l.Start < p.start {
			p.launch, p.deferred = l, true
			l.Begin(p)
			return
		}
	}
}

// countBytes counts the memory of a plan in a queue.
func (p *plan) countBytes(bytes uintptr) {
	if p.written {
		return
	}
	p.bytes += int(bytes)
	p.comm.bytes += int(bytes)
	*p.comm.allBytes += int(bytes)
}

// Memory of a plan with its first operation, and of each further one. A group includes its first call and its first
// launch.
const (
	planBytes      = unsafe.Sizeof(plan{}) + unsafe.Sizeof(groupCall{})
	operationBytes = unsafe.Sizeof(operation{}) + unsafe.Sizeof(call{})
)

// add adds a copy of an operation to the plan, and returns the copy.
func (p *plan) add(op *operation) (added *operation) {
	if p.ops == nil {
		p.ops, added = p.firstOp[:0], &p.own
		p.countBytes(planBytes)
	} else {
		added = new(operation)
		p.countBytes(operationBytes)
	}
	*added = *op
	p.ops = append(p.ops, added)
	return added
}

func (ops *operations) startTask(th *thread, t uint64, r *shm.Record) {
	comm := ops.ranks.comm(r.Aux)
	if comm == nil {
		ops.oddity(oddForeign)
		ops.loseUndrawn(r.Type)
		return
	}
	p := ops.plans[r.ParentGroup]
	if p == nil { // no Group event: disabled by the settings, or lost
		p = &plan{comm: comm, start: t, stopped: true, stop: t}
		comm.addPlan(p, t)
	}
	op := p.add(&operation{
		handle: r.Handle, parent: r.Arg, plan: p, index: int32(len(p.ops)), call: ops.takeCall(r.Arg),
		p2p: r.Type == shm.EventP2p, task: true,
		name: r.Func, seq: r.Seq, count: r.Count, datatype: r.Datatype, algo: r.Algo, proto: r.Proto,
		channels: uint32(r.NChannels), warps: uint32(r.NWarps), root: r.Root, peer: r.Peer,
		send: r.SendBuff, recv: r.RecvBuff, tag: r.UserTag, kernelVariant: r.KernelVariant,
		sym: r.Flags&shm.FlagSym != 0, anyChannels: r.Flags&shm.FlagUnknownChannels != 0,
	})
	if op.p2p && op.name != "Send" { // NCCL reports one buffer
		op.send, op.recv = 0, op.send
	}
	if op.call != nil && op.call.graph || r.Arg&shm.CapturedBit != 0 && ops.process.APIVersion != 0 {
		p.graph = true
		// A replay comes from the driver's thread, and without a launch.
		if !p.captureOnly && (p.launch != nil || th.group != nil && th.group.graph) {
			p.captureOnly = true
			ops.captureOnly(comm, t)
		}
	}
	if !p.captureOnly {
		comm.begun = max(comm.begun, t)
	}
	ops.takeImported(op)
	p.tasksOpen++
	ops.byHandle[r.Handle] = op
}

func (ops *operations) stopTask(_ *thread, t uint64, r *shm.Record) {
	op := ops.byHandle[r.Handle]
	if op == nil || op.stopped {
		ops.oddity(oddStrayStop)
		return
	}
	op.stopped = true
	op.plan.tasksOpen--
	op.plan.stop = max(op.plan.stop, t)
	ops.progress(op.plan, t)
}

// resolveCalls turns calls of groups before the given one that no plan took up into operations of their own: broadcasts
// since 2.29, symmetric kernels, copy-engine collectives. They follow the plans of their own group and precede those of
// later ones, as on all members.
func (ops *operations) resolveCalls(c *commRank, before int64) {
	place := len(c.queue)
	for place > 0 && before != noGroup && (!c.queue[place-1].stopped || c.queue[place-1].measurement != 0) {
		place--
	}
	if place > 0 && before != noGroup {
		place-- // before the plan that just ended
	}
	if before == noGroup && place > 0 && c.queue[place-1].measurement == otf2.MeasurementOff {
		place--
	}

	var alone []*plan
	for call := range c.calls.callsBefore(before) {
		if before != noGroup && !call.hasReturned() {
			continue
		}
		c.calls.remove(call)
		ops.dropCall(call)
		if call.p2p { // a message to oneself with one buffer: dropped by NCCL (docs/nccl-profiler-api.md §4.3)
			ops.oddity(oddDroppedMessage)
			continue
		}
		stop := call.stop
		if call.group != nil && call.group.stopped {
			stop = call.group.stop
		}
		p := &plan{comm: c, start: call.start, stop: stop, stopped: true, callOnly: true, completeAt: stop}
		p.add(&operation{
			parent: call.handle, plan: p, call: call, name: call.name, count: call.count,
			datatype: call.datatype, root: call.root, tag: call.tag, stopped: true,
		})
		alone = append(alone, p)
	}
	if len(alone) == 0 {
		return
	}
	if len(c.queue) == 0 {
		c.headAt = alone[0].stop
	}
	if before == noGroup {
		ops.mergeAlone(c, alone, place) // the last plans have not been seen to stop
		return
	}
	c.queue = slices.Insert(c.queue, place, alone...)
	places := make([]int, len(alone))
	for i := range places {
		places[i] = place + i
	}
	ops.timing.countsAlone(c, places)
}

// mergeAlone inserts calls that have become operations of their own into a queue: each before the first plan with
// operations of a later group, at the latest before the plan at index last.
func (ops *operations) mergeAlone(c *commRank, alone []*plan, last int) {
	slices.SortStableFunc(alone, func(a, b *plan) int { return cmp.Compare(a.newest(), b.newest()) })
	rest := c.queue
	c.queue = make([]*plan, 0, len(rest)+len(alone))
	places := make([]int, len(alone))
	for i, p := range alone {
		for last > 0 && rest[0].newest() <= p.newest() {
			c.queue, rest = append(c.queue, rest[0]), rest[1:]
			last--
		}
		places[i] = len(c.queue)
		c.queue = append(c.queue, p)
	}
	c.queue = append(c.queue, rest...)
	ops.timing.countsAlone(c, places)
}

// progress notes when the last child of a plan has ended. Proxy work is awaited only if no kernels show the end of the
// plan: some of NCCL's proxy operations never stop (docs/nccl-profiler-api.md §3.4, 10).
func (ops *operations) progress(p *plan, t uint64) {
	if p.completeAt != 0 || !p.stopped || p.tasksOpen > 0 || p.kernelsOpen > 0 {
		return
	}
	if p.captureOnly {
		p.completeAt = t
		return
	}
	due, missing := 0, 0
	if ops.records(shm.EventKernelCh) && p.comm.kernelTimeouts < maxKernelTimeouts {
		for _, op := range p.ops {
			due += op.kernelsDue()
			missing += max(0, op.kernelsDue()-op.kernelsDone)
		}
	}
	if missing > 0 && (p.comm.kernelsSeen || len(p.comm.queue) < maxUnseen) || due == 0 && ops.awaitsNetwork(p, t) {
		return
	}
	p.completeAt = t
	ops.changes++
	ops.timing.judgeStamps(p)
	p.settleSums(t)
}

// awaitsNetwork reports whether a plan without kernel events may still have network traffic: it is under way, or has
// not begun and is not long overdue. ProxyOps without any state or step are of other transports.
func (ops *operations) awaitsNetwork(p *plan, t uint64) bool {
	if p.proxiesOpen > 0 {
		return true
	}
	return !p.comm.ending && ops.mayHaveNetwork(p) && p.netStop == 0 && p.comm.quietPlans < maxQuietPlans &&
		t < p.stop+ops.opts.gpuHold
}

// mayHaveNetwork reports whether ProxyOps of a plan would be recorded.
func (ops *operations) mayHaveNetwork(p *plan) bool {
	return ops.records(shm.EventProxyOp) && !p.callOnly && len(p.ops) > 0 && !p.ops[0].copied
}

// maxQuietPlans is the number of plans in a row without network traffic after which none is expected.
const maxQuietPlans = 3

// maxUnseen and maxQueue bound the plans that wait: of a communicator rank without any KernelCh event so far, and of
// any.
const (
	maxUnseen = 4096
	maxQueue  = 65536
)

// maxHeld bounds the memory (bytes) of complete operations that wait for a better mapping of the GPU's clock: beyond
// it, those of communicator ranks with more than their share are written at once, and counted. Together with incomplete
// ones the bound is twice as high. In between, mostRelief may come, and one group of calls, however large. Variable for
// the tests.
var maxHeld = 48 << 20

func mostRelief() int { return maxHeld / 8 }

// exceedsShare reports whether more than a bound (bytes) waits, and of this communicator rank more than its share.
func (ops *operations) exceedsShare(c *commRank, bound int) bool {
	return ops.ranks.bytes > bound && c.bytes > bound/len(ops.ranks.live)
}

// writeExcess writes complete operations if too much waits. Like everything the model writes, it depends on the records
// alone.
func (ops *operations) writeExcess(now uint64) {
	for _, c := range ops.ranks.live {
		if !c.final {
			ops.drain(c, now, drainDue)
		}
	}
	ops.relieveAt = max(maxHeld, ops.ranks.bytes) + mostRelief()
}

// maxKernelTimeouts is the number of plans in a row without any KernelCh after which a communicator rank is not
// expected to have them.
const maxKernelTimeouts = 3

// overdue reports whether a plan at the head of the queue has waited long enough for children that have not begun:
// until the limit, or until a later plan of the communicator, whose kernels run after its own, has been complete for a
// while.
func (ops *operations) overdue(c *commRank, p *plan, now uint64) bool {
	if len(c.queue) > maxQueue || len(c.queue) > 1 && ops.exceedsShare(c, 2*maxHeld) {
		return true
	}
	if !p.stopped || p.kernelsOpen > 0 {
		return false
	}
	if now > max(p.stop, c.headAt)+ops.opts.operationLimit {
		return true
	}
	for _, later := range c.queue[1:] {
		if !later.callOnly && later.completeAt != 0 && len(later.stamps.Kernels) > 0 {
			return now > later.completeAt+ops.opts.gpuHold/2
		}
	}
	return false
}

// Modes of drain.
type drainMode int

const (
	drainDue      drainMode = iota // complete, and held long enough for the GPU's clock
	drainComplete                  // complete
	drainEnded                     // everything that does not wait for CUPTI: NCCL has reported all
	drainAll                       // everything: no more records will come
)

// drain writes the plans at the head of a communicator rank's queue.
func (ops *operations) drain(c *commRank, now uint64, mode drainMode) {
	if !c.announced && mode < drainEnded {
		return // its name and rank are not known yet (API v1 … v3)
	}
	c.ending = mode >= drainEnded
	if len(c.queue) > 0 {
		c.stamps.Clock.Fit(mode != drainDue)
	}
	for len(c.queue) > 0 {
		p := c.queue[0]
		if p.measurement != 0 {
			// Plans may come that precede it, see issue.
			if mode == drainDue && len(c.queue) == 1 && p.measurement == otf2.MeasurementOff &&
				now < p.start+ops.opts.operationLimit {
				return
			}
			ops.timing.followPlans(c)
			ops.writer.writeEdge(c, p)
			ops.unqueue(c, now, p)
			continue
		}
		ops.progress(p, now)
		if p.completeAt == 0 {
			if mode < drainEnded && !ops.overdue(c, p, now) {
				return
			}
			if mode != drainAll {
				c.overtake(p)
			}
			p.incomplete = true
			p.completeAt = now
			if len(p.stamps.Kernels) == 0 {
				c.kernelTimeouts++
			}
		} else if mode == drainDue && now < p.completeAt+ops.hold(p) || (mode == drainDue || mode == drainEnded) &&
			now < p.completeAt+ops.timing.kernelHold(c, p) {
			if !ops.exceedsShare(c, maxHeld) {
				return
			}
			ops.oddities[oddShortHold] += uint64(len(p.ops))
		}
		if ops.mayHaveNetwork(p) && p.netStop == 0 {
			c.quietPlans++
		}
		if len(p.stamps.Kernels) > 0 {
			c.kernelTimeouts = 0
		}
		if len(p.stamps.Kernels) > 0 && !p.incomplete {
			c.overtaken = nil // kernels of a communicator run one after the other
		}
		ops.timing.followPlans(c)
		c.loseGone(p)
		if !p.captureOnly {
			ops.writer.writePlan(c, p, now)
		}
		if p.counted != 0 { // counted as outstanding, but it did not run
			ops.writer.metrics.endOutstanding(c, c.loc, p, c.loc.w.LastTime())
		}
		ops.unqueue(c, now, p)
	}
}

// hold returns how long a complete plan waits: until the GPU's clock is known better; shorter if only its network
// traffic shows when it ran, where one channel's may begin after others have ended.
func (ops *operations) hold(p *plan) uint64 {
	switch {
	case len(p.stamps.Kernels) > 0:
		return ops.opts.gpuHold
	case p.netStop != 0:
		return ops.opts.gpuHold / 8
	}
	return 0
}

// unqueue removes the head of a queue: no event refers to its operations by handle any more.
func (ops *operations) unqueue(c *commRank, now uint64, p *plan) {
	ops.changes++
	c.outstanding.removePlan(p)
	c.queue[0] = nil
	c.queue = c.queue[1:]
	c.followed = max(c.followed, 1) - 1
	for _, op := range p.ops {
		delete(ops.byHandle, op.handle)
	}
	for _, o := range p.proxies {
		o.op = nil
	}
	p.leaveSums(now)
	delete(ops.plans, p.handle)
	p.tellWritten()
	p.written = true
	c.bytes -= p.bytes
	ops.ranks.bytes -= p.bytes
	c.headAt = max(c.headAt, min(now, p.completeAt))
}

// tellWritten tells a plan's launch that the plan has been written.
func (p *plan) tellWritten() {
	var l *cuda.Launch
	if p.launch != nil {
		l = &p.launch.Launch
	}
	cuda.Written(p, l)
}
