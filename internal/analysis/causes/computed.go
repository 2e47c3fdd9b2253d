// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The work of a GPU while an operation waits on another stream. Without the wait, the next operation would have begun
// no earlier than this work was done, so it counts as the GPU's time, just as the work of a host during a wait counts
// as the host's. The first stage of a pipeline computes its next part while it waits for the next stage to take the
// previous one; everything that the other stages compute comes after they have received something.
//
// Kernels are usually not recorded, so times have to decide. A GPU that computes independently of its operation takes
// the same time from begin to begin, whenever the operation ends; one that needs the received data takes the same time
// from its end.

// computing is the state of a rank's GPU that may compute beside its operations.
type computing struct {
	of     string         // function of the last operation
	done   otf2.Timestamp // when it finished the work before an operation that began then; 0: unknown
	fresh  bool           // that was before the last operation
	run    uint32         // how often it has waited for its host
	nth    uint32         // operations since then
	waited float64        // ns of waits since then
	moved  float64        // ns of transfers since then
}

// gpuTimes has a GPU's last times before operations of a series that were called before the previous operation had
// ended.
type gpuTimes struct {
	after string             // function of the previous operation
	took  [keptTimes]float64 // ns to the begin, from the begin of the previous operation, or from the call if later
	n     uint32
	mid   float64
	last  float64             // ns from the end of the previous operation, the last time
	run   uint32              // the run that it was in
	first [keptPlaces]gpuTime // the last times of the first operations of a run
	order *order
	early early
}

// gpuTime is how long a GPU took before an operation, in ns: since the previous operation began, and since it ended.
type gpuTime struct{ begun, ended float64 }

// keptPlaces is for how many operations since a GPU waited for its host the last times are kept.
const keptPlaces = 4

// order counts evidence of whether GPUs, or hosts, wait for an operation before they do what precedes the next one. It
// depends on the program, so all ranks have it in common.
type order struct {
	// beside counts how often two consecutive times from begin to begin were alike and those from end to begin were
	// not; behind counts the opposite.
	beside, behind float64
}

// functions are the functions of an operation and of the next one.
type functions struct{ before, of string }

// computedBeside counts the part of the last waits and transfers in which the GPU computed as its own time. An
// operation called before the previous one had ended begins when that one has ended and the GPU has done the work in
// between. If it began later, and its GPU does not wait for operations before computing, all of the waiting was
// computed in; if it began at once, no more than the GPU usually takes.
func (e *Engine) computedBeside(l *Local, begin otf2.Timestamp, s *state, of series, t *hostTimes) {
	if l.Returned > l.Ended { // it has waited for its host
		s.gpu = computing{of: of.function, done: begin, fresh: true, run: s.gpu.run + 1}
		return
	}
	exposed := begin > l.Ended+backToBack
	if usual, beside := t.computes(s.gpu.of); beside {
		waited, moved := s.computedIn(l, exposed, usual)
		s.gpu.waited -= waited
		s.gpu.moved -= moved
		e.countWaitAsWork(s, GPU, waited)
		s.own[GPU] += moved
		s.transfer -= moved
	}
	s.gpu.nth++
	if s.gpu.of, s.gpu.fresh = of.function, exposed; exposed {
		s.gpu = computing{of: of.function, done: begin, fresh: true, run: s.gpu.run, nth: s.gpu.nth}
	}
}

// computedIn returns the part of the last waits and transfers in which the GPU computed, if it does not wait for
// operations.
func (s *state) computedIn(l *Local, exposed bool, usual float64) (waited, moved float64) {
	waited, moved = min(s.wait, s.gpu.waited), s.gpu.moved
	most := float64(l.Ended - l.Returned)
	if !exposed {
		most = min(most, usual)
	}
	if all := waited + moved; all > most {
		waited, moved = waited*most/all, moved*most/all
	}
	return waited, moved
}

// backToBack is the longest gap between two operations, in ns, that counts as no work in between.
const backToBack = 10_000

