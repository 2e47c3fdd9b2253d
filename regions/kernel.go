// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// KernelCh and KernelPhase: the GPU's share of an operation on one channel. They come late, from another thread, and
// some never end (docs/nccl-profiler-api.md §3.4, §7.1).

// kernel is an open KernelCh event: one channel's share of an operation on the GPU.
type kernel struct {
	gpuclock.Kernel
	comm    *commRank
	op      *operation
	stamped bool // End is known
	phases  []kernelPhase
}

// kernelPhase is a KernelPhase event: a part of a symmetric kernel on one channel (API v7).
type kernelPhase struct {
	handle     uint64
	number     uint8 // 0, 1, … in the order of a kernel's phases
	name       string
	begin, end uint64 // stamps; end is 0 until it is known
}

// kernelShare is what is drawn of one of a plan's kernels besides its stamps.
type kernelShare struct {
	kernel int // index into plan.stamps.Kernels
	op     *operation
	phases []kernelPhase
}

// maxKernelPhases is more than any kernel has.
const maxKernelPhases = 16

func (ops *operations) startKernel(_ *thread, t uint64, r *shm.Record) {
	comm := ops.ranks.rankOf(r.Aux)
	op := ops.byHandle[r.Arg]
	k := &kernel{comm: comm, op: op, Kernel: gpuclock.Kernel{Channel: r.Channel, Begin: r.PTimer, Began: t}}
	if op == nil {
		ops.countOddity(oddLateChild)
		// The pair is still valid for the clock.
		if comm != nil {
			comm.stamps.AddReport(r.PTimer, t)
		}
	} else {
		k.comm, k.Operation = op.plan.comm, op.index
		k.comm.stamps.AddReport(r.PTimer, t)
		k.comm.kernelsSeen = true
		op.plan.kernelsOpen++
		op.plan.stamps.Reported = max(op.plan.stamps.Reported, t)
		op.plan.completeAt = 0 // more channels than were known
	}
	if gone, full := ops.kernels.Put(r.Handle, k); full {
		ops.countOddity(oddForgottenEvent)
		ops.forgetKernel(gone)
	}
}

// forgetKernel drops an event whose stop is not awaited any more.
func (ops *operations) forgetKernel(k *kernel) {
	if k.op != nil {
		k.op.plan.kernelsOpen--
		k.op.plan.stamps.Unstamped++
		k.op.kernelsDone++
	}
}

func (ops *operations) stateKernel(_ *thread, t uint64, r *shm.Record) {
	k := ops.kernels.Get(r.Handle)
	if k == nil {
		ops.countOddity(oddStrayState)
		return
	}
	if r.Flags&shm.FlagHasArg == 0 || k.stamped {
		return
	}
	k.End, k.Ended, k.stamped = r.Arg, t, true
	if k.op != nil {
		k.comm.stamps.AddReport(r.Arg, t)
	}
}

func (ops *operations) stopKernel(_ *thread, t uint64, r *shm.Record) {
	k := ops.kernels.Get(r.Handle)
	if k == nil {
		ops.countOddity(oddStrayStop)
		return
	}
	ops.kernels.Remove(r.Handle)
	if k.op == nil {
		return
	}
	p := k.op.plan
	p.kernelsOpen--
	p.stamps.Reported = max(p.stamps.Reported, t)
	k.op.kernelsDone++
	if k.stamped {
		if ops.opts.Channels || len(k.phases) > 0 {
			p.shares = append(p.shares, kernelShare{len(p.stamps.Kernels), k.op, k.phases})
			p.countBytes(unsafe.Sizeof(kernelShare{}) + uintptr(len(k.phases))*unsafe.Sizeof(kernelPhase{}))
		}
		if p.stamps.Kernels == nil {
			p.stamps.Kernels = p.firstKernel[:0]
		}
		p.stamps.Kernels = append(p.stamps.Kernels, k.Kernel)
		p.countBytes(unsafe.Sizeof(k.Kernel))
	} else { // API v3 has no stamps at all
		p.stamps.Unstamped++
	}
	ops.noteCompletion(p, t)
}

// startPhase takes a KernelPhase. NCCL makes its start, state and stop at once, while its KernelCh is open.
func (ops *operations) startPhase(_ *thread, t uint64, r *shm.Record) {
	k := ops.kernels.Get(r.Arg)
	if k == nil || len(k.phases) >= maxKernelPhases {
		ops.countOddity(oddLateChild)
		return
	}
	k.phases = append(k.phases, kernelPhase{handle: r.Handle, number: r.Phase, name: r.PhaseName, begin: r.PTimer})
	if _, full := ops.phases.Put(r.Handle, k); full {
		ops.countOddity(oddForgottenEvent)
	}
}

func (ops *operations) statePhase(_ *thread, _ uint64, r *shm.Record) {
	if p := ops.openKernelPhase(r.Handle); p == nil {
		ops.countOddity(oddStrayState)
	} else if r.Flags&shm.FlagHasArg != 0 && p.end == 0 {
		p.end = r.Arg
	}
}

func (ops *operations) stopPhase(_ *thread, _ uint64, r *shm.Record) {
	if ops.openKernelPhase(r.Handle) == nil {
		ops.countOddity(oddStrayStop)
	}
	ops.phases.Remove(r.Handle)
}

// openKernelPhase returns the open KernelPhase of a handle.
func (ops *operations) openKernelPhase(handle uint64) *kernelPhase {
	k := ops.phases.Get(handle)
	if k == nil {
		return nil
	}
	for i := range k.phases {
		if p := &k.phases[i]; p.handle == handle {
			return p
		}
	}
	return nil
}
