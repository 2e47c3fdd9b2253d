// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
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

// planKernels is the GPU's part of a plan.
type planKernels struct {
	open       int           // KernelCh events under way
	stamps     gpuclock.Plan // by NCCL
	shares     []kernelShare // of its kernels, if they are drawn
	links      cuda.Links    // to its kernels, by CUPTI
	difference uint64        // ns by which the GPU's sources differ on its times; 0 if they agree

	first [1]gpuclock.Kernel // memory of the first kernel's stamps: most plans have no more
}

// kernelShare is what is drawn of one of a plan's kernels besides its stamps.
type kernelShare struct {
	kernel int // index into planKernels.stamps.Kernels
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
			comm.gpu.stamps.AddReport(r.PTimer, t)
		}
	} else {
		k.comm, k.Operation = op.plan.comm, op.index
		k.comm.gpu.stamps.AddReport(r.PTimer, t)
		k.comm.reports.kernelsSeen = true
		op.plan.gpu.open++
		op.plan.gpu.stamps.Reported = max(op.plan.gpu.stamps.Reported, t)
		op.plan.completion.at = 0 // more channels than were known
	}
	if gone, full := ops.kernels.Put(r.Handle, k); full {
		ops.countOddity(oddForgottenEvent)
		ops.forgetKernel(gone)
	}
}

// forgetKernel drops an event whose stop is not awaited any more.
func (ops *operations) forgetKernel(k *kernel) {
	if k.op != nil {
		k.op.plan.gpu.open--
		k.op.plan.gpu.stamps.Unstamped++
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
		k.comm.gpu.stamps.AddReport(r.Arg, t)
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
	p.gpu.open--
	p.gpu.stamps.Reported = max(p.gpu.stamps.Reported, t)
	k.op.kernelsDone++
	if k.stamped {
		if ops.opts.Channels || len(k.phases) > 0 {
			p.gpu.shares = append(p.gpu.shares, kernelShare{len(p.gpu.stamps.Kernels), k.op, k.phases})
			p.countBytes(unsafe.Sizeof(kernelShare{}) + uintptr(len(k.phases))*unsafe.Sizeof(kernelPhase{}))
		}
		if p.gpu.stamps.Kernels == nil {
			p.gpu.stamps.Kernels = p.gpu.first[:0]
		}
		p.gpu.stamps.Kernels = append(p.gpu.stamps.Kernels, k.Kernel)
		p.countBytes(unsafe.Sizeof(k.Kernel))
	} else { // API v3 has no stamps at all
		p.gpu.stamps.Unstamped++
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
