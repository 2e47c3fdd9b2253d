// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Timing sources: what the interval of an operation is.
const (
	TimingGPU     = "gpu"     // first KernelCh start … last KernelCh stop, on the host's time line
	TimingNetwork = "network" // first ProxyOp start … last ProxyOp stop
	TimingEnqueue = "enqueue" // the CPU's share only
)

// interval is when the operations of a plan ran. uncertainty (ns), of TimingGPU only: each of begin and end is
// at most so far from the true time, in 95 of 100 cases at least.
type interval struct{ begin, end, uncertainty uint64 }

// intervals are the sources of a plan's interval, best first. Each tells whether it has one that holds up.
var intervals = [...]struct {
	source string
	of     func(m *Model, c *commRank, p *plan, now uint64) (interval, bool)
}{
	{TimingGPU, (*Model).channelsInterval},
	{TimingNetwork, (*Model).networkInterval},
	{TimingEnqueue, (*Model).enqueueInterval},
}

// interval decides when the operations of a plan ran, by the best source that holds up.
func (m *Model) interval(c *commRank, p *plan, now uint64) (interval, string) {
	if t := p.told(); t != nil {
		return interval{begin: t.Begin, end: t.End, uncertainty: t.Uncertainty}, t.Source
	}
	for _, s := range intervals {
		if i, ok := s.of(m, c, p, now); ok {
			return i, s.source
		}
	}
	panic("the enqueueing has no interval") // it always has
}

// channelsInterval maps the stamps of a plan's KernelCh events, unless they are not to be believed.
func (m *Model) channelsInterval(c *commRank, p *plan, _ uint64) (interval, bool) {
	if len(p.spans) == 0 {
		return interval{}, false
	}
	m.judge(p)
	i, ok := m.mapped(c, p)
	if !ok {
		m.oddity(OddImplausible)
	}
	return i, ok
}

func (m *Model) mapped(c *commRank, p *plan) (interval, bool) {
	if !c.gpu.known() {
		if !c.stamps.unknownTick {
			c.stamps.unknownTick = true
			m.mark(c.loc, p.start, SeverityLow, "GPU times not used", c.label+": the unit of the GPU's stamps is not known yet")
		}
		return interval{}, false
	}
	if !c.stamps.believes(p) {
		m.withhold(c, p)
		return interval{}, false
	}
	s := p.stamps()
	begin, beginMargin, _ := c.gpu.host(s.first, s.began)
	end, endMargin, ok := c.gpu.host(s.last, s.ended)
	if !ok {
		return interval{}, false
	}
	// The clock is known better now than when the plan was judged.
	bound := m.launched(p)
	if begin+uint64(beginMargin.most)+stampSlackNs < bound || end > s.ended+uint64(endMargin.most)+stampSlackNs {
		p.verdict = implausible
		return interval{}, false
	}

	// What has been seen of this plan bounds its own times, whatever the clock says.
	begin = min(max(begin, bound), s.began)
	end = max(min(end, s.ended), begin)
	beginOff, endOff := uint64(math.Ceil(beginMargin.usual)), uint64(math.Ceil(endMargin.usual))
	beginOff = min(beginOff, max(begin-min(begin, bound), s.began-begin))
	endOff = min(endOff, max(end-min(end, bound), s.ended-min(end, s.ended)))
	return interval{begin, end, max(beginOff, endOff)}, true
}

func (m *Model) networkInterval(_ *commRank, p *plan, _ uint64) (interval, bool) {
	return interval{begin: p.netStart, end: p.netStop}, p.netStart != 0 && p.netStop > p.netStart
}

func (m *Model) enqueueInterval(_ *commRank, p *plan, now uint64) (interval, bool) {
	i := interval{begin: p.start, end: p.stop}
	if p.launch != nil {
		i.begin = p.launch.start
	}
	if !p.stopped {
		i.end = now
	}
	return i, true
}

// launched is a time before which no kernel of a plan can have begun: that of its launch; of its Group event, if a
// callback of the stream made it, which the kernel waits for (docs/nccl-profiler-api.md §3.5); without
// events of launches, that of the first call, or the end of the enqueueing of the plan before.
func (m *Model) launched(p *plan) uint64 {
	switch {
	case p.launch != nil && !p.deferred:
		return max(p.floor, p.launch.start)
	case m.callsReported() && m.Records(shm.EventKernelLaunch) && p.handle != 0:
		return p.start
	}
	first := uint64(0)
	for _, op := range p.ops {
		if op.call == nil || op.call.graph {
			return p.floor
		}
		if first == 0 || op.call.start < first {
			first = op.call.start
		}
	}
	return max(p.floor, first)
}

// planStamps are the ends of a plan's KernelCh events, by the GPU's clock.
type planStamps struct {
	first, last  uint64
	began, ended uint64 // when NCCL reported them
}

func (p *plan) stamps() planStamps {
	s := planStamps{first: p.spans[0].begin, last: p.spans[0].end, began: p.spans[0].began, ended: p.spans[0].ended}
	for _, c := range p.spans[1:] {
		if c.begin < s.first {
			s.first = c.begin
		}
		if c.end > s.last {
			s.last = c.end
		}
		// All have begun after the first and ended before the last.
		s.began, s.ended = min(s.began, c.began), max(s.ended, c.ended)
	}
	return s
}
