// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// What a GPU computes while an operation waits on another stream. Had there been no wait, the next operation would have
// begun no sooner than that was done: so this is the GPU's time, as what a host works beside a wait is the host's. The
// first stage of a pipeline computes the next part while it waits until the one before is taken; all that the other
// stages compute comes after they have received something.
//
// Kernels are mostly not recorded, so times tell. A GPU that computes whatever becomes of its operation takes as long
// from begin to begin, whenever the operation ends; one that needs what it receives takes as long from its end.

// computing is what is known of what a rank's GPU computes beside its operations.
type computing struct {
	of     string         // function of the last operation
	done   otf2.Timestamp // when it had last computed what comes before an operation, which began then; 0: not known
	fresh  bool           // that was the last operation
	run    uint32         // how often it has waited for its host
	waited float64        // ns of waits since then
	moved  float64        // ns of transfers since then
}

// gpuTimes are a GPU's last times before operations of a series that were called before the operation before had ended.
type gpuTimes struct {
	after string             // function of the operation before
	took  [keptTimes]float64 // ns from the begin of the operation before, or the call if that came later, to the begin
	n     uint32
	mid   float64
	last  float64 // ns, of the last one from the end of the operation before
	run   uint32  // that it was in
	order *order
	early early
}

// order is whether GPUs wait for an operation until they compute what comes before the next one. It is the program's,
// which ranks have in common.
type order struct {
	// How often two times in a row from begin to begin were alike and those from the end to the begin were not, and how
	// often it was the other way round.
	beside, behind float64
}

// functions are those of an operation and of the next one.
type functions struct{ before, of string }

// computedBeside makes the part of the last waits and transfers beside which the GPU computed its own time. An
// operation that was called before the one before had ended begins when that has ended and the GPU has computed what
// comes first. If it began later, and its GPU does not wait for operations before it computes, all was beside that; if
// it began at once, no more than it usually takes.
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
		e.hide(s, GPU, waited)
		s.own[GPU] += moved
		s.transfer -= moved
	}
	if s.gpu.of, s.gpu.fresh = of.function, exposed; exposed {
		s.gpu = computing{of: of.function, done: begin, fresh: true, run: s.gpu.run}
	}
}

// computedIn is what of the last waits and transfers the GPU computed beside, if it does not wait for operations.
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

// backToBack is the longest that a GPU is taken to need from one operation to the next with nothing between, ns.
const backToBack = 10_000

// computed notes how long the GPU took for what came before an operation. Where others share it, that may have been
// their turns.
func (e *Engine) computed(l *Local, begin otf2.Timestamp, of series) {
	if l.Rank < 0 || !l.Called || l.Returned > l.Ended || e.sharing.shares(l.Rank) {
		return
	}
	p := e.before(l)
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
		t.gpu.add(float64(begin-max(before.done, l.Returned)), float64(begin-l.Ended), before.run)
	}
}

// early is what a GPU computed beside operations when it was not known yet whether it does not wait for them.
type early struct {
	exposed float64 // ns
	blocked float64 // ns at most, before operations that began at once
	n       float64 // these
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

// computedEarly is what a rank's GPU computed beside operations before it was known that it does.
func (r *rank) computedEarly() (ns float64) {
	for i := range r.hosts {
		if g := &r.hosts[i].gpu; g.order != nil && g.order.isBeside() {
			ns += g.early.exposed + min(g.early.blocked, g.early.n*g.mid)
		}
	}
	return ns
}

// computes is how long the GPU usually takes for what comes before an operation that follows one of a function, 0 if
// that is not known; beside reports whether it is known that it does not wait for that one.
func (t *hostTimes) computes(after string) (usual float64, beside bool) {
	if t == nil || t.gpu.order == nil || t.gpu.after != after {
		return 0, false
	}
	return t.gpu.mid, t.gpu.order.isBeside()
}

// orderOf is that of an operation and the next one.
func (e *Engine) orderOf(of functions) *order {
	o := e.orders[of]
	if o == nil {
		o = new(order)
		e.orders[of] = o
	}
	return o
}

// add takes how long it took from the begin of the operation before, and from its end.
func (t *gpuTimes) add(begun, ended float64, run uint32) {
	if t.n > 0 && t.run == run {
		since := t.took[(t.n-1)%keptTimes]
		switch beside, behind := abs(begun-since), abs(ended-t.last); {
		case steadier*beside < behind:
			t.order.beside++
		case steadier*behind < beside:
			t.order.behind++
		}
	}
	t.took[t.n%keptTimes] = begun
	t.last, t.run = ended, run
	if t.n++; t.n >= keptTimes {
		t.mid = middleOf(&t.took)
	}
}

// isBeside reports whether GPUs do not wait. Where times tell neither, the one comes about as often as the other: it
// must come at least so many times as often, and more often by so many standard deviations of that difference.
func (o *order) isBeside() bool {
	return o.beside+o.behind > 0 && o.beside >= mostlyBeside*o.behind &&
		o.beside-o.behind >= surelyBeside*math.Sqrt(o.beside+o.behind)
}

const (
	mostlyBeside = 2
	surelyBeside = 3
)
