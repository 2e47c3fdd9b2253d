// SPDX-License-Identifier: Apache-2.0

package gpuclock

import "math"

// Filter decides which GPU stamps of a communicator rank are to be believed. NCCL hands out stamps of other kernels
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
// distrusted that are not yet written, back to the one that made them part, if that is known, else to the last one
// whose stamps can only be its own, as far as reports tell: launched when nothing else of the communicator rank was
// under way, and reported before anything else was launched. And after something that makes counters part, none but
// such are believed.
//
// Nothing that stamps look like afterwards shows that counters agree again: at an even beat, or where the host launches
// when the kernel before has ended, they fit as well. Distrust ends only by what parted counters cannot bring about:
//
//   - a ring was overrun: a stamp comes a second time on its channel exactly 64 kernels later, and nothing began before
//     its launch. Plans are believed again for whose reports fewer than 64 kernels were outstanding;
//   - the clock has jumped (jump.go), and that explains all that there was against stamps.
//
// What messages to oneself have shifted is given back to the plans whose it is, see realigner.
//
// Meanwhile the reports of such a communicator rank are not used for the clock, which others share, unless they lie
// below its line: each is an upper bound all the same, but where nothing better comes a line would be fitted to them.
//
// A plan that does nothing worse than begin before its launch is looked at again when it is written, with a clock that
// is better known by then.
type Filter struct {
	Clock *Clock // of the GPU that the communicator rank runs on

	realigner realigner // of stamps that were handed to later plans

	channels map[uint8]*channelStamps // up to the plan last judged
	newest   uint64                   // number of that plan
	report   uint64                   // last report of the plans judged
	sound    uint64                   // number of the last plan whose stamps can only be its own
	// number of the last plausible plan for whose report no ring can have been overrun
	shallow uint64
	suspect uint64 // number of the first plan that may have made counters part; 0: none
	warned  bool   // NoticeSelfMessages was given for that
	streak  int    // plausible plans since the last implausible one

	implausible int
	doubts      doubt  // what was against them
	took        int    // of them, plans that took too long
	since       uint64 // when the first of them was reported
	parted      bool   // no later plan is believed
	from, until uint64 // numbers of the plans that are not believed since counters parted, until excluded
	jumps       int    // of the clock when they parted
	withheld    bool   // NoticeWithheld was given for that
	unknownTick bool   // NoticeUnknownTick was given
}

const (
	// So many implausible plans are no accident, unless so many plausible ones come between them.
	maxImplausible = 3
	forgetAfter    = 64
	// partedNs is an error that no mapping explains: the stamps are those of other kernels.
	partedNs = 100_000
)

// Notice is what a reader of the times should be told, once for each time that it begins.
type Notice uint8

// Notices.
const (
	NoticeNone Notice = iota
	// from this plan on stamps may be those of other kernels, and are used only where it is certain whose they are
	NoticeSelfMessages
	NoticeWithheld    // from this plan on stamps are those of other kernels, and are not used
	NoticeUnknownTick // the unit of the GPU's stamps is not known yet
)

// Queue is what the filter asks about the plans of its communicator rank that were enqueued and are not written yet.
type Queue interface {
	// Last reports whether a plan is the last in the queue.
	Last(number uint64) bool
	// Behind counts the operations that were enqueued behind a plan, up to most.
	Behind(number uint64, most int) int
	// Since is when the first plan from a number on was enqueued; false if none waits.
	Since(number uint64) (uint64, bool)
}

// Report takes a stamp for the clock; 0 is none. seen is when NCCL reported it.
func (f *Filter) Report(stamp, seen uint64) { f.Clock.add(stamp, seen, f.parted) }

// believes reports whether a judged plan's stamps are used.
func (f *Filter) believes(p *Plan) bool {
	return (p.verdict == plausible || p.verdict == early) && (p.Number < f.from || p.Number >= f.until)
}

