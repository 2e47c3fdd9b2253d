// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"io"
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
)

// Scenario is a change of a run.
type Scenario struct {
	Ranks []int // of the world, whose work becomes that of others with their role
	// Ideal: operations end as soon as all that they wait for have come, but for the first ones of communicators.
	Ideal bool
}

// Gain is what a scenario changes. Times are in ns.
type Gain struct {
	Earlier int64 // by which the last operation would have ended earlier
	// Margin is the part of Earlier that the uncertainty of times may explain.
	Margin uint64
	// Times counts the operations that would have begun earlier, because a rank of the set came last.
	Times uint64
	Saved []int64 // by which the last operation of each rank would have ended earlier
	// Scaled: some ranks of the set have no other ranks with their role, so their work is scaled to what others work.
	Scaled bool
}

// Replay returns what scenarios would change. notKnown says why that cannot be said; "" if it can.
func (r *Recorder) Replay(scenarios []Scenario) (gains []Gain, notKnown string) {
	if why := r.log.failure(); why != "" {
		return nil, why
	}
	roles := r.roles()
	atOnce := min(max(mostStates/max(len(r.ranks), 1), 1), len(scenarios))
	for len(scenarios) > 0 {
		n := min(atOnce, len(scenarios))
		p := r.player(roles, scenarios[:n])
		if notKnown = p.play(); notKnown != "" {
			return nil, notKnown
		}
		gains = append(gains, p.gains()...)
		scenarios = scenarios[n:]
	}
	return gains, ""
}

// Close frees the recorded operations.
func (r *Recorder) Close() { r.log.close() }

// mostStates limits scenarios at a time × ranks.
const mostStates = 1 << 18

// player plays a schedule.
type player struct {
	in        *reader
	kept      int64 // operations of a rank
	scenarios []Scenario
	standards []map[int32]standard // by scenario
	recorded  []recorded
	ranks     []rank
	count     counter
	places    places
	rec       record
	slots     []*slot
	came      []arrivals // to a collective, by scenario
	out       []Gain
	last      int64 // end of the last operation
	arrivals  int
	lost      int // arrivals for which the operation before is not kept
}

// rank has the last operations of a rank.
type rank struct {
	slots []slot
	end   int64 // the last
	saved []int64
}

// slot is an operation of a rank, with times as recorded and what would have been saved, by scenario.
type slot struct {
	seq               int64
	begin, there, end int64
	uncertainty       int64
	came, left, own   []int64 // earlier by; own is the part of came that the change of this rank's work makes
}

func (r *Recorder) player(o *roles, scenarios []Scenario) *player {
	p := &player{in: r.log.reader(), kept: int64(min(max(r.depth, 1), causes.KeptEnds)), scenarios: scenarios,
		ranks: make([]rank, len(r.ranks)), count: newCounter(len(r.ranks), len(r.series)),
		out: make([]Gain, len(scenarios)), came: make([]arrivals, len(scenarios)), recorded: r.ranks}
	p.places = places{roles: o, in: r.log.reader(), wanted: make([]bool, len(o.size)), at: make(map[place]*crowd),
		count: newCounter(len(r.ranks), len(r.series)), most: mostAhead * len(r.ranks)}
	for i := range scenarios {
		all := o.standards(scenarios[i].Ranks)
		for _, s := range all {
			if s.class >= 0 {
				p.places.wanted[s.class] = true
			}
			p.out[i].Scaled = p.out[i].Scaled || s.class < 0
		}
		p.standards = append(p.standards, all)
	}
	return p
}

// mostLost is the part of the operations for which what was before may be unknown.
const mostLost = 0.02

func (p *player) play() (notKnown string) {
	for p.rec.read(p.in) {
		switch p.rec.kind {
		case arrival:
			p.arrive(&p.rec.arrived)
		case collective:
			p.collective()
		case launch:
			p.launch()
		}
	}
	for _, in := range [...]*reader{p.in, p.places.in} {
		if in.err != nil && in.err != io.EOF {
			return fmt.Sprintf("what was recorded of it cannot be read again: %v", in.err)
		}
	}
	if float64(p.lost) > mostLost*float64(p.arrivals) {
		return "too many operations of a rank overlap"
	}
	return ""
}

func (p *player) gains() []Gain {
	for k := range p.out {
		latest := int64(math.MinInt64)
		g := &p.out[k]
		g.Saved = make([]int64, len(p.ranks))
		for i := range p.ranks {
			if r := &p.ranks[i]; r.saved != nil {
				latest = max(latest, r.end-r.saved[k])
				g.Saved[i] = r.saved[k]
			}
		}
		if latest != math.MinInt64 {
			g.Earlier = p.last - latest
		}
	}
	return p.out
}

