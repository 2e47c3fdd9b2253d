// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
)

// Filter decides which GPU stamps of a communicator rank are believed. NCCL reports stamps of later kernels when more
// than 64 are outstanding on a channel (docs/nccl-profiler-api.md §7.3). When its host and its device count kernels
// differently (§7.4), it reports stamps of earlier kernels from some operation on, in order, none twice. When the last
// event of a plan has come, these conditions are checked:
//
//   - its stamps are there, none ends before it begins;
//   - kernels of one channel follow each other, and no stamp is used twice;
//   - it took no longer than from its launch to the last report;
//   - it began after its launch, ended before the report, and began before its network traffic was over.
//
// Stamps of another kernel can pass these checks while kernels queue up. So when the counters have diverged, all
// unwritten plans are distrusted, back to the one that caused it, if that is known, else to the last plan whose stamps
// can only be its own: it was launched when nothing else of the communicator rank was under way, and reported before
// anything else was launched. After a possible cause of divergence, only such plans are believed.
//
// Later stamps cannot show that the counters agree again: at regular intervals, or if each launch waits for the
// previous kernel, shifted stamps fit as well. Distrust ends only by observations that diverged counters cannot
// produce:
//
//   - a ring was overrun: a stamp comes a second time on its channel exactly 64 kernels later, and nothing began before
//     its launch. Plans are believed again if fewer than 64 kernels were outstanding at their reports;
//   - the clock has jumped (jump.go), and that explains all doubts about stamps.
//
// Stamps shifted by messages to oneself are returned to their plans, see realigner.
//
// Meanwhile the reports of such a communicator rank are not used for the clock, which others share, unless they lie
// below its line: they are valid upper bounds, but without better reports a line would be fitted to them.
//
// A plan whose only doubt is that it begins before its launch is checked again when it is written, with a better known
// clock.
type Filter struct {
	Clock *Clock // of the GPU that the communicator rank runs on

	realigner realigner // of stamps that were handed to later plans

	channels    map[uint8]*channelStamps // up to the last judged plan
	judged      judgedPlans
	suspects    suspects
	doubtful    doubtfulPlans
	distrust    distrust
	unknownTick bool // NoticeUnknownTick was returned
}

// judgedPlans is what the plans judged so far show.
type judgedPlans struct {
	newest uint64 // number of the last plan
	report uint64 // last report
	sound  uint64 // number of the last plan whose stamps can only be its own
	// number of the last plausible plan for whose report no ring can have been overrun
	shallow uint64
	streak  int // plausible plans since the last implausible one
}

// suspects are the plans since a possible cause of divergence.
type suspects struct {
	from   uint64 // number of the first plan that may have made the counters diverge; 0: none
	warned bool   // NoticeSelfMessages was returned for it
}

// doubtfulPlans are the implausible plans since the doubts were last cleared.
type doubtfulPlans struct {
	plans  int
	doubts doubt  // doubts about them
	took   int    // of them, plans that took too long
	since  uint64 // when the first of them was reported
}

// distrust is whether the counters have diverged.
type distrust struct {
	on          bool   // no later plan is believed
	from, until uint64 // numbers of the plans distrusted since the counters diverged, until excluded
	jumps       int    // of the clock when the counters diverged
	withheld    bool   // NoticeWithheld was returned for it
}

const (
	// As many implausible plans are no accident, unless forgetAfter plausible ones come between them.
	maxImplausible = 3
	forgetAfter    = 64
	// partedNs is an error that no mapping explains: the stamps are those of other kernels.
	partedNs = 100_000
)

// Notice is a condition that readers of the times should know, returned once each time that it begins.
type Notice uint8

// Notices.
const (
	NoticeNone Notice = iota
	// stamps from this plan on may be those of other kernels, and are used only if they certainly are not
	NoticeSelfMessages
	NoticeWithheld    // stamps from this plan on are those of other kernels, and are not used
	NoticeUnknownTick // the unit of the GPU's stamps is not known yet
)

// Queue provides the plans of the communicator rank that were enqueued and are not written yet.
type Queue interface {
	// IsLast reports whether a plan is the last in the queue.
	IsLast(number uint64) bool
	// OperationsBehind counts the operations enqueued after a plan, up to most.
	OperationsBehind(number uint64, most int) int
	// EnqueuedSince returns when the first plan from a number on was enqueued; false if none is waiting.
	EnqueuedSince(number uint64) (uint64, bool)
}

// AddReport takes a stamp for the clock; 0 is none. seen is when NCCL reported it.
func (f *Filter) AddReport(stamp, seen uint64) { f.Clock.addStamp(stamp, seen, f.distrust.on) }

// believesPlan reports whether a judged plan's stamps are used.
func (f *Filter) believesPlan(p *Plan) bool {
	return (p.verdict == plausible || p.verdict == early) &&
		(p.Number < f.distrust.from || p.Number >= f.distrust.until)
}

