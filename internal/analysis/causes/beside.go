// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// What a host works while its GPU waits. Had there been no wait, the next operation would have begun no sooner than its
// host called it: so this part of the wait cost nothing, and is the host's time. A pipeline's stages prepare what they
// compute next while they wait for messages; the first stage waits for nobody, and all its preparation is seen between
// its operations. It does no more than the others.

// floating are the last waits of a rank that its host has not waited for, too.
type floating struct {
	felt   amounts // all waits before them
	wait   float64 // ns
	hidden float64 // ns of all waits beside which the host worked, or the GPU; in own, too
	host   float64 // ns that the host took from call to call
	gpu    computing
}

// series is an operation of a communicator, again and again.
type series struct {
	comm     otf2.CommRef
	function string
}

// hostTimes are a host's last times from call to call before operations of a series.
type hostTimes struct {
	series
	ns   [keptTimes]float64 // when it cannot have waited for the operation before: that had not ended
	n    uint32
	open [keptOpen]openTime // when it may have
	m    uint32
	mid  float64 // the usual one of these, see middle
	gpu  gpuTimes
}

// openTime is until a call that came after the end of the operation before, ns: since the call before, and since that
// end.
type openTime struct{ called, ended float64 }

const (
	keptTimes  = 3
	keptOpen   = 5
	mostSeries = 16 // of a rank; of others it is not known how long hosts take
)

// called notes how long a host took for a call.
func (e *Engine) called(l *Local, of series) {
	if l.Rank < 0 || !l.Called || l.Free == 0 || l.Ready < l.Free || l.Free >= l.Ended {
		return
	}
	t := e.ranks[l.Rank].timesOf(of)
	if t == nil {
		return
	}
	took := float64(l.Ready - l.Free)
	if l.Ready >= l.Ended {
		t.open[t.m%keptOpen] = openTime{took, float64(l.Ready - l.Ended)}
		t.m++
	} else {
		t.ns[t.n%keptTimes] = took
		t.n++
	}
	t.mid = t.middle()
}

// timesOf are those of a series, which are made; nil if there are too many.
func (r *rank) timesOf(of series) *hostTimes {
	if t := r.times(of); t != nil {
		return t
	}
	if len(r.hosts) == mostSeries {
		return nil
	}
	more := make([]hostTimes, len(r.hosts)+1) // few come, to many ranks: no room ahead
	copy(more, r.hosts)
	r.hosts = more
	t := &r.hosts[len(r.hosts)-1]
	t.series = of
	return t
}

func (r *rank) times(of series) *hostTimes {
	for i := range r.hosts {
		if t := &r.hosts[i]; t.comm == of.comm && t.function == of.function {
			return t
		}
	}
	return nil
}

// usual is how long the host takes from call to call, 0 if that is not known.
func (t *hostTimes) usual() float64 {
	if t == nil {
		return 0
	}
	return t.mid
}

// middle is the middle one of the last times, of too few what those tell that may have been waits.
func (t *hostTimes) middle() float64 {
	if t.n < keptTimes {
		return t.steady()
	}
	return middleOf(&t.ns)
}

func middleOf(of *[keptTimes]float64) float64 {
	a, b, c := of[0], of[1], of[2]
	return max(min(a, b), min(max(a, b), c))
}

// steady is the middle one of the times in which the host may have waited for the operation before, if they show that
// it did not: from call to call they are alike, whenever that operation ended. Who waits for operations calls about as
// long after their ends.
func (t *hostTimes) steady() float64 {
	if t.m < keptOpen {
		return 0
	}
	var called, ended [keptOpen]float64
	for i, o := range t.open {
		called[i], ended[i] = o.called, o.ended
	}
	slices.Sort(called[:])
	slices.Sort(ended[:])
	if last := keptOpen - 1; steadier*(called[last]-called[0]) >= ended[last]-ended[0] {
		return 0
	}
	return called[keptOpen/2]
}

// steadier is how many times closer together times from call to call must be than those after the ends of operations,
// for the host to have waited for none of these.
const steadier = 2

// beside makes the part of the last waits beside which the host worked its own time. A host that calls later than what
// was before has ended may have waited for that: then it worked beside as much as it usually takes, but for what it
// took after the end.
func (e *Engine) beside(l *Local, s *state, t *hostTimes) {
	usual := t.usual()
	s.host += took(l, usual)
	hidden := s.wait - float64(l.Ended-min(l.Ready, l.Ended)) // what is left of the wait when the host called is not
	if l.Ready >= l.Ended {
		hidden = 0
		if l.Free > 0 {
			hidden = min(s.wait, max(0, usual-float64(l.Ready-l.Ended)), float64(l.Ended-min(l.Free, l.Ended)))
		}
	}
	e.hide(s, Host, hidden)
	if l.Ready >= l.Ended {
		s.felt, s.wait = s.waits, 0
	}
}

// hide makes a part of the last waits time that the rank worked.
func (e *Engine) hide(s *state, k Kind, hidden float64) {
	if hidden <= 0 {
		return
	}
	part := hidden / s.wait
	e.sum.clear()
	e.sum.addAll(s.waits, 1-part)
	e.sum.addAll(s.felt, part)
	s.waits = e.sum.amounts(e.causes.unknown())
	s.own[k] += hidden
	s.hidden += hidden
	s.wait -= hidden
}

// took is how long a host took for a call since the one before: where it may have waited for the operation before, what
// is between the least that it can be and what it usually is.
func took(l *Local, usual float64) float64 {
	if l.Free == 0 {
		return float64(l.Ready - min(l.Ready, l.Ended))
	}
	since := float64(l.Ready - min(l.Ready, l.Free))
	if l.Ready < l.Ended {
		return since
	}
	return min(since, max(float64(l.Ready-l.Ended), usual))
}

// costless takes from the costs, by which operations would have begun earlier, what waits did not cost because the host
// worked beside them: the state is that before the operation, and that with which it came.
func (e *Engine) costless(l *Local, came *state) {
	p := e.before(l)
	if p == nil || came.hidden <= p.left.hidden {
		return
	}
	e.sum.clear()
	e.sum.addAll(p.left.waits, 1)
	e.sum.addAll(came.waits, -1)
	for _, c := range e.sum.touched {
		e.ledger.beside[c] += max(0, e.sum.ns[c])
	}
}