// find returns an operation of a rank, nil if it is not kept.
func (p *player) find(of int32, seq int64) *slot {
	if all := p.ranks[of].slots; all != nil {
		if s := &all[seq%p.kept]; s.seq == seq {
			return s
		}
	}
	return nil
}

// slotFor returns the room for an operation.
func (p *player) slotFor(of int32, seq int64) *slot {
	r := &p.ranks[of]
	n := len(p.scenarios)
	if r.slots == nil {
		r.slots, r.saved = make([]slot, p.kept), make([]int64, n)
	}
	s := &r.slots[seq%p.kept]
	if s.came == nil {
		all := make([]int64, 3*n)
		s.came, s.left, s.own = all[:n:n], all[n:2*n:2*n], all[2*n:]
	}
	s.seq = seq
	return s
}

// arrive calculates when a rank would have come to an operation: when its own work since the operation before is done.
func (p *player) arrive(a *arrived) {
	nth := p.count.next(a)
	p.arrivals++
	var before *slot
	if a.before > 0 {
		if before = p.find(a.rank, a.seq-a.before); before == nil {
			p.lost++
		}
	}
	s := p.slotFor(a.rank, a.seq)
	s.begin, s.there, s.end, s.uncertainty = a.begin, a.begin+a.there, a.begin, a.uncertainty
	for k := range p.scenarios {
		s.own[k], s.came[k] = 0, 0
		if before == nil {
			continue
		}
		more := int64(0)
		if by, in := p.standards[k][a.rank]; in && a.work >= 0 {
			more = p.scenarioWork(a, nth, k, by) - a.work
			s.own[k] = a.own - max(a.own+more, 0)
		}
		s.came[k] = before.left[k] + s.own[k]
		if a.work > a.own { // part of the work was done while the operation before waited
			free := max(a.begin-before.begin-a.work, 0)
			s.came[k] = min(s.came[k], before.came[k]+free-more)
		}
	}
	p.places.seen(a, nth)
}

// scenarioWork returns the work that a rank would have had in a scenario.
func (p *player) scenarioWork(a *arrived, nth uint32, k int, by standard) int64 {
	if by.class < 0 {
		return int64(by.part * float64(a.work))
	}
	set := p.standards[k]
	usual := p.places.usual(place{by.class, a.of, nth}, k, func(rank int32) bool {
		_, in := set[rank]
		return in && !by.ofAll
	})
	switch {
	case usual.ranks == 0, usual.ranks < fewRanks && usual.ns > stalled*a.work: // one of them was held up
		return a.work
	case !usual.ofHost:
		return usual.ns
	case a.host < 0 || a.gpu > a.own/hiddenPart: // its GPU may have had more to do
		return a.work
	}
	return a.work - max(a.host-usual.ns, 0)
}

// Of fewer than fewRanks, one that works more than stalled times as long as usual, once, makes the median.
const (
	fewRanks = 3
	stalled  = 2
)

// collective calculates when the members of a collective would have left it.
func (p *player) collective() {
	p.slots = p.slots[:0]
	for i := range p.rec.parts {
		x := &p.rec.parts[i]
		s := p.find(x.rank, x.seq)
		if p.slots = append(p.slots, s); s != nil {
			s.end = s.begin + x.took
		}
	}
	recorded := nobody
	for k := range p.came {
		p.came[k] = nobody
	}
	var last *slot
	for i, s := range p.slots {
		how := p.rec.parts[i].how
		if s == nil || how&isCompared == 0 {
			continue
		}
		if s.begin > recorded.all {
			last = s
		}
		recorded.add(how, s.begin)
		for k := range s.came {
			p.came[k].add(how, s.begin-s.came[k])
		}
	}
	for i, s := range p.slots {
		if s == nil {
			continue
		}
		x := &p.rec.parts[i]
		was := recorded.until(x.how, s.begin)
		for k := range s.left {
			s.left[k] = was - p.came[k].until(x.how, s.begin-s.came[k])
			if p.scenarios[k].Ideal && x.how&steadyEnd != 0 {
				s.left[k] += s.end - was
			}
		}
		p.ended(x.rank, s)
	}
	if last != nil {
		for k := range p.came {
			p.countLate(k, last, recorded.all-p.came[k].all)
		}
	}
}

// arrivals holds when the last of all members of a collective, of its roots, and of its other members arrives.
type arrivals struct{ all, root, others int64 }

var nobody = arrivals{math.MinInt64, math.MinInt64, math.MinInt64}

