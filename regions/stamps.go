// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// stampFilter decides which GPU stamps of a communicator rank are to be believed. NCCL hands out stamps of other kernels
// when more than 64 are outstanding on a channel (docs/nccl-profiler-api.md §7.3): those of later ones. And from some
// operation on when its host and its device count kernels differently (§7.4): those of earlier ones, in order, none
// twice. Each plan is held against what must be true, when its last event has come:
//
//   - its stamps are there, none ends before it begins;
//   - kernels of one channel follow each other, and no stamp is used twice;
//   - it took no longer than from its launch to the last report;
//   - it began after its launch, ended before the report, and began before its network traffic was over.
//
// Stamps of another kernel can pass all that while kernels queue up. So when counters have parted, all plans are
// distrusted that are not yet written, back to the one that made them part, if that is known, else to the last one whose
// stamps can only be its own, as far as reports tell: launched when nothing else of the communicator rank was under way, and
// reported before anything else was launched. And after something that makes counters part, none but such are believed.
//
// Nothing that stamps look like afterwards shows that counters agree again: at an even beat, or where the host launches
// when the kernel before has ended, they fit as well. Distrust ends only by what parted counters cannot bring about:
//
//   - a ring was overrun: a stamp comes a second time on its channel exactly 64 kernels later, and nothing began before
//     its launch. Plans are believed again for whose reports fewer than 64 kernels were outstanding;
//   - the clock has jumped (gpuclock_step.go), and that explains all that there was against stamps.
//
// Meanwhile the reports of such a communicator rank are not used for the clock, which others share, unless they lie below its line: each is an upper bound all the same,
// but where nothing better comes a line would be fitted to them.
//
// A plan that does nothing worse than begin before its launch is looked at again when it is written, with a clock that is
// better known by then.
type stampFilter struct {
	channels map[uint8]*channelStamps // up to the plan last judged
	newest   uint64                   // number of that plan
	report   uint64                   // last report of the plans judged
	sound    uint64                   // number of the last plan whose stamps can only be its own
	shallow  uint64                   // number of the last plausible plan for whose report no ring can have been overrun
	suspect  uint64                   // number of the first plan that may have made counters part; 0: none
	warned   bool                     // and a plan was not believed for that
	streak   int                      // plausible plans since the last implausible one

	implausible int
	doubts      doubt  // what was against them
	took        int    // of them, plans that took too long
	since       uint64 // when the first of them was reported
	parted      bool   // no later plan is believed
	from, until uint64 // numbers of the plans that are not believed since counters parted, until excluded
	steps       int    // jumps of the clock when they parted
	told        bool   // there is a marker
	unknownTick bool   // marked: GPU stamps whose unit is not known
}

// channelStamps are the last stamps of a channel.
type channelStamps struct {
	end   uint64 // the latest
	steps int    // jumps of the clock so far
	ends  [ringPlaces]uint64
	next  int // place in ends
}

// add takes the stamp of a kernel's end. Operations of one batch are stamped alike.
func (l *channelStamps) add(end uint64, steps int) {
	if l.end < end || l.steps != steps {
		l.end, l.steps = end, steps
	}
	if l.ends[(l.next+ringPlaces-1)%ringPlaces] != end {
		l.ends[l.next] = end
		l.next = (l.next + 1) % ringPlaces
	}
}

// doubt is what speaks against stamps.
type doubt uint8

const (
	doubtEarly  doubt = 1 << iota // begins before its launch
	doubtLate                     // ends after its report, or begins after its network traffic
	doubtTook                     // took longer than from its launch to its report, or ended before it began
	doubtOrder                    // not in the order of kernels
	doubtRound                    // a stamp that was there one round of its ring before
	doubtBroken                   // no stamp, or one that was there for another reason
)

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
	// ringPlaces is how many kernels' stamps of a channel NCCL keeps (§7.3).
	ringPlaces = 64
	// A ProxyOp ends some time after its last transfer.
	networkSlackNs = 100_000
)

// believes tells whether a judged plan's stamps are used.
func (f *stampFilter) believes(p *plan) bool {
	return (p.verdict == plausible || p.verdict == early) && (p.number < f.from || p.number >= f.until)
}

// feeds tells whether a communicator rank's reports are used for the clock.
func (f *stampFilter) feeds() bool { return !f.parted }

// refuse notes what is against a plan.
func (f *stampFilter) refuse(p *plan, d doubt) {
	if f.doubts == 0 {
		f.since = p.stamps().ended
	}
	p.verdict = implausible
	f.implausible++
	f.streak = 0
	f.doubts |= d
	if d&doubtTook != 0 {
		f.took++
	}
}

// trusts ends the distrust of plans: of those to come, and of those that wait from a number on.
func (f *stampFilter) trusts(from uint64) {
	if f.until = max(from, f.from); f.until == f.from {
		f.from, f.until = 0, 0
	}
	f.parted = false
	f.forget()
}

// forget drops what single plans had against them.
func (f *stampFilter) forget() { f.implausible, f.doubts, f.took = 0, 0, 0 }

