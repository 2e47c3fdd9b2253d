// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// Plans from begin to end: which operations, calls and launches belong together, and when a plan is complete.
// docs/nccl-profiler-api.md says who begins Group events (§3.2), which of their children never end (§3.4), and how
// groups and graphs become plans (§3.5).

// plan is one entry of a communicator rank's issue order: a Group event, which is one kernel launch with all its
// operations; or a call for which NCCL reported nothing more; or a switch of recording, see measurement.
type plan struct {
	comm        *commRank
	handle      uint64
	ops         []*operation
	gone        *gone // lost operations before ops; nil: none
	graph       bool  // replayed from a captured graph
	callOnly    bool
	captureOnly bool                 // captured into a graph, not run
	measurement otf2.MeasurementMode // of a switch of recording; 0: a plan with operations

	enqueue    enqueueing
	gpu        planKernels
	net        planTraffic
	completion completion
	memory     planMemory
	counted    int // number of its operations counted as outstanding
}

// enqueueing is the part of a plan that happens on the CPU.
type enqueueing struct {
	start, stop uint64
	stopped     bool
	launch      *launch // launch of its kernel, nil if not known
	deferred    bool    // a callback of the stream reported the plan, later than its launch
	floor       uint64  // when the previous plan had been enqueued
}

// completion is whether and when the last child of a plan has ended.
type completion struct {
	openTasks int
	at        uint64   // when the last child ended; 0 before
	forced    bool     // ended by a limit or at the end
	underWay  UnderWay // at the end
}

// planMemory is the memory of a plan with its operations, as far as it counts in the bound of the queues.
type planMemory struct {
	bytes    int
	released bool // the plan has been written, so that its memory does not count any more

	// The first operation: most plans have no more, and an operation keeps its plan in any case.
	operation operation
	first     [1]*operation
}

func (ops *operations) startGroup(th *thread, t uint64, r *shm.Record) {
	comm := ops.ranks.rankOf(r.Aux)
	if comm == nil {
		ops.countOddity(oddForeign)
		return
	}
	p := &plan{comm: comm, handle: r.Handle, enqueue: enqueueing{start: t}}
	if th.launch != nil && th.launch.comm == comm {
		p.enqueue.launch = th.launch
		p.enqueue.launch.SetPlan(p)
	}
	th.launch = nil
	ops.plans[r.Handle] = p
	comm.addPlan(p, t)
}

func (ops *operations) stopGroup(th *thread, t uint64, r *shm.Record) {
	p := ops.plans[r.Handle]
	if p == nil || p.enqueue.stopped {
		ops.countOddity(oddStrayStop)
		return
	}
	delete(ops.plans, r.Handle)
	if th.group == nil && (th.loc == nil || !ops.callsReported()) && p.comm.life.announced {
		ops.writeEnqueue(p, t)
	}
	ops.endPlan(p, t)
}

// endPlan notes that a plan has been enqueued.
func (ops *operations) endPlan(p *plan, t uint64) {
	p.enqueue.stop, p.enqueue.stopped = t, true
	p.comm.queue.enqueued = max(p.comm.queue.enqueued, t)
	if ops.timing.mayPart(p) {
		p.comm.gpu.stamps.SuspectFrom(p.gpu.stamps.Number)
	}

	// Calls of earlier groups on this communicator without a plan will get none.
	ops.resolveCalls(p.comm, p.latestGroup())
	switch {
	case p.captureOnly || p.enqueue.launch != nil:
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
		if l.comm == p.comm && !l.HasPlan() && l.Start < p.enqueue.start {
			p.enqueue.launch, p.enqueue.deferred = l, true
			l.SetPlan(p)
			return
		}
	}
}

// countBytes counts the memory of a plan in a queue.
func (p *plan) countBytes(bytes uintptr) {
	if p.memory.released {
		return
	}
	p.memory.bytes += int(bytes)
	p.comm.queue.bytes += int(bytes)
	*p.comm.queue.allBytes += int(bytes)
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
		p.ops, added = p.memory.first[:0], &p.memory.operation
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
	if p.completion.at != 0 || !p.enqueue.stopped || p.completion.openTasks > 0 || p.gpu.open > 0 {
		return
	}
	if p.captureOnly {
		p.completion.at = t
		return
	}
	if t := p.importedTimes(); t != nil && t.UnderWay != 0 {
		return
	}
	due, missing := 0, 0
	if ops.recordsType(shm.EventKernelCh) && p.comm.reports.kernelTimeouts < maxKernelTimeouts {
		for _, op := range p.ops {
			due += op.kernelsDue()
			missing += max(0, op.kernelsDue()-op.kernelsDone)
		}
	}
	if missing > 0 && (p.comm.reports.kernelsSeen || len(p.comm.queue.plans) < maxUnseen) || due == 0 &&
		ops.awaitsNetwork(p, t) {
		return
	}
	p.completion.at = t
	ops.changes++
	ops.timing.judgeStamps(p)
	p.settleSums(t)
}

// awaitsNetwork reports whether a plan without kernel events may still have network traffic: it is under way, or has
// not begun and is not long overdue. ProxyOps without any state or step are of other transports.
func (ops *operations) awaitsNetwork(p *plan, t uint64) bool {
	if p.net.open > 0 {
		return true
	}
	return !p.comm.life.ending && ops.mayHaveNetwork(p) && p.net.stop == 0 &&
		p.comm.reports.quietPlans < maxQuietPlans &&
		t < p.enqueue.stop+ops.opts.gpuHold
}

// mayHaveNetwork reports whether ProxyOps of a plan would be recorded.
func (ops *operations) mayHaveNetwork(p *plan) bool {
	return ops.recordsType(shm.EventProxyOp) && !p.callOnly && len(p.ops) > 0 && !p.ops[0].copies.byEngines
}

// maxQuietPlans is the number of plans in a row without network traffic after which none is expected.
const maxQuietPlans = 3

// tellWritten tells a plan's launch that the plan has been written.
func (p *plan) tellWritten() {
	var l *cuda.Launch
	if p.enqueue.launch != nil {
		l = &p.enqueue.launch.Launch
	}
	cuda.ReleaseWrittenPlan(p, l)
}
