// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// The choice between two GPU sources of a plan's times: NCCL's stamps (interval.go) and CUPTI's records of its kernels.

// Sources of GPU times.
const (
	sourceKernelCh = "kernelch" // NCCL's stamps
	sourceCUPTI    = "cupti"    // the kernel's activity record
)

// planTimes returns when a plan ran, and the source: CUPTI's times if NCCL's stamps are missing or end early. If both
// are there, they are compared. gpuSource is empty unless CUPTI's records are there.
func (ti *timing) planTimes(c *commRank, p *plan, now uint64) (when gpuclock.Interval, source, gpuSource string) {
	when, source = ti.planInterval(c, p, now)
	if !ti.cuda.IsActive() {
		return when, source, ""
	}
	if p.graph && p.enqueue.launch == nil {
		ti.cuda.LinkReplay(p, when, source == TimingGPU)
	}
	kernel, ok := p.gpu.links.KernelInterval()
	switch {
	case p.enqueue.launch == nil:
	case ok:
		c.gpu.kernels.Missed = 0
	default:
		c.gpu.kernels.Missed++
	}
	switch {
	case !ok && source != TimingGPU:
		return when, source, ""
	case source != TimingGPU:
		return kernel, TimingGPU, sourceCUPTI
	case ok && p.endsEarly():
		stamps := when
		stamps.End = kernel.End
		ti.compareSources(c, p, stamps, kernel)
		return kernel, TimingGPU, sourceCUPTI
	case ok:
		ti.compareSources(c, p, when, kernel)
	}
	return when, source, sourceKernelCh
}

// compareSources compares NCCL's stamps of a plan with CUPTI's times of its kernel.
func (ti *timing) compareSources(c *commRank, p *plan, stamps, kernel gpuclock.Interval) {
	p.gpu.difference = cuda.SourceDifference(stamps, kernel)
	if p.gpu.difference == 0 {
		return
	}
	ti.countOddity(oddTimesDiffer)
	if !c.gpu.differing {
		c.gpu.differing = true
		ti.addMarker(c.rows.rank, stamps.Begin, SeverityLow, "GPU times differ",
			fmt.Sprintf("%s rank %d: NCCL's stamps and CUPTI say otherwise when a kernel ran, by %d µs", c.label,
				c.Rank, p.gpu.difference/1000))
	}
}

// kernelHold returns how long a complete plan waits for CUPTI's record: 0 if CUPTI records nothing, or had no record of
// several plans in a row; the whole cuptiHold if no other source has the times of kernels.
func (ti *timing) kernelHold(c *commRank, p *plan) uint64 {
	if !ti.cuda.IsActive() || p.callOnly || p.captureOnly || len(p.ops) == 0 {
		return 0
	}
	if _, ok := p.gpu.links.KernelInterval(); ok || c.gpu.kernels.Missed >= maxKernelTimeouts {
		return 0
	}
	switch {
	case p.enqueue.launch != nil && len(p.gpu.stamps.Kernels) == 0:
		return ti.opts.operationLimit
	case p.enqueue.launch != nil || p.graph:
		return ti.opts.cuptiHold
	}
	return 0
}

// kernelAttributes adds which GPU source gave a plan's times, by how much the other one differs, and the ids that link
// its kernel.
func (ti *timing) kernelAttributes(a *otf2.AttributeList, p *plan, gpuSource string) {
	if gpuSource != "" {
		a.String(attrGPUSource, ti.defs.stringRef(gpuSource))
	}
	if p.gpu.difference > 0 {
		a.Uint64(attrGPUDifference, p.gpu.difference)
	}
	if ti.cuda.IsActive() && p.handle != 0 {
		a.Uint64(AttrPlanID, p.handle)
	}
}

// ID and the other methods below implement cuda.Plan.

func (p *plan) ID() uint64 { return p.handle }

func (p *plan) CommRank() *cuda.Rank { return &p.comm.gpu.kernels }

func (p *plan) ReportedAt() uint64 { return p.enqueue.start }

func (p *plan) CapturedCall() uint64 {
	if len(p.ops) == 0 {
		return 0
	}
	return p.ops[0].parent
}

func (p *plan) OnlyOperation() uint64 {
	if len(p.ops) == 1 {
		return p.ops[0].handle
	}
	return 0
}

func (p *plan) ChannelCount() uint32 {
	var seen [256]bool
	n := uint32(0)
	for _, k := range p.gpu.stamps.Kernels {
		if !seen[k.Channel] {
			seen[k.Channel] = true
			n++
		}
	}
	return n
}

func (p *plan) RunsFunction(function string) bool {
	return slices.ContainsFunc(p.ops, func(op *operation) bool {
		return function == op.name || op.p2p &&
			function == kernelOfMessages
	})
}

func (p *plan) KernelLinks() *cuda.Links { return &p.gpu.links }

// kernelOfMessages is the part of NCCL's kernel names for sends and receives.
const kernelOfMessages = "SendRecv"

// kernelFunctions returns the function names that occur in the names of NCCL's kernels.
func kernelFunctions() []string {
	names := []string{kernelOfMessages}
	for _, c := range Collectives {
		names = append(names, c.Name)
	}
	return names
}
