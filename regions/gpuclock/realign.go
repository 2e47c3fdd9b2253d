// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"slices"
	"sort"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
)

// Up to NCCL 2.30 the device counts works of messages to oneself, and the host does not (docs/nccl-profiler-api.md
// §7.4). From the first one on, NCCL reports the true sequence of a channel's stamps, shifted
// by the number of such works: the host's n-th work of a channel has the stamps of the device's n-th. Realigning
// returns the stamps to their plans.
//
// Each channel has two sequences, in the order of plans: the device's works, including those of messages to oneself,
// and the stamps of the host's works. The n-th elements belong together. A plan's realigned stamps are believed only
// if:
//
//   - no element is missing in either sequence: a possible gap ends a stretch, and both begin anew after it
//     (Works.Unsure);
//   - all works of the plan have stamps, on all its channels, and no ring can have been overrun before these were
//     reported;
//   - the shift is observed: a stamp, of a work that is not before the last of the channel's messages to oneself, lies
//     before the launch of the plan that would have it if the shift were one less, or before its own plan has ended on
//     a channel without a shift. So the shift is at least as counted. It cannot be more, because the sequence has
//     everything that the device counts;
//   - no plan contradicts it: stamps are in order, none lies before its plan's launch or after its network traffic, and
//     kernels of a communicator rank run one after the other on all channels.
//
// The first contradiction ends realigning for good, as does an unknown divergence of the counters (Works.Uncounted).
type realigner struct {
	on       bool
	ended    bool // for good
	channels map[uint8]*channelWorks
	plans    []*placed // waiting plans, in order
	last     uint64    // latest end of the plans before them, by the GPU's clock
	jumps    int       // of the clock when it began

	bounded  uint64 // number of the last plan whose launch the clock has taken
	boundEnd uint64 // its last stamp
}

// maxPlaced bounds the waiting plans.
const maxPlaced = 1 << 16

// Works are the works of a plan on its channels, as the device counts them.
type Works struct {
	// Own has, for each message to oneself, the number of its channels, which are the first ones.
	Own []int
	// Host has the works that the host has counted, with the stamps that NCCL reported for them, which may be another
	// plan's. Events of one work are one.
	Host []Kernel
	// Unsure is set if works of the plan, or of another in its place, may be missing in Host.
	Unsure bool
	// Uncounted is set if host and device may have counted differently from Own, now or later.
	Uncounted bool
}

// channelWorks holds a channel's works as the device counts them, and the stamps of the host's works, both numbered
// from the begin of a stretch.
type channelWorks struct {
	shift    int // works of messages to oneself so far
	total    int // works in this stretch, and the shift at its begin
	changed  int // the work at which the shift last changed; −1: none
	seen     int // the shift of works before this one has been observed
	shared   []*share
	first    int // number of shared[0]
	stamps   []report
	at       int // number of stamps[0], the next to assign
	previous Kernel
	before   *share // owner of previous
}

// report is a stamp as NCCL reported it.
type report struct {
	Kernel
	bound int // largest number of works enqueued on the channel when it was reported
}

// placed is a plan whose works are on their channels.
type placed struct {
	plan   *Plan
	bounds Bounds
	shares []*share
	unsure bool
}

// share is a plan's part of a channel.
type share struct {
	*channelWorks
	of      *placed
	channel uint8
	last    int // number of its last work
	due     int // works
	got     int // works with stamps
	changed int // channelWorks.changed at that time
	moved   int // channelWorks.shift at that time
	kernel  Kernel
}

// FollowPlan takes a plan when its reports have all come, in the order in which the communicator rank's plans were
// enqueued. Plans before the first message to oneself are not needed.
func (f *Filter) FollowPlan(p *Plan, b Bounds, w Works) {
	r := &f.realigner
	switch {
	case r.ended:
	case w.Uncounted || r.on && f.Clock.jumps != r.jumps:
		r.endForGood()
	case r.on || len(w.Own) > 0:
		if !r.on {
			r.on, r.jumps = true, f.Clock.jumps
		}
		if w.Unsure {
			r.beginStretch(w.Own)
			return
		}
		f.addWorks(p, b, w)
	}
}

// FollowsAll reports whether FollowPlan needs all plans, not only those with messages to oneself.
func (f *Filter) FollowsAll() bool { return f.realigner.on }

// EndRealigning ends realigning for good: host and device count differently in an unknown way.
func (f *Filter) EndRealigning() { f.realigner.endForGood() }

func (r *realigner) endForGood() {
	*r = realigner{ended: true}
}

