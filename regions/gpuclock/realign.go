// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"slices"
	"sort"
)

// Up to NCCL 2.30 the device counts works of messages to oneself, and the host does not (docs/nccl-profiler-api.md
// §7.4). What NCCL hands out from there on is the true sequence of a channel's stamps, late by the number of such
// works: the host's n-th work of a channel has the stamps of the device's n-th. Realigning gives them back to the plans
// whose they are.
//
// On each channel there are two sequences, in the order of plans: the device's works, with those of messages to
// oneself, and the stamps that the host's works were given. The n-th of one belongs to the n-th of the other. That is
// believed of a plan only where all of this holds:
//
//   - nothing is missing in either sequence: what may be ends a stretch, and both begin anew behind it (Works.Unsure);
// - all works of the plan have stamps, on all its channels, and no ring can have been overrun before these were
// reported;
// - the shift is seen: a stamp, of a work that is not before the last of the channel's messages to oneself, lies before
// the launch of
// the plan that would have it if the shift were one less, or before the plan whose it is has ended on a channel where
// nothing is shifted.
//     So the shift is no less than counted. It cannot be more: what the device counts is all in the sequence;
// - nothing contradicts it, of this plan or another: stamps are in order, none lies before its plan's launch or after
// its network traffic,
//     and kernels of a communicator rank run one after the other, whatever their channels.
//
// The first contradiction ends it for good, as does what makes counters part in ways that nobody can count
// (Works.Uncounted).
type realigner struct {
	on       bool
	ended    bool // for good
	channels map[uint8]*channelWorks
	plans    []*placed // that wait, in order
	last     uint64    // latest end of the plans before them, by the GPU's clock
	jumps    int       // of the clock when it began

	bounded  uint64 // number of the last plan of whose launch the clock knows
	boundEnd uint64 // its last stamp
}

// maxPlaced bounds the plans that wait.
const maxPlaced = 1 << 16

// Works are what a plan put onto channels, as the device counts it.
type Works struct {
	// Own are its messages to oneself: of each, the number of its channels, which are the first ones.
	Own []int
	// Host are the works that the host has counted, with the stamps that NCCL reported for them, whosever they are.
	// Events of one work are one.
	Host []Kernel
	// Unsure tells that works of the plan, or of another at its place, may be missing in Host.
	Unsure bool
	// Uncounted tells that host and device may have counted differently by more or less than Own says, now or later.
	Uncounted bool
}

// channelWorks are a channel's works as the device counts them, and the stamps that the host's works had, both numbered
// alike from the beginning of a stretch on.
type channelWorks struct {
	shift    int // works of messages to oneself so far
	total    int // works in this stretch, and the shift at its beginning
	changed  int // the work from which on the shift is what it is; −1: there is none
	seen     int // up to this work, exclusively, the shift has been seen
	shared   []*share
	first    int // number of shared[0]
	stamps   []report
	at       int // number of stamps[0]: the next that is looked at
	previous Kernel
	before   *share // that previous belongs to
}

// report is a stamp as NCCL handed it out.
type report struct {
	Kernel
	bound int // so many works, at most, had been enqueued on the channel when it was reported
}

// placed is a plan in its place.
type placed struct {
	plan   *Plan
	bounds Bounds
	shares []*share
	unsure bool
}

// share is what a plan has on a channel.
type share struct {
	*channelWorks
	of      *placed
	channel uint8
	last    int // number of its last work
	due     int // works
	got     int // of them with stamps
	changed int // of the channel, then, as the next one
	moved   int // shift
	kernel  Kernel
}

// Follow takes a plan in the order in which the communicator rank's plans were enqueued, when its reports have all
// come. Plans before the first message to oneself are of no matter.
func (f *Filter) Follow(p *Plan, b Bounds, w Works) {
	r := &f.realigner
	switch {
	case r.ended:
	case w.Uncounted || r.on && f.Clock.jumps != r.jumps:
		r.end()
	case r.on || len(w.Own) > 0:
		if !r.on {
			r.on, r.jumps = true, f.Clock.jumps
		}
		if w.Unsure {
			r.cut(w.Own)
			return
		}
		f.place(p, b, w)
	}
}