// jumped ends the distrust if the last jump of the clock explains all of it. Ahead it makes reports come before their
// stamps, and the kernel seem long that ran meanwhile; back it makes kernels begin before their launch, and before earlier ones.
func (f *stampFilter) jumped(k *gpuClock) {
	f.steps = k.steps
	excused := doubtLate | doubtTook
	if k.wentBack {
		excused = doubtEarly | doubtTook | doubtOrder
	}
	if f.parted && f.doubts&^excused == 0 && f.took <= 1 && f.since >= k.jumpAt {
		f.trusts(f.from)
	}
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
	if len(p.spans) == 0 || !c.gpu.known() {
		return
	}
	if f.parted && c.gpu.steps > f.steps {
		f.jumped(c.gpu)
	}
	inOrder, steps := p.number > f.newest, c.gpu.steps
	c.gpu.fit(false)
	e := m.examine(c, p, inOrder)
	if e.doubts == doubtEarly && !f.parted { // the line may lag behind
		c.gpu.fit(true)
		e = m.examine(c, p, inOrder)
	}
	alone := inOrder && f.report < e.launched && c.queue[len(c.queue)-1] == p
	switch {
	case e.doubts != 0:
		f.refuse(p, e.doubts)
		switch {
		case e.doubts == doubtLate:
		case e.doubts&^doubtOrder == doubtEarly:
			p.verdict = early
			if c.gpu.early(e.first, e.launched, e.doubts&doubtOrder != 0) {
				f.jumped(c.gpu)
			}
		default:
			c.gpu.refuted()
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
		if f.streak++; f.streak >= forgetAfter && !f.parted {
			f.forget()
		}
		shallow := inOrder && c.after(p, ringPlaces) < ringPlaces
		if f.parted && shallow && f.doubts&doubtRound != 0 && f.doubts&^(doubtRound|doubtOrder) == 0 {
			f.from = f.shallow + 1
			f.trusts(p.number)
		}
		if !f.parted {
			if e.launched > 0 {
				c.gpu.notBefore(e.first, e.launched)
			}
			if alone && f.implausible == 0 {
				f.sound = p.number
			}
			if shallow {
				f.shallow = p.number
			}
		}
	}
	if inOrder {
		f.newest = p.number
		f.keep(p, c.gpu.steps)
	}
	f.report = max(f.report, p.lastReport)
}

// keep notes the stamps of a plan, as those that the next must follow.
func (f *stampFilter) keep(p *plan, steps int) {
	if f.channels == nil {
		f.channels = make(map[uint8]*channelStamps)
	}
	for _, s := range p.spans {
		l := f.channels[s.channel]
		if l == nil {
			l = new(channelStamps)
			f.channels[s.channel] = l
		}
		l.add(s.end, steps)
	}
}

// after counts the operations that had been enqueued behind a plan, up to a number.
func (c *commRank) after(p *plan, most int) int {
	n := 0
	for i := len(c.queue) - 1; i >= 0 && c.queue[i] != p && n < most; i-- {
		n += len(c.queue[i].ops)
	}
	return n
}

// part distrusts all plans that come, and those that wait since the last one that is sound.
func (f *stampFilter) part(p *plan, steps int) {
	f.told = false
	f.parted, f.steps = true, steps
	from := f.sound + 1
	if f.suspect != 0 && f.suspect < p.number {
		from = max(from, f.suspect)
	}
	if f.until != 0 { // some are distrusted already, and perhaps not written
		from = min(from, f.from)
	}
	f.from, f.until = from, math.MaxUint64
	c := p.comm
	i := slices.IndexFunc(c.queue, func(q *plan) bool { return q.measurement == 0 && q.number >= from })
	if i >= 0 {
		p = c.queue[i]
	}
	c.gpu.doubts(p.start)
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
	doubts   doubt
	off      float64 // by how much (ns) times cannot be true
}

func (m *Model) examine(c *commRank, p *plan, inOrder bool) evidence {
	f, s := &c.stamps, p.stamps()
	e := evidence{first: s.first, launched: m.launched(p)}
	if p.unstamped > 0 {
		e.doubts |= doubtBroken
	}
	for _, span := range p.spans {
		switch {
		case span.begin == 0:
			e.doubts |= doubtBroken
		case span.end < span.begin:
			e.doubts |= doubtTook
		}
		before := f.channels[span.channel]
		if before == nil || !inOrder || before.steps != c.gpu.steps || span.begin >= before.end && span.end > before.end {
			continue
		}
		switch slices.Index(before.ends[:], span.end) {
		case -1:
			e.doubts |= doubtOrder
		case before.next:
			e.doubts |= doubtRound
		default:
			e.doubts |= doubtBroken
		}
	}
	if e.doubts&(doubtBroken|doubtTook) != 0 {
		return e
	}
	grain := c.gpu.grainNs()
	took := float64(c.gpu.nanoseconds(s.last) - c.gpu.nanoseconds(s.first))
	if most := float64(s.ended - min(s.ended, e.launched)); took*(1-maxSlope) > most+grain {
		e.doubts |= doubtTook
		e.off = took - most
	}
	begin, beginOff, _ := c.gpu.host(s.first, s.began)
	end, endOff, ok := c.gpu.host(s.last, s.ended)
	if !ok {
		return e
	}
	beyond := func(d doubt, a, b, off uint64) { // a must not be after b
		if a > b+off {
			e.doubts |= d
			e.off = max(e.off, float64(a-b-off))
		}
	}
	beyond(doubtLate, end, s.ended, uint64(endOff.most)+stampSlackNs)
	if p.netStop != 0 && p.proxiesOpen == 0 && m.Records(shm.EventProxyOp) {
		beyond(doubtLate, begin, p.netStop, uint64(beginOff.most)+networkSlackNs)
	}
	beyond(doubtEarly, e.launched, begin, uint64(beginOff.most)+stampSlackNs)
	return e
}
