// SPDX-License-Identifier: Apache-2.0

package causes

import "github.com/nccl-otf2/nccl-otf2/otf2"

// The work of a host while its GPU waits. Without the wait, the next operation would have begun no earlier than its
// host called it, so this part of the wait cost nothing and counts as the host's time. A pipeline's stages prepare
// their next computation while they wait for messages. The first stage waits for nobody, so all its preparation shows
// between its operations, although it does no more than the others.

// floating has the last waits of a rank that its host has not waited for as well.
type floating struct {
	felt   amounts // all waits before them
	wait   float64 // ns
	hidden float64 // ns of all waits beside which the host or the GPU worked; included in own
	host   float64 // ns that the host took between calls
	gpu    computing
}

// series identifies an operation that a communicator repeats.
type series struct {
	comm     otf2.CommRef
	function string
}

// hostTimes has a host's last times between calls, before operations of one series.
type hostTimes struct {
	series
	ns    [keptTimes]float64 // cases in which it cannot have waited for the operation before, which had not ended
	n     uint32
	open  [keptTimes]float64 // cases in which it may have waited
	m     uint32
	ended float64 // ns from the end of the operation before to the call, in the last of them
	waits *order  // whether hosts wait before they call this function
	mid   float64 // the usual time, see middle
	gpu   gpuTimes
}

const (
	keptTimes  = 3
	mostSeries = 16 // for a rank; for further ones the host's time is unknown
)

// called records how long a host took until a call.
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
		e.open(t, took, float64(l.Ready-l.Ended))
	} else {
		t.ns[t.n%keptTimes] = took
		t.n++
	}
	t.mid = t.middle()
}

// open records how long a host took until a call after the end of the operation before, in ns: since the call before,
// and since that end.
func (e *Engine) open(t *hostTimes, called, ended float64) {
	if t.waits == nil {
		t.waits = e.orderOf(functions{of: t.function})
	}
	if t.m > 0 {
		t.waits.add(abs(called-t.open[(t.m-1)%keptTimes]), abs(ended-t.ended))
	}
	t.open[t.m%keptTimes], t.ended = called, ended
	t.m++
}

// timesOf returns the times of a series, which it adds if needed; nil if there are too many series.
func (r *rank) timesOf(of series) *hostTimes {
	if t := r.times(of); t != nil {
		return t
	}
	if len(r.hosts) == mostSeries {
		return nil
	}
	more := make([]hostTimes, len(r.hosts)+1) // few are added, on many ranks: no spare room
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

// usual returns how long the host takes between calls, 0 if unknown.
func (t *hostTimes) usual() float64 {
	if t == nil {
		return 0
	}
	return t.mid
}

// middle returns the median of the last times. If there are too few, it uses the times that may include waiting.
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

// steady returns the median of the times in which the host may have waited for the operation before, if they show that
// hosts do not: times between calls are alike, whenever that operation ended. A host that waits for operations calls
// about the same time after their ends. It returns 0 otherwise.
func (t *hostTimes) steady() float64 {
	if t.m < keptTimes || !t.waits.isBeside() {
		return 0
	}
	return middleOf(&t.open)
}

// countWorkDuringWait counts the part of the last waits in which the host worked as its own time. A host that calls
// after the previous operation has ended may have waited for that: then it worked during the wait for as long as it
// usually takes, less what it took after the end.
func (e *Engine) countWorkDuringWait(l *Local, s *state, t *hostTimes) {
	usual := t.usual()
	s.host += hostWorkTime(l, usual)
	hidden := s.wait - float64(l.Ended-min(l.Ready, l.Ended)) // without the wait after the host's call
	if l.Ready >= l.Ended {
		hidden = 0
		if l.Free > 0 {
			hidden = min(s.wait, max(0, usual-float64(l.Ready-l.Ended)), float64(l.Ended-min(l.Free, l.Ended)))
		}
	}
	e.countWaitAsWork(s, Host, hidden)
	if l.Ready >= l.Ended {
		s.felt, s.wait = s.waits, 0
	}
}

// countWaitAsWork turns a part of the last waits into working time of the rank.
func (e *Engine) countWaitAsWork(s *state, k Kind, hidden float64) {
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

// hostWorkTime returns how long a host worked for a call since the one before. If it may have waited for the operation
// before, the result lies between the least possible time and the usual one.
func hostWorkTime(l *Local, usual float64) float64 {
	if l.Free == 0 {
		return float64(l.Ready - min(l.Ready, l.Ended))
	}
	since := float64(l.Ready - min(l.Ready, l.Free))
	if l.Ready < l.Ended {
		return since
	}
	return min(since, max(float64(l.Ready-l.Ended), usual))
}

// subtractHiddenWaits subtracts, from the costs by which operations would have begun earlier, the waits that cost
// nothing because the host worked meanwhile. It compares the rank's state before the operation with that on arrival
// (came).
func (e *Engine) subtractHiddenWaits(l *Local, came *state) {
	p := e.partBefore(l)
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