func (a *arrivals) add(how, at int64) {
	a.all = max(a.all, at)
	if how&isRoot != 0 {
		a.root = max(a.root, at)
	} else {
		a.others = max(a.others, at)
	}
}

// until returns when a member that comes at begin has what it waits for.
func (a *arrivals) until(how, begin int64) int64 {
	switch how & 3 {
	case untilAll:
		return a.all
	case untilRoot:
		return max(begin, a.root)
	case untilOthers:
		return max(begin, a.others)
	}
	return begin
}

// countLate counts an operation to which a rank of a scenario came last, as far as that made the operation begin later.
func (p *player) countLate(k int, s *slot, saved int64) {
	if s.own[k] <= 0 {
		return
	}
	if got := min(s.own[k], saved-(s.came[k]-s.own[k])); got > 0 {
		p.out[k].Times++
		p.out[k].Margin += uint64(min(got, 2*s.uncertainty))
	}
}

// launch calculates when a launch of messages would have ended.
func (p *player) launch() {
	x := &p.rec.parts[0]
	s := p.find(x.rank, x.seq)
	if s == nil {
		return
	}
	s.end = s.begin + x.took
	_, eager := p.recorded[x.rank].eager[int32(x.how)]
	until, last := s.begin, s
	p.slots = p.slots[:0]
	for _, o := range p.rec.others {
		other := p.find(o.rank, o.seq)
		if other == nil || eager && other.there <= s.begin { // the send would not have waited for it
			continue
		}
		p.slots = append(p.slots, other)
		if other.there > until {
			until, last = other.there, other
		}
	}
	var room *slot
	if p.rec.room.seq > 0 {
		room = p.find(p.rec.room.rank, p.rec.room.seq)
	}
	if room != nil && room.end > until {
		until, last = room.end, room
	}
	for k := range p.scenarios {
		at := s.begin - s.came[k]
		if room != nil {
			at = max(at, room.end-room.left[k])
		}
		for _, o := range p.slots {
			at = max(at, o.there-o.came[k])
		}
		s.left[k] = until - at
		if p.scenarios[k].Ideal && len(p.slots) > 0 {
			s.left[k] = s.end - at
		}
		p.countLate(k, last, until-at)
	}
	p.ended(x.rank, s)
}

// ended keeps what is saved at the last end of a rank.
func (p *player) ended(of int32, s *slot) {
	if s == nil {
		return
	}
	p.last = max(p.last, s.end)
	if r := &p.ranks[of]; s.end >= r.end {
		r.end = s.end
		copy(r.saved, s.left)
	}
}

// record is the last record that was read.
type record struct {
	kind    int64
	arrived arrived
	parts   []partOf
	others  []partOf
	room    partOf // of a launch; seq 0: it did not wait for it
	last    int64  // time
}

// arrived is how a rank came to an operation.
type arrived struct {
	rank               int32
	of                 int32 // series
	seq, before        int64 // before: distance to the operation before; 0: none
	begin, own, work   int64 // work: −1 if it does not change
	host               int64 // ns that the host took between the calls; −1: unknown
	early              bool  // it called before the operation before had ended, so it did not wait for that
	gpu                int64 // ns of own in which the GPU had to do something else, and the call had returned
	there, uncertainty int64
}

// besideHost returns how long the host took, −1 if it may have waited meanwhile.
func (a *arrived) besideHost() int64 {
	if !a.early {
		return -1
	}
	return a.host
}

// partOf is a member's part in an operation.
type partOf struct {
	rank           int32
	seq, took, how int64
}

// read reads the next record, and reports whether there is one.
func (r *record) read(in *reader) bool {
	r.kind = in.read()
	if in.err != nil {
		return false
	}
	switch r.kind {
	case arrival:
		a := &r.arrived
		a.rank, a.seq, a.before = int32(in.read()), in.read(), in.read()
		r.last += in.read()
		a.begin, a.own, a.work = r.last, in.read(), in.read()
		a.host, a.early, a.gpu = in.read(), in.read() != 0, in.read()
		a.there, a.uncertainty, a.of = in.read(), in.read(), int32(in.read())
	case collective:
		r.parts = r.parts[:0]
		for range in.read() {
			r.parts = append(r.parts, partOf{int32(in.read()), in.read(), in.read(), in.read()})
		}
	case launch:
		r.parts = append(r.parts[:0], partOf{int32(in.read()), in.read(), in.read(), in.read()})
		r.others = r.others[:0]
		for range in.read() {
			r.others = append(r.others, partOf{rank: int32(in.read()), seq: in.read()})
		}
		r.room = partOf{rank: int32(in.read()), seq: in.read()}
	}
	return in.err == nil
}
