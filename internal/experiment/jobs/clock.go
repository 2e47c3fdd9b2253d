// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// HostClock is the provenance.Clock source of test hosts that provide their own times.
const HostClock = "host"

// alignClocks sets the offset of every process against the earliest process of the same boot.
//
// A process's time is anchorReal + (CLOCK_MONOTONIC_RAW − anchorRaw). The raw clock is one for all
// processes of a boot, so two of them differ by a constant that is known exactly: the difference of
// their (anchorReal − anchorRaw), which is what CLOCK_REALTIME was stepped or slewed by between the
// two anchors. Machines are not compared here, see synchronize.
func alignClocks(parts []*Process) {
	byBoot := make(map[string][]*Process)
	for _, p := range parts {
		c := p.Shard.Clock
		p.Offset = 0
		if p.Shard.BootID != "" && c.Source != HostClock && c.AnchorRaw != 0 && c.AnchorReal != 0 {
			byBoot[p.Shard.BootID] = append(byBoot[p.Shard.BootID], p)
		}
	}
	for _, group := range byBoot {
		reference := slices.MinFunc(group, func(a, b *Process) int {
			return cmp.Or(cmp.Compare(a.Shard.Clock.AnchorRaw, b.Shard.Clock.AnchorRaw),
				cmp.Compare(a.Shard.UUID, b.Shard.UUID))
		})
		for _, p := range group {
			p.Offset = int64(lineOrigin(reference) - lineOrigin(p))
		}
	}
}

// lineOrigin returns the real time at which the raw clock read 0, modulo 2^64.
func lineOrigin(p *Process) uint64 { return p.Shard.Clock.AnchorReal - p.Shard.Clock.AnchorRaw }

// At corrects a time of the process; 0, which means "none", stays 0.
func (p *Process) At(t uint64) uint64 {
	if t == 0 {
		return 0
	}
	if p.Onto != nil {
		return otf2.Corrected(p.Onto, t)
	}
	return otf2.Corrected(p.Knots, t+uint64(p.Offset))
}

// life returns the process's first and last known times, on its own clock.
func life(p *description.Process) Lifespan {
	l := Lifespan{Begin: math.MaxUint64, End: p.LastTime}
	if p.FirstTime != 0 {
		l.Begin = p.FirstTime
	}
	for _, c := range p.Comms {
		if unannounced(&c) {
			continue
		}
		l.Begin = min(l.Begin, c.InitTime)
		l.End = max(l.End, c.InitTime, c.FinalTime)
	}
	if l.Begin == math.MaxUint64 {
		l.Begin = p.Clock.AnchorReal
	}
	l.End = max(l.Begin, l.End)
	return l
}

// roughly converts a time of the process approximately to those of others, for distinguishing jobs: as At, and without
// the lead of its machine's clock if clocks have not been compared by events.
func (p *Process) roughly(t uint64) uint64 {
	at := p.At(t)
	if t == 0 || p.Knots != nil || p.Onto != nil {
		return at
	}
	return Lifespan{Begin: at}.shiftBack(p.lead).Begin
}

// Correct sets corrections of the process's times that were derived from events, which replace its machine's lead.
func (p *Process) Correct(knots []otf2.ClockOffset) { p.Knots, p.lead = knots, 0 }

// ClockName names the clock that a process's times come from: processes of one boot share it.
func (p *Process) ClockName() string {
	if p.Shard.BootID == "" {
		return "process " + p.Shard.UUID
	}
	return "boot " + p.Shard.BootID
}

// Begin returns the earliest known time of the process, archive time in ns.
func (p *Process) Begin() uint64 { return p.roughly(p.Life.Begin) }

// End returns the last known time of the process, archive time in ns; the greatest time while it runs.
func (p *Process) End() uint64 {
	if p.State == Running {
		return math.MaxUint64
	}
	return p.roughly(p.Life.End)
}

// ClockOffsets returns the records by which readers correct the process's times: at least two at different times,
// because a single one has no effect.
func (p *Process) ClockOffsets() []otf2.ClockOffset {
	if p.Onto != nil {
		return p.Onto
	}
	if p.Knots != nil {
		records := make([]otf2.ClockOffset, len(p.Knots))
		for i, k := range p.Knots {
			records[i] = otf2.ClockOffset{Time: k.Time - otf2.Timestamp(p.Offset), Offset: p.Offset + k.Offset,
				StdDev: k.StdDev}
		}
		return records
	}
	if p.Offset == 0 {
		return nil
	}
	first, last := p.Shard.FirstTime, p.Shard.LastTime
	if last <= first {
		last = first + 1
	}
	return []otf2.ClockOffset{
		{Time: otf2.Timestamp(first), Offset: p.Offset},
		{Time: otf2.Timestamp(last), Offset: p.Offset},
	}
}