// refusePlan notes doubts about a plan.
func (f *Filter) refusePlan(p *Plan, d doubt) {
	if f.doubtful.doubts == 0 {
		f.doubtful.since = p.planEnds().ended
	}
	p.verdict = implausible
	f.doubtful.plans++
	f.judged.streak = 0
	f.doubtful.doubts |= d
	if d&doubtTook != 0 {
		f.doubtful.took++
	}
}

// endDistrust ends the distrust of later plans, and of waiting ones from a number on.
func (f *Filter) endDistrust(from uint64) {
	if f.distrust.until = max(from, f.distrust.from); f.distrust.until == f.distrust.from {
		f.distrust.from, f.distrust.until = 0, 0
	}
	f.distrust.on = false
	f.clearDoubts()
}

// clearDoubts clears the doubts about single plans.
func (f *Filter) clearDoubts() { f.doubtful.plans, f.doubtful.doubts, f.doubtful.took = 0, 0, 0 }

// explainByJump ends the distrust if the last jump of the clock explains all of it. After a jump ahead, reports seem to
// come before their stamps, and the kernel that ran meanwhile seems long; after a jump back, kernels seem to begin
// before their launch, and before earlier ones.
func (f *Filter) explainByJump(k *Clock) {
	f.distrust.jumps = k.jumps
	excused := doubtLate | doubtTook
	if k.wentBack {
		excused = doubtEarly | doubtTook | doubtOrder
	}
	if f.distrust.on && f.doubtful.doubts&^excused == 0 && f.doubtful.took <= 1 && f.doubtful.since >= k.jumpAt {
		f.endDistrust(f.distrust.from)
	}
}

// SuspectFrom states that a plan that is being enqueued, or judged next, has messages to oneself, which the device
// counts and the host does not, so that later stamps are those of earlier kernels (docs/nccl-profiler-api.md §7.4):
// even those of plans that are judged before it.
func (f *Filter) SuspectFrom(number uint64) {
	if f.suspects.from == 0 {
		f.suspects.from = number
	}
}

// JudgePlan checks the stamps of a plan whose reports have all come. A plan is judged once, when the clock can map
// stamps.
func (f *Filter) JudgePlan(p *Plan, b Bounds, q Queue) Notice {
	if p.verdict != unjudged {
		return NoticeNone
	}
	k := f.Clock
	p.behind = max(p.behind, q.OperationsBehind(p.Number, ringPlaces))
	if len(p.Kernels) == 0 || !k.canMap() {
		return NoticeNone
	}
	if f.distrust.on && k.jumps > f.distrust.jumps {
		f.explainByJump(k)
	}
	inOrder, notice := p.Number > f.judged.newest, NoticeNone
	k.FitLine(false)
	e := f.examinePlan(p, b, inOrder)
	if e.doubts == doubtEarly && !f.distrust.on { // the line may not be current
		k.FitLine(true)
		e = f.examinePlan(p, b, inOrder)
	}
	alone := inOrder && f.judged.report < b.Launched && q.IsLast(p.Number)
	switch {
	case e.doubts != 0:
		f.distrustPlan(p, b, e, q)
	case f.suspects.from != 0 && p.Number >= f.suspects.from && !alone:
		p.verdict = implausible
		if !f.suspects.warned && !f.distrust.on {
			f.suspects.warned, notice = true, NoticeSelfMessages
		}
	default:
		f.acceptPlan(p, b, e, alone, inOrder && q.OperationsBehind(p.Number, ringPlaces) < ringPlaces)
	}
	if inOrder {
		f.judged.newest = p.Number
		f.storeStamps(p)
	}
	f.judged.report = max(f.judged.report, p.Reported)
	return notice
}

// distrustPlan takes a plan with doubtful stamps; if that cannot be an accident, other plans are distrusted too.
func (f *Filter) distrustPlan(p *Plan, b Bounds, e evidence, q Queue) {
	k, jumps := f.Clock, f.Clock.jumps
	f.refusePlan(p, e.doubts)
	switch {
	case e.doubts == doubtLate:
	case e.doubts&^doubtOrder == doubtEarly:
		p.verdict = early
		if k.isJumpBack(e.first, b.Launched, e.doubts&doubtOrder != 0) {
			f.explainByJump(k)
		}
	default:
		k.dismissJumpBack()
	}
	if !f.distrust.on && (e.off > partedNs || f.doubtful.plans >= maxImplausible) && k.jumps == jumps {
		f.distrustAll(p, b, q)
	}
}