// beginStretch begins a stretch after messages to oneself: the next works are the first known ones.
func (r *realigner) beginStretch(own []int) {
	for _, channels := range own {
		for c := range channels {
			r.worksOf(uint8(c)).shift++
		}
	}
	for _, l := range r.channels {
		*l = channelWorks{shift: l.shift, total: l.shift, first: l.shift, changed: l.shift, seen: l.shift}
		if l.shift == 0 {
			l.changed = -1
		}
	}
}

func (r *realigner) worksOf(channel uint8) *channelWorks {
	if r.channels == nil {
		r.channels = make(map[uint8]*channelWorks)
	}
	l := keyed.EntryMade(r.channels, channel, func() *channelWorks { return &channelWorks{changed: -1} })
	return l
}

// addWorks appends a plan's works and stamps to its channels.
func (f *Filter) addWorks(p *Plan, b Bounds, w Works) {
	r := &f.realigner
	at := &placed{plan: p, bounds: b}
	p.placed = at
	shareOn := func(channel uint8) *share {
		i := slices.IndexFunc(at.shares, func(s *share) bool { return s.channel == channel })
		if i < 0 {
			i = len(at.shares)
			at.shares = append(at.shares, &share{channelWorks: r.worksOf(channel), of: at, channel: channel})
		}
		return at.shares[i]
	}
	for _, channels := range w.Own {
		for c := range channels {
			s := shareOn(uint8(c))
			s.addWork()
			s.shift++
			s.channelWorks.changed = s.last
		}
	}
	for _, k := range w.Host {
		s := shareOn(k.Channel)
		s.addWork()
		s.stamps = append(s.stamps, report{k, 0})
	}
	if r.plans = append(r.plans, at); len(r.plans) > maxPlaced {
		r.endForGood()
		return
	}
	for _, s := range at.shares {
		s.changed, s.moved = s.channelWorks.changed, s.shift
		for i := range s.stamps {
			if o := &s.stamps[i]; o.bound == 0 {
				o.bound = s.total + p.behind
			}
		}
		if !f.assignStamps(s.channelWorks) {
			r.endForGood()
			return
		}
	}
}

// addWork appends a work of the plan to the device's.
func (s *share) addWork() {
	s.last, s.due = s.total, s.due+1
	s.total++
	s.shared = append(s.shared, s)
}

// assignStamps assigns the stamps of a channel to their works, as far as these are known; false if there is a
// contradiction.
func (f *Filter) assignStamps(l *channelWorks) bool {
	for {
		f.observeShift(l)
		n := l.at - l.first
		if len(l.stamps) == 0 || n >= len(l.shared) {
			return true
		}
		k := l.stamps[0]
		l.stamps, l.at = l.stamps[1:], l.at+1
		if k.Begin == 0 || k.End < k.Begin || k.Begin < l.previous.Begin || k.End < l.previous.End {
			return false
		}
		var s *share // nil: a work before the stretch
		if n >= 0 {
			s = l.shared[n]
			l.shared[n] = nil
		}
		if l.before != s && k.Begin < l.previous.End {
			return false
		}
		l.previous, l.before = k.Kernel, s
		if s != nil && !f.assignStamp(s, k) {
			return false
		}
		l.dropAssigned()
	}
}

// assignStamp gives a share the stamps of one of its works.
func (f *Filter) assignStamp(s *share, k report) bool {
	if k.bound-(s.channelWorks.at-1) >= ringPlaces { // the stamp may be of a later round of the ring
		s.of.unsure = true
	}
	if s.got == 0 {
		s.kernel = k.Kernel
	} else {
		o := &s.kernel
		o.Began, o.Ended = min(o.Began, k.Began), max(o.Ended, k.Ended)
		o.Begin, o.End = min(o.Begin, k.Begin), max(o.End, k.End)
	}
	s.got++
	begin, off, ok := f.Clock.HostTime(k.Begin, k.Began)
	b := &s.of.bounds
	early := begin+uint64(off.most)+slackNs < b.Launched
	late := b.NetStop != 0 && begin > b.NetStop+uint64(off.most)+networkSlackNs
	return ok && !early && !late
}

// observeShift checks whether the last stamps show the shift: they lie before the launch of the plan of the next work,
// or before their own plan has ended on a channel without messages to oneself, after which no other can begin.
func (f *Filter) observeShift(l *channelWorks) {
	n := l.at - l.first
	if n < 0 || n >= len(l.shared) || l.at == 0 || l.seen >= l.at || l.previous.Begin == 0 {
		return
	}
	next := l.shared[n]
	if next == nil || next == l.before || l.before != nil && l.before.of.unsure {
		return
	}
	if l.before != nil && l.before.of.runsAt(l.previous.Begin) {
		l.seen = l.at
		return
	}
	begin, off, ok := f.Clock.HostTime(l.previous.Begin, l.previous.Began)
	if ok && begin+uint64(off.most)+slackNs < next.of.bounds.Launched {
		l.seen = l.at
	}
}

