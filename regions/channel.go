// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Details of a plan's kernels: phases of symmetric kernels (docs/nccl-profiler-api.md §3.6), and on request a row for
// each channel. A batch is stamped as a whole (§7.2).

// writeKernelPhases draws the phases of a symmetric kernel inside its plan's region, each from the begin on its first
// channel to the end on its last one.
func (pw *planWriter) writeKernelPhases(c *commRank, loc *location, p *plan, enter, leave otf2.Timestamp) {
	phases := make(map[uint8]kernelPhase)
	for _, s := range p.gpu.shares {
		for _, ph := range s.phases {
			all, again := phases[ph.number]
			if again && all.begin != 0 && (ph.begin == 0 || all.begin < ph.begin) {
				ph.begin = all.begin
			}
			ph.end = max(ph.end, all.end)
			phases[ph.number] = ph
		}
	}
	pw.writePhases(c, loc, slices.Collect(maps.Values(phases)), p.gpu.stamps.Reported, enter, leave)
}

// phaseSlackNs is how far a phase may exceed its kernel: all stamps of one kernel are mapped in the same way.
const phaseSlackNs = 20_000

// writePhases draws phases between two times, one after the other; seen is when NCCL reported them.
func (pw *planWriter) writePhases(c *commRank, loc *location, phases []kernelPhase, seen uint64, from,
	to otf2.Timestamp) {
	slices.SortFunc(phases, func(a, b kernelPhase) int { return cmp.Compare(a.number, b.number) })
	for _, ph := range phases {
		begin, _, _ := c.gpu.stamps.Clock.HostTime(ph.begin, seen)
		end, _, ok := c.gpu.stamps.Clock.HostTime(ph.end, seen)
		if !ok || ph.begin == 0 || ph.end < ph.begin || end > uint64(to)+phaseSlackNs {
			pw.countOddity(oddImplausible)
			continue
		}
		b := min(max(otf2.Timestamp(begin), from), to)
		from = min(max(otf2.Timestamp(end), b), to)
		region := pw.defs.regionRef(ph.name, GroupKernel, otf2.RegionRoleFunction)
		pw.keepError(loc.w.Enter(b, nil, region))
		pw.keepError(loc.w.Leave(from, nil, region))
	}
}

// writeChannels draws the kernel intervals of a plan on the rows of their channels. Operations of one batch have the
// same stamps and are one region there, named after the plan. Intervals of a plan with impossible times are left out.
func (pw *planWriter) writeChannels(c *commRank, p *plan, region otf2.RegionRef, plausible bool) {
	if !plausible {
		pw.oddities[oddImplausibleChannel] += uint64(len(p.gpu.stamps.Kernels))
		return
	}
	of := func(i int) (*gpuclock.Kernel, *kernelShare) {
		s := &p.gpu.shares[i]
		return &p.gpu.stamps.Kernels[s.kernel], s
	}
	slices.SortStableFunc(p.gpu.shares, func(a, b kernelShare) int {
		k, l := &p.gpu.stamps.Kernels[a.kernel], &p.gpu.stamps.Kernels[b.kernel]
		return cmp.Or(cmp.Compare(k.Channel, l.Channel), cmp.Compare(k.Begin, l.Begin))
	})
	for i := 0; i < len(p.gpu.shares); {
		first, share := of(i)
		k, phases, alone := *first, slices.Clone(share.phases), true
		for i++; i < len(p.gpu.shares); i++ {
			next, s := of(i)
			if next.Channel != k.Channel || next.Begin >= k.End {
				break
			}
			k.End = max(k.End, next.End)
			alone = alone && s.op == share.op
			phases = append(phases, s.phases...)
		}
		loc := pw.channelLocation(c, k.Channel)
		if loc == nil {
			return
		}
		begin, _, _ := c.gpu.stamps.Clock.HostTime(k.Begin, k.Began)
		end, _, ok := c.gpu.stamps.Clock.HostTime(k.End, k.Ended)
		if !ok {
			pw.countOddity(oddImplausibleChannel)
			continue
		}
		name := region
		a := pw.emptyAttributes()
		if alone {
			name = pw.operationRegion(share.op)
			a.Uint64(AttrParentID, share.op.handle)
		}
		if p.graph {
			a.Uint8(AttrGraph, 1)
		}
		from := loc.raiseTime(begin)
		to := max(from, otf2.Timestamp(end))
		pw.keepError(loc.w.Enter(from, a, name))
		pw.writePhases(c, loc, phases, p.gpu.stamps.Reported, from, to)
		pw.keepError(loc.w.Leave(to, nil, name))
	}
}
