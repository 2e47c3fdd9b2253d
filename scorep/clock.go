// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// hostClock is the shard.Clock source of test hosts that hand out their own times.
const hostClock = "host"

// alignClocks sets the offset of every process against the earliest process of the same boot.
//
// A process's time is anchorReal + (CLOCK_MONOTONIC_RAW − anchorRaw). The raw clock is one for all
// processes of a boot, so two of them differ by a constant that is known exactly: the difference of
// their (anchorReal − anchorRaw), which is what CLOCK_REALTIME was stepped or slewed by between the
// two anchors. Machines are not compared here, see synchronize.
func alignClocks(parts []*part) {
	byBoot := make(map[string][]*part)
	for _, p := range parts {
		c := p.process.Clock
		p.offset = 0
		if p.process.BootID != "" && c.Source != hostClock && c.AnchorRaw != 0 && c.AnchorReal != 0 {
			byBoot[p.process.BootID] = append(byBoot[p.process.BootID], p)
		}
	}
	for _, group := range byBoot {
		reference := slices.MinFunc(group, func(a, b *part) int {
			return cmp.Or(
				cmp.Compare(a.process.Clock.AnchorRaw, b.process.Clock.AnchorRaw),
				cmp.Compare(a.process.UUID, b.process.UUID))
		})
		for _, p := range group {
			p.offset = int64(lineOrigin(reference) - lineOrigin(p))
		}
	}
}

// lineOrigin is the real time at which the raw clock read 0, modulo 2^64.
func lineOrigin(p *part) uint64 { return p.process.Clock.AnchorReal - p.process.Clock.AnchorRaw }

// at corrects a time of the process; 0, which means "none", stays 0.
func (p *part) at(t uint64) uint64 {
	if t == 0 {
		return 0
	}
	if p.onto != nil {
		return otf2.Corrected(p.onto, t)
	}
	return otf2.Corrected(p.knots, t+uint64(p.offset))
}

// life finds the process's first and last known times, on its own clock.
func life(p *experiment.Process) lifespan {
	l := lifespan{begin: math.MaxUint64, end: p.LastTime}
	if p.FirstTime != 0 {
		l.begin = p.FirstTime
	}
	for _, c := range p.Comms {
		if unannounced(&c) {
			continue
		}
		l.begin = min(l.begin, c.InitTime)
		l.end = max(l.end, c.InitTime, c.FinalTime)
	}
	if l.begin == math.MaxUint64 {
		l.begin = p.Clock.AnchorReal
	}
	l.end = max(l.begin, l.end)
	return l
}

// begin and end are the process's life as far as it is known, corrected; a running one has no end.
func (p *part) begin() uint64 { return p.at(p.life.begin) }

func (p *part) end() uint64 {
	if p.state == Running {
		return math.MaxUint64
	}
	return p.at(p.life.end)
}

// clockOffsets are the records that make readers correct the process's times: at least two of them, because a
// single one has no effect, at different times.
func (p *part) clockOffsets() []otf2.ClockOffset {
	if p.onto != nil {
		return p.onto
	}
	if p.knots != nil {
		records := make([]otf2.ClockOffset, len(p.knots))
		for i, k := range p.knots {
			records[i] = otf2.ClockOffset{Time: k.Time - otf2.Timestamp(p.offset), Offset: p.offset + k.Offset, StdDev: k.StdDev}
		}
		return records
	}
	if p.offset == 0 {
		return nil
	}
	first, last := p.process.FirstTime, p.process.LastTime
	if last <= first {
		last = first + 1
	}
	return []otf2.ClockOffset{
		{Time: otf2.Timestamp(first), Offset: p.offset},
		{Time: otf2.Timestamp(last), Offset: p.offset},
	}
}
