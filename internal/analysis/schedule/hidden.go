// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
)

// A GPU may do a part of its work for an operation while the operation before waits for others. Only the rest of that
// work is seen, so the rank would seem to work less than those that it waited for. Waits vary, and a GPU's work hardly
// does. So where what is seen and the wait together are as in other iterations, and what is seen is not, the wait hid
// the rest of the work.

// pastWork has a rank's last times before operations of a series that it called before the operation before had ended,
// in ns.
type pastWork struct {
	seen [keptWorks]float32 // between the operations
	all  [keptWorks]float32 // the wait before included
	n    int
}

const (
	keptWorks  = 32
	fewWorks   = 4  // fewer are no evidence
	hiddenPart = 8  // work is unknown if less than this part of a wait is seen of it
	steadier   = 2  // how many times nearer to earlier times must one of the two be
	likeWait   = 16 // how near, as a part of the wait
)

// workBefore returns how long a rank worked before an operation of a series, in ns; −1: unknown. own is the time since
// the operation before ended, known what causes knows of it.
func (r *recorded) workBefore(l *causes.Local, of int32, own, known uint64) int64 {
	at := l.Before % causes.KeptEnds
	if r.arrived[at] != l.Before || l.Called && l.Ready >= l.Ended { // called later, so all of the work was then
		return int64(known)
	}
	past, waited := keyed.Entry(r.past, of), r.waited[at]
	with, without := past.distances(own, waited)
	past.add(own, own+waited)

	switch {
	case own < waited/hiddenPart:
		return -1
	case likeWait*with < float32(waited) && steadier*with < without:
		return int64(max(known, own+waited))
	}
	return int64(known)
}

func (p *pastWork) add(seen, all uint64) {
	p.seen[p.n%keptWorks], p.all[p.n%keptWorks] = float32(seen), float32(all)
	p.n++
}

// distances returns how far the time between two operations is from earlier ones, with the wait before and without it,
// in ns; infinite if fewWorks are not known.
func (p *pastWork) distances(own, waited uint64) (with, without float32) {
	n := min(p.n, keptWorks)
	if n < fewWorks {
		return float32(math.Inf(1)), float32(math.Inf(1))
	}
	return thirdNearest(p.all[:n], float32(own+waited)), thirdNearest(p.seen[:n], float32(own))
}

// thirdNearest returns how far the third nearest of several times is.
func thirdNearest(all []float32, to float32) float32 {
	far := float32(math.Inf(1))
	first, second, third := far, far, far
	for _, ns := range all {
		switch d := max(ns-to, to-ns); {
		case d < first:
			first, second, third = d, first, second
		case d < second:
			second, third = d, second
		case d < third:
			third = d
		}
	}
	return third
}