// runsAt reports whether a plan was still running at a stamp, on a channel that has never had a message to oneself.
func (at *placed) runsAt(stamp uint64) bool {
	return slices.ContainsFunc(at.shares, func(s *share) bool {
		return s.changed < 0 && s.got == s.due && s.kernel.End > stamp
	})
}

// dropAssigned drops the works whose stamps are assigned.
func (l *channelWorks) dropAssigned() {
	if n := l.at - l.first; n >= 2*ringPlaces {
		l.shared, l.first = slices.Clone(l.shared[n:]), l.at
	}
}

// isComplete reports whether all stamps of a plan are known, and the shift of each of its channels has been observed.
func (r *realigner) isComplete(at *placed) bool {
	if at.unsure || len(at.shares) == 0 {
		return false
	}
	return !slices.ContainsFunc(at.shares, func(s *share) bool {
		return s.got < s.due || s.changed >= 0 && s.seen <= s.changed
	})
}

// stampEnds returns the first and the last known stamp of a plan.
func (at *placed) stampEnds() (begin, end uint64) {
	for _, s := range at.shares {
		if s.got > 0 {
			if begin == 0 || s.kernel.Begin < begin {
				begin = s.kernel.Begin
			}
			end = max(end, s.kernel.End)
		}
	}
	return begin, end
}

// ownPlan returns the plan with its own stamps.
func (at *placed) ownPlan() Plan {
	p := Plan{Number: at.plan.Number}
	for _, s := range at.shares {
		p.Kernels = append(p.Kernels, s.kernel)
	}
	return p
}

// addProvenLaunches gives the clock the launches of waiting plans, from one that is being written on, as far as their
// times are proven, so that the clock is known as well for the first of them as for the last.
func (f *Filter) addProvenLaunches(at *placed) {
	r, fit := &f.realigner, false
	r.bounded = max(r.bounded, at.plan.Number-1)
	first := sort.Search(len(r.plans), func(i int) bool { return r.plans[i].plan.Number > r.bounded })
	for _, at := range r.plans[first:] {
		if at.unsure {
			continue
		}
		if !r.isComplete(at) {
			break
		}
		own := at.ownPlan()
		ends := own.planEnds()
		if ends.first < r.boundEnd {
			break
		}
		r.bounded, r.boundEnd = at.plan.Number, ends.last
		f.Clock.notBefore(ends.first, at.bounds.Launched, true)
		begin, _, _ := f.Clock.HostTime(ends.first, ends.began)
		fit = fit || begin < at.bounds.Launched
	}
	if fit {
		f.Clock.FitLine(true)
	}
}

// ranAlone reports whether a plan, which is the next to be written, ran after earlier plans and before later ones.
func (r *realigner) ranAlone(at *placed) bool {
	for len(r.plans) > 0 && r.plans[0].plan.Number < at.plan.Number {
		_, end := r.plans[0].stampEnds()
		r.last = max(r.last, end)
		r.plans = r.plans[1:]
	}
	begin, end := at.stampEnds()
	if begin < r.last {
		return false
	}
	for _, next := range r.plans[1:min(len(r.plans), 1+ringPlaces)] {
		if b, _ := next.stampEnds(); b != 0 && b < end {
			return false
		}
	}
	return true
}

// realignPlan returns when a plan that is being written ran, by stamps whose shift is proven.
func (f *Filter) realignPlan(p *Plan, b Bounds) (Interval, bool) {
	r, at := &f.realigner, p.placed
	if at == nil || r.ended || f.Clock.jumps != r.jumps || !r.isComplete(at) {
		return Interval{}, false
	}
	if !r.ranAlone(at) {
		r.endForGood()
		return Interval{}, false
	}
	f.addProvenLaunches(at)
	own := at.ownPlan()
	i, ok := f.mapPlan(&own, b)
	if !ok {
		return Interval{}, false
	}
	for _, s := range at.shares {
		p.Realigned = max(p.Realigned, s.moved)
		for j := range p.Kernels {
			if k := &p.Kernels[j]; k.Channel == s.channel {
				k.Begin, k.End, k.Began, k.Ended = s.kernel.Begin, s.kernel.End, s.kernel.Began, s.kernel.Ended
			}
		}
	}
	return i, true
}