// Follows reports whether plans are to be told, also those without messages to oneself.
func (f *Filter) Follows() bool { return f.realigner.on }

// Uncounted ends realigning for good: host and device count differently by what nobody knows.
func (f *Filter) Uncounted() { f.realigner.end() }

func (r *realigner) end() {
	*r = realigner{ended: true}
}

// cut begins a stretch behind messages to oneself: the next works are the first that are known.
func (r *realigner) cut(own []int) {
	for _, channels := range own {
		for c := range channels {
			r.works(uint8(c)).shift++
		}
	}
	for _, l := range r.channels {
		*l = channelWorks{shift: l.shift, total: l.shift, first: l.shift, changed: l.shift, seen: l.shift}
		if l.shift == 0 {
			l.changed = -1
		}
	}
}

func (r *realigner) works(channel uint8) *channelWorks {
	if r.channels == nil {
		r.channels = make(map[uint8]*channelWorks)
	}
	l := r.channels[channel]
	if l == nil {
		l = &channelWorks{changed: -1}
		r.channels[channel] = l
	}
	return l
}

// place puts a plan's works and stamps onto its channels.
func (f *Filter) place(p *Plan, b Bounds, w Works) {
	r := &f.realigner
	at := &placed{plan: p, bounds: b}
	p.placed = at
	shareOn := func(channel uint8) *share {
		i := slices.IndexFunc(at.shares, func(s *share) bool { return s.channel == channel })
		if i < 0 {
			i = len(at.shares)
			at.shares = append(at.shares, &share{channelWorks: r.works(channel), of: at, channel: channel})
		}
		return at.shares[i]
	}
	for _, channels := range w.Own {
		for c := range channels {
			s := shareOn(uint8(c))
			s.adds()
			s.shift++
			s.channelWorks.changed = s.last
		}
	}
	for _, k := range w.Host {
		s := shareOn(k.Channel)
		s.adds()
		s.stamps = append(s.stamps, report{k, 0})
	}
	if r.plans = append(r.plans, at); len(r.plans) > maxPlaced {
		r.end()
		return
	}
	for _, s := range at.shares {
		s.changed, s.moved = s.channelWorks.changed, s.shift
		for i := range s.stamps {
			if o := &s.stamps[i]; o.bound == 0 {
				o.bound = s.total + p.behind
			}
		}
		if !f.look(s.channelWorks) {
			r.end()
			return
		}
	}
}

// adds adds a work of the plan to the device's.
func (s *share) adds() {
	s.last, s.due = s.total, s.due+1
	s.total++
	s.shared = append(s.shared, s)
}

// look gives the stamps of a channel to the works whose they are, as far as these are known; false if something
// contradicts that.
func (f *Filter) look(l *channelWorks) bool {
	for {
		f.see(l)
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
		if s != nil && !f.take(s, k) {
			return false
		}
		l.drop()
	}
}

