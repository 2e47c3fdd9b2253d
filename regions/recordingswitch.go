// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Where recording was switched off or on, and which operations are missing because of it: the plugin's own windows,
// outages of the disk, and changes of NCCL's mask by RAS (docs/hazards.md, "RAS and stamps of kernels").

// CategoryRecording is the category of markers where recording paused or resumed.
const CategoryRecording = "NCCL recording"

// switchRecording takes a switch of the recording of a communicator rank. It queues like a plan, so that its event
// keeps its place among the operations of the row.
func (rs *ranks) switchRecording(t uint64, r *shm.Record) {
	c := rs.rankOf(r.Aux)
	if c == nil {
		rs.countOddity(oddForeign)
		return
	}
	if c.life.final {
		rs.countOddity(oddAfterFinalize)
		return
	}
	on, replays := r.Flags&shm.FlagInside != 0, r.Flags&shm.FlagReplay != 0
	last := -1
	for i, g := range c.Gaps {
		if g.Replays == replays {
			last = i
		}
	}
	open := last >= 0 && c.Gaps[last].To == 0 && c.Gaps[last].ToTime == 0
	switch {
	case on && open:
		c.Gaps[last].To, c.Gaps[last].ToTime = r.Arg, t
	case on && last < 0 && r.Arg > 0: // off from the start
		c.Gaps = append(c.Gaps, description.Gap{Replays: replays, To: r.Arg, FromTime: c.InitTime, ToTime: t})
		c.life.off = true
	case !on && !open:
		c.Gaps = append(c.Gaps, description.Gap{Replays: replays, From: r.Arg, FromTime: t})
	default:
		return // nothing changes
	}
	what := "operation"
	if replays {
		what = "replayed operation"
	}
	not := ""
	if !on {
		not = "not "
	}
	rs.addMarker(c.rows.rank, t, SeverityLow, CategoryRecording,
		fmt.Sprintf("%s rank %d: %srecorded from %s %d on", c.label, c.Rank, not, what, r.Arg))
	// The row is off while neither calls nor replays are recorded, as far as they could be distinguished.
	off := slices.ContainsFunc(c.Gaps, func(g description.Gap) bool { return g.ToTime == 0 })
	mode := otf2.MeasurementOn
	if off {
		mode = otf2.MeasurementOff
	}
	if off == c.life.off {
		return
	}
	c.life.off = off
	c.queueSwitch(t, mode)
}

// Outage takes the fact that operations from ≤ ordinal < to of a communicator rank were called and not recorded,
// because the plugin was asked to refuse them between two times. All earlier records must have been taken.
func (m *Model) Outage(comm int, from, to, begin, end uint64) error {
	m.changed = true
	c := m.ranks.rankOf(uint32(comm))
	if c == nil || c.life.final || c.life.off {
		return m.err
	}
	c.Gaps = append(c.Gaps, description.Gap{Lost: true, From: from, To: to, FromTime: begin, ToTime: end})
	m.addMarker(c.rows.rank, begin, SeverityHigh, CategoryRecording,
		fmt.Sprintf("%s rank %d: operations %d-%d were lost", c.label, c.Rank, from, to-1))
	c.queueSwitch(begin, otf2.MeasurementOff)
	c.queueSwitch(end, otf2.MeasurementOn)
	return m.err
}

// maskChanged takes a change of NCCL's activation mask by RAS, which makes it for all ranks at one time. The missing
// operations are known when NCCL reports again, see unreported.
func (rs *ranks) maskChanged(t uint64, r *shm.Record) {
	rs.countOddity(oddMaskChanged)
	rs.masked = true
	const operations = 1<<shm.EventColl | 1<<shm.EventP2p | 1<<shm.EventCollApi | 1<<shm.EventP2pApi
	off := r.Aux&operations == 0
	text, mode := "paused by RAS", otf2.MeasurementOff
	switch {
	case !off && uint32(r.Arg)&operations == 0:
		text, mode = "goes on", otf2.MeasurementOn
	case !off:
		text = "changed by RAS"
	}
	stamps := ""
	if r.Aux&^uint32(r.Arg)&(1<<shm.EventKernelCh) != 0 {
		stamps = "; it has switched stamps of kernels (KernelCh) on, with which NCCL 2.31 can crash"
	}
	rs.addMarker(nil, t, SeverityHigh, CategoryRecording, fmt.Sprintf(
		"recording %s (or another that wrote NCCL's activation mask): of the events looked at NCCL tells %#x, before "+
			"%#x%s", text, r.Aux, r.Arg, stamps))
	for _, c := range rs.live {
		if !c.life.announced || c.life.final || c.life.off == off {
			continue
		}
		c.life.off = off
		c.queueSwitch(t, mode)
	}
}

// markMissing notes that n operations before op, from an ordinal on, were counted by NCCL and not recorded. Unless a
// change of the mask was seen, the plugin may have lost them, which is counted elsewhere.
func (rs *ranks) markMissing(c *commRank, op *operation, ordinal, n uint64) {
	why := "paused by RAS (or another that wrote NCCL's activation mask): %s %d-%d before this were made and not " +
		"reported"
	if !rs.masked && rs.opts.Source != nil && rs.opts.Source.LostCollectives() {
		why = "lost: %s %d-%d before this were made and not recorded"
	} else {
		c.Unreported += n
	}
	rs.addMarker(c.rows.rank, op.plan.enqueue.start, SeverityHigh, CategoryRecording,
		fmt.Sprintf("%s rank %d: "+why, c.label, c.Rank, op.name, ordinal, ordinal+n-1))
}

// queueSwitch queues a switch of recording.
func (c *commRank) queueSwitch(t uint64, mode otf2.MeasurementMode) {
	c.addPlan(&plan{comm: c, measurement: mode, completion: completion{at: t},
		enqueue: enqueueing{start: t, stop: t, stopped: true}}, t)
}

// writeEdge writes a switch of recording.
func (pw *planWriter) writeEdge(c *commRank, p *plan) {
	if loc := pw.rankLocation(c); loc != nil {
		pw.keepError(loc.w.MeasurementOnOff(loc.raiseTime(p.enqueue.start), nil, p.measurement))
	}
}
