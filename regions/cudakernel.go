// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Sources of GPU times.
const (
	SourceKernelCh = "kernelch" // NCCL's stamps
	SourceCUPTI    = "cupti"    // the kernel's activity record
)

// slackNs is how far apart the two sources may be, beyond what each may be off by: a kernel begins some µs before the
// first of its blocks has a stamp, and ends some µs after the last.
const slackNs = 20_000

// activity is a kernel, a copy, or anything else that CUPTI recorded of a stream.
type activity struct {
	record      cupti.Record
	id          rowID
	name        string // of kernels, mangled
	arrived     uint64
	start, stop uint64 // CUPTI's
	timed       bool
	begin, end  uint64 // on the process's line
	off         uint64 // what either may be off by

	drawn          bool
	launch         *launch // whose kernel it is
	claimed        bool    // of a graph: it is a replayed plan's
	planID, parent uint64  // that one
	nccl           bool
}

// kernelLaunch is what a KernelLaunch event is to its kernel.
type kernelLaunch struct {
	thread    uint32 // the system's id
	stopped   bool
	plan      *plan // while it is in the queue
	planID    uint64
	operation uint64 // the only one of its plan, when that has left the queue
}

// keepLaunch keeps a KernelLaunch for what CUPTI will tell of it.
func (m *Model) keepLaunch(l *launch) { m.kept.put(l.handle, l) }

// leavePlan tells a plan's launch that it has been written.
func (m *Model) leavePlan(p *plan) {
	if l := p.launch; l != nil && l.plan == p {
		l.plan, l.operation = nil, p.onlyOperation()
	}
	p.activities = nil
}

// onlyOperation is the handle of a plan's operation if it has but one, else 0.
func (p *plan) onlyOperation() uint64 {
	if len(p.ops) == 1 {
		return p.ops[0].handle
	}
	return 0
}

// isNCCL tells NCCL's kernels by their names: ncclDevKernel_…, ncclSymkDevKernel_…, before 2.18 ncclKernel_….
func isNCCL(name string) bool { return strings.Contains(name[:min(len(name), 64)], "nccl") }

// takeKernel takes a kernel. One of a graph was launched by nobody in particular: the ids are those of the
// call that launched the graph.
func (m *Model) takeKernel(g *cuda, t uint64, k *cupti.Kernel, name string) {
	a := &activity{
		record: k, arrived: t, name: name, nccl: isNCCL(name),
		id: rowID{k.Device, k.Context, k.Stream, false}, start: k.Start, stop: k.End,
	}
	m.place(g, a)
	if k.Graph == 0 {
		g.correlator.Activity(k.Correlation, a, t)
	}
}

// judgeCall tells whether an API call lies within the KernelLaunch whose handle its thread had pushed. The handle stays
// there if NCCL goes on after an error without ending the event: such an event vouches for nothing.
func (m *Model) judgeCall(id uint64, call *cupti.Call) cupti.Verdict {
	l := m.kept.get(id)
	switch {
	case l == nil: // not yet told: of one time records come in any order; or not a launch of this process's
		return cupti.Wait
	case l.thread != call.Thread:
		return cupti.Unsound
	}
	start, off, err := m.cuda.clock.Map(call.Start)
	stop, more, err2 := m.cuda.clock.Map(call.End)
	covered, _ := m.cuda.clock.Covered()
	switch {
	case err == cupti.ErrUnsure || err2 == cupti.ErrUnsure:
		return cupti.Unsound
	case err != nil || err2 != nil:
		return cupti.Wait
	case max(off, more) > callOff && call.End > covered: // the next reading will tell
		return cupti.Wait
	case start+off < l.start || max(off, more) > callOff:
		return cupti.Unsound
	case !l.stopped:
		return cupti.Wait
	case stop > l.stop+more:
		return cupti.Unsound
	}
	return cupti.Sound
}

// kernelAttributes says which of the GPU's sources gave a plan's times, by how much the other one contradicts, and what
// its kernel is linked by.
func (m *Model) kernelAttributes(a *otf2.AttributeList, p *plan, gpuSource string) {
	if gpuSource != "" {
		a.String(AttrGPUSource, m.defs.string(gpuSource))
	}
	if p.apart > 0 {
		a.Uint64(AttrGPUApart, p.apart)
	}
	if m.cuda != nil && p.handle != 0 {
		a.Uint64(AttrPlanID, p.handle)
	}
}

// callOff is what the clock may be off by (ns) where API calls are to be told apart.
const callOff = 1e6

