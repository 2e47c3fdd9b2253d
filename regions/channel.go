// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// writeKernelPhases draws the parts of a symmetric kernel inside its plan's region: each from its first channel's
// beginning to its last one's end.
func (m *Model) writeKernelPhases(c *commRank, loc *location, p *plan, enter, leave otf2.Timestamp) {
	phases := make(map[uint8]kernelPhase)
	for _, s := range p.spans {
		for _, ph := range s.phases {
			all, again := phases[ph.number]
			if again && all.begin != 0 && (ph.begin == 0 || all.begin < ph.begin) {
				ph.begin = all.begin
			}
			ph.end = max(ph.end, all.end)
			phases[ph.number] = ph
		}
	}
	order := make([]kernelPhase, 0, len(phases))
	for _, ph := range phases {
		order = append(order, ph)
	}
	m.writePhases(c, loc, order, p.lastReport, enter, leave)
}

// phaseSlackNs is how far a phase may reach beyond its kernel: stamps of one kernel are mapped alike.
const phaseSlackNs = 20_000

// writePhases draws phases between two times, one after the other; seen is when NCCL had reported them.
func (m *Model) writePhases(c *commRank, loc *location, phases []kernelPhase, seen uint64, from, to otf2.Timestamp) {
	slices.SortFunc(phases, func(a, b kernelPhase) int { return cmp.Compare(a.number, b.number) })
	for _, ph := range phases {
		begin, _, _ := c.gpu.host(ph.begin, seen)
		end, _, ok := c.gpu.host(ph.end, seen)
		if !ok || ph.begin == 0 || ph.end < ph.begin || end > uint64(to)+phaseSlackNs {
			m.oddity(OddImplausible)
			continue
		}
		b := min(max(otf2.Timestamp(begin), from), to)
		from = min(max(otf2.Timestamp(end), b), to)
		region := m.defs.region(ph.name, GroupKernel, otf2.RegionRoleFunction)
		m.fail(loc.w.Enter(b, nil, region))
		m.fail(loc.w.Leave(from, nil, region))
	}
}

// writeChannels draws a plan's kernel intervals on the rows of their channels. Operations that NCCL ran in one
// batch have the same stamps and are one region there, named after the plan. Intervals of a plan whose times
// cannot be true are left out.
func (m *Model) writeChannels(c *commRank, p *plan, region otf2.RegionRef, plausible bool) {
	if !plausible {
		m.oddities[OddImplausibleChannel] += uint64(len(p.spans))
		return
	}
	slices.SortStableFunc(p.spans, func(a, b channelSpan) int {
		return cmp.Or(cmp.Compare(a.channel, b.channel), cmp.Compare(a.begin, b.begin))
	})
	for i := 0; i < len(p.spans); {
		s := p.spans[i]
		phases := slices.Clone(s.phases)
		alone := true
		for i++; i < len(p.spans) && p.spans[i].channel == s.channel && p.spans[i].begin < s.end; i++ {
			s.end = max(s.end, p.spans[i].end)
			alone = alone && p.spans[i].op == s.op
			phases = append(phases, p.spans[i].phases...)
		}
		loc := m.channelLocation(c, s.channel)
		if loc == nil {
			return
		}
		begin, _, _ := c.gpu.host(s.begin, s.began)
		end, _, ok := c.gpu.host(s.end, s.ended)
		if !ok {
			m.oddity(OddImplausibleChannel)
			continue
		}
		name := region
		a := m.attributes
		a.Reset()
		if alone {
			name = m.operationRegion(s.op)
			a.Uint64(AttrParentID, s.op.handle)
		}
		if p.graph {
			a.Uint8(AttrGraph, 1)
		}
		from := loc.at(begin)
		to := max(from, otf2.Timestamp(end))
		m.fail(loc.w.Enter(from, a, name))
		m.writePhases(c, loc, phases, p.lastReport, from, to)
		m.fail(loc.w.Leave(to, nil, name))
	}
}
