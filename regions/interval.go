// SPDX-License-Identifier: Apache-2.0

package regions

// Timing sources: what the interval of an operation is.
const (
	TimingGPU     = "gpu"     // first KernelCh start … last KernelCh stop, on the host's time line
	TimingNetwork = "network" // first ProxyOp start … last ProxyOp stop
	TimingEnqueue = "enqueue" // the CPU's share only
)

// slackNs is how far a mapped GPU time may lie outside its bounds before it is called implausible:
// more than the mapping is off by (smallest callback delay of a window, some µs), far less than what
// stamps of other kernels are off by.
const slackNs = 20_000

// partedNs is an error that no mapping explains: the stamps are those of other kernels, because NCCL's
// host and device counters have parted (notes on the API, §7.4). They do not meet again.
const partedNs = 100_000

// interval decides when the operations of a plan ran, by the best source that holds up.
func (m *Model) interval(c *commRank, p *plan, now uint64) (begin, end uint64, source string) {
	if len(p.spans) > 0 && !c.parted {
		if begin, end, ok := m.gpuInterval(c, p); ok {
			return begin, end, TimingGPU
		}
		m.oddity(OddImplausible)
		if c.parted {
			m.mark(c.loc, p.start, SeverityHigh, "Implausible GPU times",
				c.label+": the GPU stamps belong to other kernels; from here on they are not used")
		}
	} else if len(p.spans) > 0 {
		m.oddity(OddImplausible)
	}
	if p.netStart != 0 && p.netStop > p.netStart {
		return p.netStart, p.netStop, TimingNetwork
	}
	begin, end = p.start, p.stop
	if p.launch != nil {
		begin = p.launch.start
	}
	if !p.stopped {
		end = now
	}
	return begin, end, TimingEnqueue
}

// gpuInterval maps a plan's stamps and holds them against what must be true: no kernel ends before it
// begins, none begins before its launch was enqueued, kernels of one communicator follow each other,
// and a stamp is used once.
func (m *Model) gpuInterval(c *commRank, p *plan) (begin, end uint64, ok bool) {
	first, last := p.spans[0].begin, p.spans[0].end
	repeated := p.unstamped > 0
	for _, s := range p.spans {
		if s.begin == 0 || s.end < s.begin || s.end <= c.stamps[s.channel] {
			repeated = true
		}
		first, last = min(first, s.begin), max(last, s.end)
	}
	for _, s := range p.spans {
		c.stamps[s.channel] = max(c.stamps[s.channel], s.end)
	}
	if !c.gpu.known() {
		if !c.unknownUnit {
			c.unknownUnit = true
			m.mark(c.loc, p.start, SeverityLow, "GPU times not used", c.label+": the unit of the GPU's stamps is not known yet")
		}
		return 0, 0, false
	}
	begin, _ = c.gpu.host(first)
	end, ok = c.gpu.host(last)
	if !ok {
		return 0, 0, false
	}

	// A plan enqueued by a callback of the stream runs after that callback, others after their launch.
	bound := p.start
	if p.launch != nil {
		bound = p.launch.start
	}
	early := func(limit uint64) uint64 { return limit - min(limit, begin) }
	off := max(early(bound), early(c.lastEnd))
	if end > p.lastReport {
		off = max(off, end-p.lastReport)
	}
	if repeated || off > slackNs {
		c.implausible++
		if off > partedNs || c.implausible >= 3 {
			c.parted = true
		}
		return 0, 0, false
	}
	c.lastEnd = end
	return max(begin, bound), end, true
}