// acceptPlan takes a plan without doubts. alone: its stamps can only be its own; shallow: no ring was overrun before
// its report.
func (f *Filter) acceptPlan(p *Plan, b Bounds, e evidence, alone, shallow bool) {
	p.verdict = plausible
	if f.judged.streak++; f.judged.streak >= forgetAfter && !f.distrust.on {
		f.clearDoubts()
	}
	if f.distrust.on && shallow && f.doubtful.doubts&doubtRound != 0 &&
		f.doubtful.doubts&^(doubtRound|doubtOrder) == 0 {
		f.distrust.from = f.judged.shallow + 1
		f.endDistrust(p.Number)
	}
	if f.distrust.on {
		return
	}
	if b.Launched > 0 {
		f.Clock.notBefore(e.first, b.Launched, !b.Replayed)
	}
	if alone && f.doubtful.plans == 0 {
		f.judged.sound = p.Number
	}
	if shallow {
		f.judged.shallow = p.Number
	}
}

// storeStamps stores the stamps of a plan, which the next plan's must follow.
func (f *Filter) storeStamps(p *Plan) {
	if f.channels == nil {
		f.channels = make(map[uint8]*channelStamps)
	}
	for _, s := range p.Kernels {
		l := keyed.Entry(f.channels, s.Channel)
		l.addEnd(s.End, f.Clock.jumps)
	}
}

// distrustAll distrusts all later plans, and the waiting ones since the last sound one.
func (f *Filter) distrustAll(p *Plan, b Bounds, q Queue) {
	f.distrust.withheld = false
	f.distrust.on, f.distrust.jumps = true, f.Clock.jumps
	from := f.judged.sound + 1
	if f.suspects.from != 0 && f.suspects.from < p.Number {
		from = max(from, f.suspects.from)
	}
	if f.distrust.until != 0 { // some are distrusted already, and perhaps not written
		from = min(from, f.distrust.from)
	}
	f.distrust.from, f.distrust.until = from, math.MaxUint64
	since, ok := q.EnqueuedSince(from)
	if !ok {
		since = b.Start
	}
	f.Clock.markDoubtful(since)
}

// PlanInterval returns when a judged plan ran, by the clock as it is known now; ok is false if its stamps are not
// believed.
func (f *Filter) PlanInterval(p *Plan, b Bounds) (Interval, Notice, bool) {
	if !f.Clock.canMap() {
		if f.unknownTick {
			return Interval{}, NoticeNone, false
		}
		f.unknownTick = true
		return Interval{}, NoticeUnknownTick, false
	}
	if i, ok := f.realignPlan(p, b); ok {
		return i, NoticeNone, true
	}
	if !f.believesPlan(p) {
		if f.distrust.withheld || p.Number < f.distrust.from || p.Number >= f.distrust.until {
			return Interval{}, NoticeNone, false
		}
		f.distrust.withheld = true
		return Interval{}, NoticeWithheld, false
	}
	i, ok := f.mapPlan(p, b)
	return i, NoticeNone, ok
}

// mapPlan returns the clock's interval of a plan; if it is impossible, it returns false and refuses the plan.
func (f *Filter) mapPlan(p *Plan, b Bounds) (Interval, bool) {
	i, known, plausible := f.locatePlan(p, b)
	if known && !plausible {
		p.verdict = implausible
	}
	return i, known && plausible
}

// locatePlan returns the clock's interval of a plan, if the clock covers it.
func (f *Filter) locatePlan(p *Plan, b Bounds) (i Interval, known, plausible bool) {
	s := p.planEnds()
	begin, beginMargin, _ := f.Clock.HostTime(s.first, s.began)
	end, endMargin, ok := f.Clock.HostTime(s.last, s.ended)
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
	moved, off := within.nearestMove(int64(math.Ceil(min(max(beginMargin.usual, endMargin.usual), unknownNs))))
	begin, end = begin+uint64(moved), end+uint64(moved)
	return Interval{begin, max(begin, min(end, s.ended)), off}, true, true
}

// window is the range by which a plan may lie later than the clock says, from the plan's own bounds: none of its
// kernels has begun before its launch, or after its network traffic was over, and its ends are before their reports.
type window struct{ least, most int64 }

// unknownNs is more than any clock error.
const unknownNs = 1 << 62

// nearestMove returns by how much to move a plan as a whole, because its stamps give its exact length, and the
// remaining uncertainty.
func (w window) nearestMove(uncertainty int64) (moved int64, off uint64) {
	if w.least > w.most { // by the rounding of clocks and stamps
		w.least, w.most = w.most, w.least
	}
	moved = max(min(0, w.most), w.least)
	// If the clock was off by that much, it may well be off by more.
	least := max(w.least, min(-uncertainty, moved-uncertainty/2))
	if most := min(w.most, max(uncertainty, moved+uncertainty/2)); least <= most {
		return moved, uint64(max(most-moved, moved-least))
	}
	return moved, uint64(min(uncertainty, w.most-w.least))
}
