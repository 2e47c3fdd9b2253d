// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// Operations: Coll and P2p events. A start without a communicator, and a stop without an operation that is open, are
// oddities, counted here. docs/nccl-profiler-api.md says who begins them (§3.2) and which kernels NCCL does not report
// (§7.4).

// operation is a Coll or P2p event, or a call without one.
type operation struct {
	handle, parent uint64
	plan           *plan
	call           *call // nil if NCCL named none
	imported       *Imported
	seq            uint64
	index          int32 // in the plan
	peer           int32 // of a message
	kernelsDone    int
	p2p            bool
	task           bool // there was a Coll, P2p or CeColl event
	stopped        bool
	arguments
	buffers buffers
	tuning  tuning
	copies  engineCopies
	net     operationTraffic
}

// arguments are what the application passed to NCCL's function, or what NCCL made of it for an operation.
type arguments struct {
	name        string // of the function
	count       uint64
	datatype    string
	root        int32
	stream, tag uint64
}

// argumentsOf returns the arguments in the record that starts a call or an operation. Coll and P2p have no stream.
func argumentsOf(r *shm.Record) arguments {
	return arguments{name: r.Func, count: r.Count, datatype: r.Datatype, root: r.Root, stream: r.Stream, tag: r.UserTag}
}

// tuning is how NCCL chose to carry out an operation.
type tuning struct {
	algo, proto     string
	kernelVariant   string
	channels, warps uint32
	anyChannels     bool // the number of channels is not known
	symmetric       bool // by a symmetric kernel
}

// kernelsDue returns the number of KernelCh events that NCCL makes for the operation: one per channel; none for
// messages to oneself (their traffic has no proxy work; docs/nccl-profiler-api.md §7.4) and for symmetric kernels in
// graphs (§3.6); at least one if the number of channels is not known.
func (op *operation) kernelsDue() int {
	if op.p2p && int(op.peer) == op.plan.comm.Rank || op.tuning.symmetric && op.plan.graph {
		return 0
	}
	if op.tuning.anyChannels {
		return 1
	}
	return int(op.tuning.channels)
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

// dropRankEvents drops what is kept of a communicator rank that is gone.
func (ops *operations) dropRankEvents(c *commRank) {
	for call := range c.calls.allCalls() {
		ops.dropCall(call)
	}
	for handle := range c.captured.Handles() {
		ops.dropCall(c.captured.Get(handle))
	}
	ops.kernels.RemoveFunc(func(_ uint64, k *kernel) bool { return k.comm == c })
	ops.phases.RemoveFunc(func(_ uint64, k *kernel) bool { return k.comm == c })
}

func (ops *operations) startTask(th *thread, t uint64, r *shm.Record) {
	comm := ops.ranks.rankOf(r.Aux)
	if comm == nil {
		ops.countOddity(oddForeign)
		ops.loseUndrawn(r.Type)
		return
	}
	p := ops.plans[r.ParentGroup]
	if p == nil { // no Group event: disabled by the settings, or lost
		p = &plan{comm: comm, enqueue: enqueueing{start: t, stop: t, stopped: true}}
		comm.addPlan(p, t)
	}
	op := p.addOperation(&operation{
		handle: r.Handle, parent: r.Arg, plan: p, index: int32(len(p.ops)), call: ops.takeCall(r.Arg),
		p2p: r.Type == shm.EventP2p, task: true, seq: r.Seq, arguments: argumentsOf(r), peer: r.Peer,
		buffers: buffers{send: r.SendBuff, recv: r.RecvBuff},
		tuning: tuning{
			algo: r.Algo, proto: r.Proto, channels: uint32(r.NChannels), warps: uint32(r.NWarps),
			anyChannels: r.Flags&shm.FlagUnknownChannels != 0, kernelVariant: r.KernelVariant,
			symmetric: r.Flags&shm.FlagSym != 0,
		},
	})
	if op.p2p && op.name != "Send" { // NCCL reports one buffer
		op.buffers.send, op.buffers.recv = 0, op.buffers.send
	}
	if op.call != nil && op.call.graph || r.Arg&shm.CapturedBit != 0 && ops.process.APIVersion != 0 {
		p.graph = true
		// A replay comes from the driver's thread, and without a launch.
		if !p.captureOnly && (p.enqueue.launch != nil || th.group != nil && th.group.graph) {
			p.captureOnly = true
			ops.captureOnly(comm, t)
		}
	}
	if !p.captureOnly {
		comm.begun = max(comm.begun, t)
	}
	ops.takeImported(op)
	p.completion.openTasks++
	ops.byHandle[r.Handle] = op
}

func (ops *operations) stopTask(_ *thread, t uint64, r *shm.Record) {
	op := ops.byHandle[r.Handle]
	if op == nil || op.stopped {
		ops.countOddity(oddStrayStop)
		return
	}
	op.stopped = true
	op.plan.completion.openTasks--
	op.plan.enqueue.stop = max(op.plan.enqueue.stop, t)
	ops.noteCompletion(op.plan, t)
}
