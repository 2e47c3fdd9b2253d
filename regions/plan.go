// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Plans from begin to end: which operations, calls and launches belong together, and when a plan is complete.
// docs/nccl-profiler-api.md says who begins Group events (§3.2), which of their children never end (§3.4), and how
// groups and graphs become plans (§3.5).

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

func (ops *operations) startGroup(th *thread, t uint64, r *shm.Record) {
	comm := ops.ranks.rankOf(r.Aux)
	if comm == nil {
		ops.countOddity(oddForeign)
		return
	}
	p := &plan{comm: comm, handle: r.Handle, start: t}
	if th.launch != nil && th.launch.comm == comm {
		p.launch = th.launch
		p.launch.SetPlan(p)
	}
	th.launch = nil
	ops.plans[r.Handle] = p
	comm.addPlan(p, t)
}

func (ops *operations) stopGroup(th *thread, t uint64, r *shm.Record) {
	p := ops.plans[r.Handle]
	if p == nil || p.stopped {
		ops.countOddity(oddStrayStop)
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
		p.comm.stamps.SuspectFrom(p.stamps.Number)
	}

	// Calls of earlier groups on this communicator without a plan will get none.
	ops.resolveCalls(p.comm, p.latestGroup())
	switch {
	case p.captureOnly || p.launch != nil:
	case p.graph:
		ops.cuda.AddReplayedPlan(p)
	default:
		p.findLaunch()
	}
	ops.noteCompletion(p, t)
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
			l.SetPlan(p)
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

// addOperation adds a copy of an operation to the plan, and returns the copy.
func (p *plan) addOperation(op *operation) (added *operation) {
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

// noteCompletion notes when the last child of a plan has ended. Proxy work is awaited only if no kernels show the end
// of the plan: some of NCCL's proxy operations never stop (docs/nccl-profiler-api.md §3.4, 10).
func (ops *operations) noteCompletion(p *plan, t uint64) {
	if p.completeAt != 0 || !p.stopped || p.tasksOpen > 0 || p.kernelsOpen > 0 {
		return
	}
	if p.captureOnly {
		p.completeAt = t
		return
	}
	due, missing := 0, 0
	if ops.recordsType(shm.EventKernelCh) && p.comm.kernelTimeouts < maxKernelTimeouts {
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
	return ops.recordsType(shm.EventProxyOp) && !p.callOnly && len(p.ops) > 0 && !p.ops[0].copied
}

// maxQuietPlans is the number of plans in a row without network traffic after which none is expected.
const maxQuietPlans = 3

// tellWritten tells a plan's launch that the plan has been written.
func (p *plan) tellWritten() {
	var l *cuda.Launch
	if p.launch != nil {
		l = &p.launch.Launch
	}
	cuda.ReleaseWrittenPlan(p, l)
}