// refuse notes what is against a plan.
func (f *Filter) refuse(p *Plan, d doubt) {
	if f.doubts == 0 {
		f.since = p.ends().ended
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
func (f *Filter) trusts(from uint64) {
	if f.until = max(from, f.from); f.until == f.from {
		f.from, f.until = 0, 0
	}
	f.parted = false
	f.forget()
}

// forget drops what single plans had against them.
func (f *Filter) forget() { f.implausible, f.doubts, f.took = 0, 0, 0 }

// jumped ends the distrust if the last jump of the clock explains all of it. Ahead it makes reports come before their
// stamps, and the kernel seem long that ran meanwhile; back it makes kernels begin before their launch, and before
// earlier ones.
func (f *Filter) jumped(k *Clock) {
	f.jumps = k.jumps
	excused := doubtLate | doubtTook
	if k.wentBack {
		excused = doubtEarly | doubtTook | doubtOrder
	}
	if f.parted && f.doubts&^excused == 0 && f.took <= 1 && f.since >= k.jumpAt {
		f.trusts(f.from)
	}
}

// Suspect tells that a plan which is being enqueued, or judged next, has messages to oneself, which the device counts
// and the host does not, so that later stamps are those of earlier kernels (docs/nccl-profiler-api.md §7.4): also of
// plans that are judged before it.
func (f *Filter) Suspect(number uint64) {
	if f.suspect == 0 {
		f.suspect = number
	}
}

// Judge looks at the stamps of a plan whose reports have all come. A plan is judged once, and not before the clock maps
// stamps.
func (f *Filter) Judge(p *Plan, b Bounds, q Queue) Notice {
	if p.verdict != unjudged {
		return NoticeNone
	}
	k := f.Clock
	p.behind = max(p.behind, q.Behind(p.Number, ringPlaces))
	if len(p.Kernels) == 0 || !k.known() {
		return NoticeNone
	}
	if f.parted && k.jumps > f.jumps {
		f.jumped(k)
	}
	inOrder, notice := p.Number > f.newest, NoticeNone
	k.Fit(false)
	e := f.examine(p, b, inOrder)
	if e.doubts == doubtEarly && !f.parted { // the line may lag behind
		k.Fit(true)
		e = f.examine(p, b, inOrder)
	}
	alone := inOrder && f.report < b.Launched && q.Last(p.Number)
	switch {
	case e.doubts != 0:
		f.distrust(p, b, e, q)
	case f.suspect != 0 && p.Number >= f.suspect && !alone:
		p.verdict = implausible
		if !f.warned && !f.parted {
			f.warned, notice = true, NoticeSelfMessages
		}
	default:
		f.accept(p, b, e, alone, inOrder && q.Behind(p.Number, ringPlaces) < ringPlaces)
	}
	if inOrder {
		f.newest = p.Number
		f.keep(p)
	}
	f.report = max(f.report, p.Reported)
	return notice
}

// distrust takes a plan that something speaks against, and with it others, if that can be no accident.
func (f *Filter) distrust(p *Plan, b Bounds, e evidence, q Queue) {
	k, jumps := f.Clock, f.Clock.jumps
	f.refuse(p, e.doubts)
	switch {
	case e.doubts == doubtLate:
	case e.doubts&^doubtOrder == doubtEarly:
		p.verdict = early
		if k.early(e.first, b.Launched, e.doubts&doubtOrder != 0) {
			f.jumped(k)
		}
	default:
		k.refuted()
	}
	if !f.parted && (e.off > partedNs || f.implausible >= maxImplausible) && k.jumps == jumps {
		f.part(p, b, q)
	}
}

// accept takes a plan that nothing speaks against. Alone, its stamps can only be its own; shallow, no ring was overrun
// before its report.
func (f *Filter) accept(p *Plan, b Bounds, e evidence, alone, shallow bool) {
	p.verdict = plausible
	if f.streak++; f.streak >= forgetAfter && !f.parted {
		f.forget()
	}
	if f.parted && shallow && f.doubts&doubtRound != 0 && f.doubts&^(doubtRound|doubtOrder) == 0 {
		f.from = f.shallow + 1
		f.trusts(p.Number)
	}
	if f.parted {
		return
	}
	if b.Launched > 0 {
		f.Clock.notBefore(e.first, b.Launched, !b.Replayed)
	}
	if alone && f.implausible == 0 {
		f.sound = p.Number
	}
	if shallow {
		f.shallow = p.Number
	}
}

// keep notes the stamps of a plan, as those that the next must follow.
func (f *Filter) keep(p *Plan) {
	if f.channels == nil {
		f.channels = make(map[uint8]*channelStamps)
	}
	for _, s := range p.Kernels {
		l := f.channels[s.Channel]
		if l == nil {
			l = new(channelStamps)
			f.channels[s.Channel] = l
		}
		l.add(s.End, f.Clock.jumps)
	}
}

// part distrusts all plans that come, and those that wait since the last one that is sound.
func (f *Filter) part(p *Plan, b Bounds, q Queue) {
	f.withheld = false
	f.parted, f.jumps = true, f.Clock.jumps
	from := f.sound + 1
	if f.suspect != 0 && f.suspect < p.Number {
		from = max(from, f.suspect)
	}
	if f.until != 0 { // some are distrusted already, and perhaps not written
		from = min(from, f.from)
	}
	f.from, f.until = from, math.MaxUint64
	since, ok := q.Since(from)
	if !ok {
		since = b.Start
	}
	f.Clock.doubts(since)
}

// Interval is when a plan that was judged ran, as the clock is known by now; false if its stamps are not to be
// believed.
func (f *Filter) Interval(p *Plan, b Bounds) (Interval, Notice, bool) {
	if !f.Clock.known() {
		if f.unknownTick {
			return Interval{}, NoticeNone, false
		}
		f.unknownTick = true
		return Interval{}, NoticeUnknownTick, false
	}
	if i, ok := f.realigned(p, b); ok {
		return i, NoticeNone, true
	}
	if !f.believes(p) {
		if f.withheld || p.Number < f.from || p.Number >= f.until {
			return Interval{}, NoticeNone, false
		}
		f.withheld = true
		return Interval{}, NoticeWithheld, false
	}
	i, ok := f.mapped(p, b)
	return i, NoticeNone, ok
}

// mapped is where the clock puts a plan; false, and for good, if it cannot have run then.
func (f *Filter) mapped(p *Plan, b Bounds) (Interval, bool) {
	i, known, plausible := f.located(p, b)
	if known && !plausible {
		p.verdict = implausible
	}
	return i, known && plausible
}

// located is where the clock puts a plan, if it is known there.
func (f *Filter) located(p *Plan, b Bounds) (i Interval, known, plausible bool) {
	s := p.ends()
	begin, beginMargin, _ := f.Clock.Host(s.first, s.began)
	end, endMargin, ok := f.Clock.Host(s.last, s.ended)
	if !ok {
		return Interval{}, false, false
	}
	// The clock is known better now than when the plan was judged.
	if begin+uint64(beginMargin.most)+slackNs < b.Launched || end > s.ended+uint64(endMargin.most)+slackNs {
		return Interval{}, true, false
	}
	within := window{least: int64(b.Launched - begin), most: min(int64(s.began-begin), int64(s.ended-end))}
	if b.NetStop != 0 {
		within.most = max(min(within.most, int64(b.NetStop-begin)), within.least)
	}
	moved, off := within.nearest(int64(math.Ceil(min(max(beginMargin.usual, endMargin.usual), unknownNs))))
	begin, end = begin+uint64(moved), end+uint64(moved)
	return Interval{begin, max(begin, min(end, s.ended)), off}, true, true
}

// window is by how much a plan may lie later than the clock says, by what has been seen of the plan itself: none of its
// kernels has begun before its launch, or after its network traffic was over, and its ends are before their reports.
type window struct{ least, most int64 }

// unknownNs is more than any clock may be off by.
const unknownNs = 1 << 62

// nearest is by how much a plan is moved, as a whole, since its stamps tell how long it took; and what is left of the
// uncertainty.
func (w window) nearest(uncertainty int64) (moved int64, off uint64) {
	if w.least > w.most { // by what clocks and stamps are rounded
		w.least, w.most = w.most, w.least
	}
	moved = max(min(0, w.most), w.least)
	if least, most := max(w.least, -uncertainty), min(w.most, uncertainty); least <= most {
		return moved, uint64(max(most-moved, moved-least))
	}
	return moved, uint64(min(uncertainty, w.most-w.least))
}