// take gives a share the stamps of one of its works.
func (f *Filter) take(s *share, k report) bool {
	if k.bound-(s.channelWorks.at-1) >= ringPlaces { // a later round of the ring may have been seen
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
	begin, off, ok := f.Clock.Host(k.Begin, k.Began)
	b := &s.of.bounds
	early := begin+uint64(off.most)+slackNs < b.Launched
	late := b.NetStop != 0 && begin > b.NetStop+uint64(off.most)+networkSlackNs
	return ok && !early && !late
}

// see looks whether the last stamps lie before the launch of the plan that has the next work, or before the plan that
// has them has ended on a channel without messages to oneself, after which no other can begin.
func (f *Filter) see(l *channelWorks) {
	n := l.at - l.first
	if n < 0 || n >= len(l.shared) || l.at == 0 || l.seen >= l.at || l.previous.Begin == 0 {
		return
	}
	next := l.shared[n]
	if next == nil || next == l.before || l.before != nil && l.before.of.unsure {
		return
	}
	if l.before != nil && l.before.of.outlasts(l.previous.Begin) {
		l.seen = l.at
		return
	}
	begin, off, ok := f.Clock.Host(l.previous.Begin, l.previous.Began)
	if ok && begin+uint64(off.most)+slackNs < next.of.bounds.Launched {
		l.seen = l.at
	}
}

// outlasts reports whether a plan was still running, on a channel that has never had a message to oneself, when a stamp
// was taken.
func (at *placed) outlasts(stamp uint64) bool {
	return slices.ContainsFunc(at.shares, func(
		s *share) bool {
		return s.changed < 0 && s.got == s.due && s.kernel.End > stamp
	})
}

// drop forgets the works whose stamps have been given.
func (l *channelWorks) drop() {
	if n := l.at - l.first; n >= 2*ringPlaces {
		l.shared, l.first = slices.Clone(l.shared[n:]), l.at
	}
}

// whole reports whether all stamps of a plan are known, and the shift of each of its channels has been seen.
func (r *realigner) whole(at *placed) bool {
	if at.unsure || len(at.shares) == 0 {
		return false
	}
	for _, s := range at.shares {
		if s.got < s.due || s.changed >= 0 && s.seen <= s.changed {
			return false
		}
	}
	return true
}

// ends are the first and the last stamp of a plan, as far as they are known.
func (at *placed) ends() (begin, end uint64) {
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

// own is the plan with its own stamps.
func (at *placed) own() Plan {
	p := Plan{Number: at.plan.Number}
	for _, s := range at.shares {
		p.Kernels = append(p.Kernels, s.kernel)
	}
	return p
}

// bound returns the clock of the launches of plans that wait, from one that is being written on, as far as it is proven
// when they ran: so the clock is as well known for the first of them as for the last.
func (f *Filter) bound(at *placed) {
	r, fit := &f.realigner, false
	r.bounded = max(r.bounded, at.plan.Number-1)
	first := sort.Search(len(r.plans), func(i int) bool { return r.plans[i].plan.Number > r.bounded })
	for _, at := range r.plans[first:] {
		if at.unsure {
			continue
		}
		if !r.whole(at) {
			break
		}
		own := at.own()
		ends := own.ends()
		if ends.first < r.boundEnd {
			break
		}
		r.bounded, r.boundEnd = at.plan.Number, ends.last
		f.Clock.notBefore(ends.first, at.bounds.Launched, true)
		begin, _, _ := f.Clock.Host(ends.first, ends.began)
		fit = fit || begin < at.bounds.Launched
	}
	if fit {
		f.Clock.Fit(true)
	}
}

// alone reports whether a plan, which is the next to be written, ran after the plans before it and before those behind
// it.
func (r *realigner) alone(at *placed) bool {
	for len(r.plans) > 0 && r.plans[0].plan.Number < at.plan.Number {
		_, end := r.plans[0].ends()
		r.last = max(r.last, end)
		r.plans = r.plans[1:]
	}
	begin, end := at.ends()
	if begin < r.last {
		return false
	}
	for _, next := range r.plans[1:min(len(r.plans), 1+ringPlaces)] {
		if b, _ := next.ends(); b != 0 && b < end {
			return false
		}
	}
	return true
}

// realigned is when a plan that is being written ran, by the stamps whose shift is proven.
func (f *Filter) realigned(p *Plan, b Bounds) (Interval, bool) {
	r, at := &f.realigner, p.placed
	if at == nil || r.ended || f.Clock.jumps != r.jumps || !r.whole(at) {
		return Interval{}, false
	}
	if !r.alone(at) {
		r.end()
		return Interval{}, false
	}
	f.bound(at)
	own := at.own()
	i, ok := f.mapped(&own, b)
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