// kernelCorrelated notes what became of a kernel that no graph launched.
func (m *Model) kernelCorrelated(a *activity, o cupti.Outcome, id uint64) {
	g := m.cuda
	if a.drawn && o == cupti.Linked {
		o = cupti.Aged
	}
	g.counts[outcomes[o]]++
	if o != cupti.Linked {
		if a.nccl {
			g.counts[cuptiUnlinked]++
		}
		return
	}
	l := m.kept.get(id)
	a.launch = l
	if _, ok := g.devices[a.id.device]; !ok && l.comm.announced {
		g.devices[a.id.device] = l.comm.GPU
	}
	l.comm.kernelsMissed = 0
	if p := l.plan; p != nil {
		p.activities = append(p.activities, a)
	} else {
		g.counts[cuptiNoPlan]++
	}
}

// beforeLaunch tells that a kernel ran before its launch, by CUPTI, which cannot be. That it began a few µs too early is
// seen where launches follow each other closely.
func (a *activity) beforeLaunch() bool {
	l := a.launch
	return l != nil && a.timed && (a.begin+a.off+slackNs < l.start || a.end+a.off < l.start)
}

// kernelInterval is when a plan's kernel ran, by CUPTI; false if CUPTI did not tell, or nothing certain.
func (m *Model) kernelInterval(p *plan) (gpuclock.Interval, bool) {
	var i gpuclock.Interval
	for n, a := range p.activities {
		if !a.timed || a.beforeLaunch() {
			return gpuclock.Interval{}, false
		}
		if n == 0 || a.begin < i.Begin {
			i.Begin = a.begin
		}
		i.End, i.Uncertainty = max(i.End, a.end), max(i.Uncertainty, a.off)
		if a.launch != nil {
			i.Begin = max(i.Begin, a.launch.start)
			i.End = max(i.End, i.Begin)
		}
	}
	return i, len(p.activities) > 0
}

// kernelHold is how long a complete plan waits for what CUPTI tells of it: nothing if CUPTI tells nothing, or has told
// nothing of several plans in a row. Where nothing else tells when kernels run, as long as for that.
func (m *Model) kernelHold(c *commRank, p *plan) uint64 {
	if m.cuda == nil || p.callOnly || p.captureOnly || len(p.ops) == 0 {
		return 0
	}
	if _, ok := m.kernelInterval(p); ok || c.kernelsMissed >= maxKernelTimeouts {
		return 0
	}
	switch {
	case p.launch != nil && len(p.stamps.Kernels) == 0:
		return m.opts.OperationLimit
	case p.launch != nil || p.graph:
		return m.opts.CUPTIHold
	}
	return 0
}

// planTimes decides when a plan ran, and which of the GPU's sources says so: CUPTI where NCCL's own stamps do not
// tell. Where both do, they must agree. gpuSource is empty unless CUPTI's records are there.
func (m *Model) planTimes(c *commRank, p *plan, now uint64) (when gpuclock.Interval, source, gpuSource string) {
	when, source = m.interval(c, p, now)
	if m.cuda == nil {
		return when, source, ""
	}
	if p.graph && p.launch == nil {
		m.linkReplay(c, p, when, source == TimingGPU)
	}
	kernel, ok := m.kernelInterval(p)
	switch {
	case p.launch == nil:
	case ok:
		c.kernelsMissed = 0
	default:
		c.kernelsMissed++
	}
	switch {
	case !ok && source != TimingGPU:
		return when, source, ""
	case source != TimingGPU:
		return kernel, TimingGPU, SourceCUPTI
	case ok:
		m.compare(c, p, when, kernel)
	}
	return when, source, SourceKernelCh
}

// compare holds NCCL's stamps of a plan against CUPTI's of its kernel.
func (m *Model) compare(c *commRank, p *plan, stamps, kernel gpuclock.Interval) {
	apart := max(distance(stamps.Begin, kernel.Begin), distance(stamps.End, kernel.End))
	if apart <= slackNs+stamps.Uncertainty+kernel.Uncertainty {
		return
	}
	m.oddity(OddTimesDiffer)
	p.apart = apart
	if !c.differing {
		c.differing = true
		m.mark(c.loc, stamps.Begin, SeverityLow, "GPU times differ",
			fmt.Sprintf("%s rank %d: NCCL's stamps and CUPTI say otherwise when a kernel ran, by %d µs", c.label, c.Rank, apart/1000))
	}
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }
