// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"math"

	"ncclotf2/plugin/shm"
)

// stampFilter decides which GPU stamps of a communicator rank are to be believed. NCCL hands out stamps of other kernels
// when more than 64 are outstanding on a channel (§7.3 of the notes on the API), and from some
// operation on when its host and its device count kernels differently (§7.4): those of earlier kernels, in order, none
// twice. Each plan is held against what must be true, when its last event has come:
//
//   - its stamps are there, none ends before it begins;
//   - kernels of one channel follow each other, and no stamp is used twice;
//   - it took no longer than from its launch to the last report;
//   - it began after its launch, ended before the report, and began before its network traffic was over.
//
// Stamps of another kernel can pass all that while kernels queue up. So when counters have parted, all plans are
// distrusted that are not yet written, back to the one that made them part, if that is known, else to the last one whose
// stamps can only be its own: launched when nothing else of the communicator rank was under way, and
// reported before anything else was launched. And after something that makes counters part, none but such are believed.
// Several such plans in a row, not launched at an even beat, show that the counters had not parted for good: a ring was
// overrun, or the clock had jumped or changed its rate. From them on stamps are believed again.
//
// A plan that does nothing worse than begin before its launch is looked at again when it is written, with a clock that is
// better known by then.
type stampFilter struct {
	channels map[uint8]channelStamps // of the plan last judged
	newest   uint64                  // number of that plan
	report   uint64                  // last report of the plans judged
	sound    uint64                  // number of the last plan whose stamps can only be its own
	suspect  uint64                  // number of the first plan that may have made counters part; 0: none
	warned   bool                    // and a plan was not believed for that
	streak   int                     // plausible plans since the last implausible one

	implausible int
	parted      bool   // no later plan is believed
	from, until uint64 // numbers of the plans that are not believed since counters parted, until excluded
	steps       int    // jumps of the clock when they parted
	again       int    // plans in a row since then whose stamps can only be their own
	beat        beat   // of their launches
	againFrom   uint64 // number of the first of them
	told        bool   // there is a marker
	unknownTick bool   // marked: GPU stamps whose unit is not known
}

type channelStamps struct {
	end   uint64
	steps int // jumps of the clock so far
}

// stampVerdict is what is thought of a plan's stamps.
type stampVerdict uint8

const (
	unjudged stampVerdict = iota
	plausible
	early // begins before its launch, as far as the clock is known
	implausible
)

const (
	// stampSlackNs is how far a mapped time may lie outside its bounds, beyond its uncertainty.
	stampSlackNs = 5_000
	// partedNs is an error that no mapping explains: the stamps are those of other kernels.
	partedNs = 100_000
	// So many implausible plans are no accident, unless so many plausible ones come between them.
	maxImplausible = 3
	forgetAfter    = 64
	// So many plans whose stamps can only be their own do not come by chance.
	soundAgain = 8
	// A ProxyOp ends some time after its last transfer.
	networkSlackNs = 100_000
)

// believes tells whether a judged plan's stamps are used.
func (f *stampFilter) believes(p *plan) bool {
	return (p.verdict == plausible || p.verdict == early) && (p.number < f.from || p.number >= f.until)
}

// refuse takes back the verdict on a plan.
func (f *stampFilter) refuse(p *plan) {
	p.verdict = implausible
	f.implausible++
	f.streak, f.again = 0, 0
}

// trusts ends the distrust of plans: of those to come, and of those that wait from a number on.
func (f *stampFilter) trusts(from uint64) {
	if f.until = max(from, f.from); f.until == f.from {
		f.from, f.until = 0, 0
	}
	f.parted, f.told, f.implausible, f.again = false, false, 0, 0
}

// judge looks at the stamps of a plan whose events have all come.
func (m *Model) judge(p *plan) {
	if p.verdict != unjudged || p.captureOnly {
		return
	}
	c, f := p.comm, &p.comm.stamps
	if f.suspect == 0 && m.mayPart(p) {
		f.suspect = p.number
	}
	if len(p.spans) == 0 {
		return
	}
	if !c.gpu.known() {
		return
	}
	if f.parted && c.gpu.steps > f.steps { // the clock had jumped, that was all
		f.trusts(f.from)
	}
	inOrder, steps := p.number > f.newest, c.gpu.steps
	c.gpu.fit(false)
	e := m.examine(c, p, inOrder)
	alone := inOrder && f.report < e.launched && c.queue[len(c.queue)-1] == p
	switch {
	case e.early && e.off < partedNs && c.gpu.bent():
		p.verdict = early
	case e.foreign || e.off > 0:
		f.refuse(p)
		switch {
		case e.foreign:
			c.gpu.refuted()
		case e.early:
			p.verdict = early
			if c.gpu.early(e.first, e.launched) && f.parted {
				f.trusts(f.from)
			}
		}
		if !f.parted && (e.off > partedNs || f.implausible >= maxImplausible) && c.gpu.steps == steps {
			f.part(p, steps)
		}
	case f.suspect != 0 && p.number >= f.suspect && !alone:
		p.verdict = implausible
		if !f.warned && !f.parted {
			f.warned = true
			m.mark(c.loc, p.start, SeverityHigh, "Implausible GPU times",
				c.label+": after messages to oneself GPU stamps may be those of other kernels; they are used only where they cannot be")
		}
	default:
		p.verdict = plausible
		if f.streak++; f.streak >= forgetAfter {
			f.implausible = 0
		}
		if f.parted && alone {
			if f.again++; f.again == 1 {
				f.againFrom, f.beat = p.number, beat{}
			}
			if f.beat.add(e.launched); f.again >= soundAgain && !f.beat.even() {
				f.trusts(f.againFrom)
			}
		}
		if !f.parted {
			if e.launched > 0 {
				c.gpu.notBefore(e.first, e.launched)
			}
			if alone {
				f.sound = p.number
			}
		}
	}
	if inOrder {
		f.newest = p.number
	}
	f.report = max(f.report, p.lastReport)
	if f.channels == nil {
		f.channels = make(map[uint8]channelStamps)
	}
	for _, s := range p.spans {
		if l := f.channels[s.channel]; s.end > l.end || l.steps != c.gpu.steps {
			f.channels[s.channel] = channelStamps{s.end, c.gpu.steps}
		}
	}
}

// part distrusts all plans that come, and those that wait since the last one that is sound.
func (f *stampFilter) part(p *plan, steps int) {
	f.parted, f.steps, f.again = true, steps, 0
	if f.from = f.sound + 1; f.suspect != 0 && f.suspect < p.number {
		f.from = max(f.from, f.suspect)
	}
	f.until = math.MaxUint64
}

// withhold marks that GPU times are not used from a plan on, unless they already are not.
func (m *Model) withhold(c *commRank, p *plan) {
	f := &c.stamps
	if f.told || p.number < f.from || p.number >= f.until {
		return
	}
	f.told = true
	m.mark(c.loc, p.start, SeverityHigh, "Implausible GPU times",
		c.label+": the GPU stamps belong to other kernels; from here on they are not used")
}

// mayPart tells whether a plan makes host and device count differently, or may: messages to oneself up to NCCL
// 2.30, which the device counts and the host does not.
func (m *Model) mayPart(p *plan) bool {
	if v := m.process.LibraryVersion; v >= 23100 {
		return false
	}
	for _, op := range p.ops {
		if op.p2p && op.task && int(op.peer) == p.comm.Rank && p.comm.NRanks > 1 {
			return true
		}
	}
	return false
}

// evidence is what speaks against a plan's stamps.
type evidence struct {
	first    uint64 // stamp
	launched uint64
	foreign  bool    // stamps that are no kernel's, or another one's, whatever the clock
	early    bool    // nothing else but that it seems to have begun before its launch, perhaps before earlier kernels
	off      float64 // by how much (ns) times cannot be true
}

func (m *Model) examine(c *commRank, p *plan, inOrder bool) evidence {
	f, s := &c.stamps, p.stamps()
	e := evidence{first: s.first, launched: m.launched(p), foreign: p.unstamped > 0}
	back := false
	for _, span := range p.spans {
		before := f.channels[span.channel]
		follows := inOrder && before.steps == c.gpu.steps
		switch {
		case span.begin == 0 || span.end < span.begin || follows && span.end == before.end:
			e.foreign = true
		case follows && span.begin < before.end:
			back = true
		}
	}
	if e.foreign {
		return e
	}
	grain := c.gpu.grainNs()
	took := float64(c.gpu.nanoseconds(s.last) - c.gpu.nanoseconds(s.first))
	if most := float64(s.ended - min(s.ended, e.launched)); took*(1-maxSlope) > most+grain {
		e.foreign, e.off = true, took-most
		return e
	}
	begin, beginOff, _ := c.gpu.host(s.first, s.began)
	end, endOff, ok := c.gpu.host(s.last, s.ended)
	if !ok {
		e.foreign = back
		return e
	}
	beyond := func(a, b, off uint64) { // a must not be after b
		if a > b+off {
			e.off = max(e.off, float64(a-b-off))
		}
	}
	beyond(end, s.ended, endOff+stampSlackNs)
	if p.netStop != 0 && p.proxiesOpen == 0 && m.Records(shm.EventProxyOp) {
		beyond(begin, p.netStop, beginOff+networkSlackNs)
	}
	late := e.off
	beyond(e.launched, begin, beginOff+stampSlackNs)
	e.early = late == 0 && e.off > 0
	e.foreign = back && !e.early
	return e
}
