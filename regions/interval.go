// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// When a plan ran, by the best source that NCCL reported: its GPU stamps, its network traffic, or its enqueueing.
// Package gpuclock decides which stamps to believe; this file provides the bounds before which a kernel cannot have
// begun (docs/nccl-profiler-api.md §3.5).

// Sources of an operation's interval.
const (
	TimingGPU     = "gpu"     // first KernelCh start … last KernelCh stop, on the host's time line
	TimingNetwork = "network" // first ProxyOp start … last ProxyOp stop
	TimingEnqueue = "enqueue" // the enqueueing on the CPU only
	// Only the length is known: begins were chosen so that operations follow each other. Imported data only.
	TimingDuration = "duration"
)

// intervals are the sources of a plan's interval, best first. Each reports whether it has a plausible one.
var intervals = [...]struct {
	source string
	of     func(ti *timing, c *commRank, p *plan, now uint64) (gpuclock.Interval, bool)
}{
	{TimingGPU, (*timing).channelsInterval},
	{TimingNetwork, (*timing).networkInterval},
	{TimingEnqueue, (*timing).enqueueInterval},
}

// timing decides when operations ran, and by which source.
type timing struct {
	*board
	cuda *cuda.Recorder
}

// planInterval returns when the operations of a plan ran, by the best plausible source.
func (ti *timing) planInterval(c *commRank, p *plan, now uint64) (gpuclock.Interval, string) {
	if t := p.importedTimes(); t != nil {
		return gpuclock.Interval{Begin: t.Begin, End: t.End, Uncertainty: t.Uncertainty}, t.Source
	}
	for _, s := range intervals {
		if i, ok := s.of(ti, c, p, now); ok {
			return i, s.source
		}
	}
	panic("the enqueueing has no interval") // it always has
}

// channelsInterval maps the stamps of a plan's KernelCh events; ok is false if they are not believed.
func (ti *timing) channelsInterval(c *commRank, p *plan, _ uint64) (gpuclock.Interval, bool) {
	if len(p.gpu.stamps.Kernels) == 0 {
		return gpuclock.Interval{}, false
	}
	ti.judgeStamps(p)
	i, n, ok := c.gpu.stamps.PlanInterval(&p.gpu.stamps, ti.planBounds(p))
	ti.markNotice(p, n)
	if !ok {
		ti.countOddity(oddImplausible)
	}
	return i, ok && !p.isVague(i)
}

// isVague reports whether network traffic locates a plan better than its stamps do: a kernel and its traffic overlap or
// nearly do, so that the distance between them is at most the longer of the two.
func (p *plan) isVague(i gpuclock.Interval) bool {
	return p.net.open == 0 && p.net.start != 0 && p.net.stop > p.net.start &&
		i.Uncertainty > max(p.net.stop-p.net.start, i.End-i.Begin)
}

// judgeStamps passes the stamps of a plan, when all its reports have come, to the filter with the plan's bounds.
func (ti *timing) judgeStamps(p *plan) {
	if p.captureOnly {
		return
	}
	ti.markNotice(p, p.comm.gpu.stamps.JudgePlan(&p.gpu.stamps, ti.planBounds(p), (*waiting)(&p.comm.queue.plans)))
}

// planBounds returns what is known of a plan's times apart from its stamps.
func (ti *timing) planBounds(p *plan) gpuclock.Bounds {
	b := gpuclock.Bounds{Start: p.enqueue.start}
	b.Launched, b.Replayed = ti.earliestBegin(p)
	if p.net.open == 0 && ti.recordsType(shm.EventProxyOp) {
		b.NetStop = p.net.stop
	}
	return b
}

// mayPart reports whether host and device may count the kernels of a plan differently: messages to oneself up to NCCL
// 2.30, which only the device counts.
func (ti *timing) mayPart(p *plan) bool {
	if v := ti.process.LibraryVersion; v >= 23100 {
		return false
	}
	return slices.ContainsFunc(p.ops, func(op *operation) bool {
		return op.p2p && op.task && int(op.peer) == p.comm.Rank && p.comm.NRanks > 1
	})
}

// markNotice writes a marker about GPU times from a plan on.
func (ti *timing) markNotice(p *plan, n gpuclock.Notice) {
	c := p.comm
	switch n {
	case gpuclock.NoticeSelfMessages:
		ti.addMarker(c.rows.rank, p.enqueue.start, SeverityHigh, "Implausible GPU times",
			c.label+": after messages to oneself GPU stamps may be those of other kernels; they are used only where "+
				"it is certain whose they are")
	case gpuclock.NoticeWithheld:
		use := "they are not used"
		if c.gpu.stamps.FollowsAll() {
			use = "they are used only where it is certain whose they are"
		}
		ti.addMarker(c.rows.rank, p.enqueue.start, SeverityHigh, "Implausible GPU times",
			c.label+": the GPU stamps belong to other kernels; from here on "+use)
	case gpuclock.NoticeUnknownTick:
		ti.addMarker(c.rows.rank, p.enqueue.start, SeverityLow, "GPU times not used",
			c.label+": the unit of the GPU's stamps is not known yet")
	}
}

// waiting are the plans of a communicator in the order of their enqueueing; it implements gpuclock.Queue.
type waiting []*plan

func (q *waiting) IsLast(number uint64) bool { return (*q)[len(*q)-1].gpu.stamps.Number == number }

func (q *waiting) OperationsBehind(number uint64, most int) (n int) {
	w := *q
	for i := len(w) - 1; i >= 0 && w[i].gpu.stamps.Number != number && n < most; i-- {
		n += len(w[i].ops)
	}
	return n
}

func (q *waiting) EnqueuedSince(number uint64) (uint64, bool) {
	w := *q
	i := slices.IndexFunc(w, func(p *plan) bool { return p.measurement == 0 && p.gpu.stamps.Number >= number })
	if i < 0 {
		return 0, false
	}
	return w[i].enqueue.start, true
}

func (ti *timing) networkInterval(_ *commRank, p *plan, _ uint64) (gpuclock.Interval, bool) {
	return gpuclock.Interval{Begin: p.net.start, End: p.net.stop}, p.net.start != 0 && p.net.stop > p.net.start
}

func (ti *timing) enqueueInterval(_ *commRank, p *plan, now uint64) (gpuclock.Interval, bool) {
	i := gpuclock.Interval{Begin: p.enqueue.start, End: p.enqueue.stop}
	if p.enqueue.launch != nil {
		i.Begin = p.enqueue.launch.Start
	}
	if !p.enqueue.stopped {
		i.End = now
	}
	return i, true
}

// earliestBegin returns a time before which no kernel of a plan can have begun: its launch; its Group event, if a
// callback of the stream that the kernel waits for made it (docs/nccl-profiler-api.md §3.5); without launch events the
// first call, or the end of the previous plan's enqueueing; at least the begin of the recording. The launch of a replay
// is not reported.
func (ti *timing) earliestBegin(p *plan) (t uint64, replayed bool) {
	switch {
	case p.enqueue.launch != nil && !p.enqueue.deferred:
		return max(p.enqueue.floor, p.enqueue.launch.Start), false
	case ti.callsReported() && ti.recordsType(shm.EventKernelLaunch) && p.handle != 0:
		return p.enqueue.start, false
	}
	first := uint64(0)
	for _, op := range p.ops {
		if op.call == nil || op.call.graph {
			return max(p.enqueue.floor, ti.first), true
		}
		if first == 0 || op.call.start < first {
			first = op.call.start
		}
	}
	return max(p.enqueue.floor, first), false
}