// computed records how long the GPU took for the work before an operation. If others share the GPU, that time may
// include their turns.
func (e *Engine) computed(l *Local, begin otf2.Timestamp, of series) {
	if l.Rank < 0 || !l.Called || l.Returned > l.Ended || e.sharing.shares(l.Rank) {
		return
	}
	p := e.partBefore(l)
	if p == nil {
		return
	}
	t := e.ranks[l.Rank].timesOf(of)
	if t == nil {
		return
	}
	before := &p.left.gpu
	if t.gpu.order == nil || t.gpu.after != before.of {
		t.gpu = gpuTimes{after: before.of, order: e.orderOf(functions{before.of, of.function}), early: t.gpu.early}
	}
	exposed := begin > l.Ended+backToBack
	if !t.gpu.order.isBeside() {
		t.gpu.early.add(&p.left, l, exposed)
	}
	if exposed && before.fresh {
		t.gpu.add(gpuTime{float64(begin - max(before.done, l.Returned)), float64(begin - l.Ended)}, before)
	}
}

// early has what a GPU computed beside operations before it was known whether it waits for them.
type early struct {
	exposed float64 // ns
	blocked float64 // ns at most, before operations that began at once
	n       float64 // number of these operations
}

func (e *early) add(s *state, l *Local, exposed bool) {
	waited, moved := s.computedIn(l, exposed, math.Inf(1))
	if exposed {
		e.exposed += waited + moved
	} else {
		e.blocked += waited + moved
		e.n++
	}
}

// computedEarly returns what a rank's GPU computed beside operations before that was known.
func (r *rank) computedEarly() (ns float64) {
	for i := range r.hosts {
		if g := &r.hosts[i].gpu; g.order != nil && g.order.isBeside() {
			ns += g.early.exposed + min(g.early.blocked, g.early.n*g.mid)
		}
	}
	return ns
}

// computes returns how long the GPU usually takes before an operation that follows one of the function after, 0 if
// unknown. beside reports whether it is known not to wait for that one.
func (t *hostTimes) computes(after string) (usual float64, beside bool) {
	if t == nil || t.gpu.order == nil || t.gpu.after != after {
		return 0, false
	}
	return t.gpu.mid, t.gpu.order.isBeside()
}

// orderOf returns the order of an operation and the next one.
func (e *Engine) orderOf(of functions) *order {
	return keyed.Entry(e.orders, of)
}

// add adds times. They are compared with the last ones at the same place of a run, or else with the last ones of the
// same run: a GPU that computes whatever becomes of operations takes as long from begin to begin where one was held up
// and where none was.
func (t *gpuTimes) add(x gpuTime, before *computing) {
	if before.nth < keptPlaces {
		at := &t.first[before.nth]
		if at.begun > 0 {
			t.order.add(abs(x.begun-at.begun), abs(x.ended-at.ended))
		}
		*at = x
	} else if t.n > 0 && t.run == before.run {
		t.order.add(abs(x.begun-t.took[(t.n-1)%keptTimes]), abs(x.ended-t.last))
	}
	t.took[t.n%keptTimes] = x.begun
	t.last, t.run = x.ended, before.run
	if t.n++; t.n >= keptTimes {
		t.mid = middleOf(&t.took)
	}
}

// add compares how much two consecutive times differ, from begin to begin (or call to call) and from end to begin.
func (o *order) add(begun, ended float64) {
	switch {
	case steadier*begun < ended:
		o.beside++
	case steadier*ended < begun:
		o.behind++
	}
}

// steadier is how many times less one of the two must vary to be evidence.
const steadier = 2

// isBeside reports whether GPUs do not wait. If times show neither, both counts are about equal. So beside must exceed
// behind by a factor, and by a number of standard deviations of the difference.
func (o *order) isBeside() bool { return surely(o.beside, o.behind) }

// isBehind reports whether they wait.
func (o *order) isBehind() bool { return surely(o.behind, o.beside) }

func surely(many, few float64) bool {
	return many > 0 && many >= mostlyBeside*few && many-few >= surelyBeside*math.Sqrt(many+few)
}

const (
	mostlyBeside = 2
	surelyBeside = 3
)
