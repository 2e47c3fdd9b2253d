// SPDX-License-Identifier: Apache-2.0

// Package overtime says when ranks waited: sums by windows of time, in memory that does not grow with the run.
package overtime

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// mostWindows bounds the windows of a run. Of a run that is longer than they are together two become one.
const mostWindows = 64

// narrowest is the width of the first windows, as a power of two ns.
const narrowest = 10

// Line adds up what was waited by windows of time. Windows have the width of a power of two of ns and begin at
// multiples of it on the archive's clock, so that the sums do not depend on the order in which waits come. nil takes
// everything and keeps nothing.
type Line struct {
	ranks   int
	shift   uint // windows are 1<<shift ns wide
	first   uint64
	windows []window
}

// window is one of them.
type window struct {
	waited uint64
	begun  uint64
	goes   []float64 // ns that go back to each rank; nil: nothing does
}

// NewLine makes a line for a number of ranks of the world.
func NewLine(ranks int) *Line { return &Line{ranks: ranks, shift: narrowest} }

// Add takes a wait. Each window gets the part that is in it.
func (l *Line) Add(begin otf2.Timestamp, waited uint64) {
	if l == nil || waited == 0 {
		return
	}
	l.windowAt(begin)
	l.windowAt(begin + otf2.Timestamp(waited) - 1) // they can have become wider
	l.windowAt(begin).begun++
	end := uint64(begin) + waited
	for t := uint64(begin); t < end; {
		next := l.next(t, end)
		l.windows[t>>l.shift-l.first].waited += next - t
		t = next
	}
}

// Charge adds the part of the waiting between two times that a rank of the world caused: ns, summed over all that
// waited.
func (l *Line) Charge(rank int, begin, end otf2.Timestamp, ns float64) {
	if l == nil || ns <= 0 || rank < 0 || rank >= l.ranks {
		return
	}
	l.windowAt(begin)
	l.windowAt(max(begin, end))
	whole := float64(max(end, begin+1) - begin)
	for t, e := uint64(begin), uint64(max(end, begin+1)); t < e; {
		next := l.next(t, e)
		w := &l.windows[t>>l.shift-l.first]
		if w.goes == nil {
			w.goes = make([]float64, l.ranks)
		}
		w.goes[rank] += ns * float64(next-t) / whole
		t = next
	}
}

// next is where the window of a time ends, or the end if that comes first. The last window of all has none: times of
// damaged archives may be in it.
func (l *Line) next(t, end uint64) uint64 {
	if next := (t>>l.shift + 1) << l.shift; next > t {
		return min(next, end)
	}
	return end
}

// windowAt gives the window of a time, after making room for it.
func (l *Line) windowAt(t otf2.Timestamp) *window {
	i := uint64(t) >> l.shift
	if i >= l.first && i-l.first < uint64(len(l.windows)) {
		return &l.windows[i-l.first]
	}
	if len(l.windows) == 0 {
		l.first, l.windows = i, make([]window, 1, mostWindows)
		return &l.windows[0]
	}
	last := l.first + uint64(len(l.windows)) - 1
	for max(last, i)-min(l.first, i) >= mostWindows {
		l.widen(1)
		i, last = uint64(t)>>l.shift, l.first+uint64(len(l.windows))-1
	}
	for ; i < l.first; l.first-- {
		l.windows = slices.Insert(l.windows, 0, window{})
	}
	for i >= l.first+uint64(len(l.windows)) {
		l.windows = append(l.windows, window{})
	}
	return &l.windows[i-l.first]
}

// widen makes windows wider by a power of two.
func (l *Line) widen(by uint) {
	first := l.first >> by
	n := 0
	for i := range l.windows {
		to := int((l.first+uint64(i))>>by - first)
		if to != i {
			l.windows[to].merge(&l.windows[i])
			l.windows[i] = window{}
		}
		n = to + 1
	}
	l.first, l.windows, l.shift = first, l.windows[:n], l.shift+by
}

func (w *window) merge(o *window) {
	w.waited += o.waited
	w.begun += o.begun
	switch {
	case w.goes == nil:
		w.goes = o.goes
	case o.goes != nil:
		for r, ns := range o.goes {
			w.goes[r] += ns
		}
	}
}

// Window is a part of the run. Times are ns.
type Window struct {
	Begin  otf2.Timestamp `json:"begin"` // on the archive's clock
	End    otf2.Timestamp `json:"end"`
	Waits  uint64         `json:"waits"` // that began in it
	Waited uint64         `json:"waited_ns"`
	// Share is Waited of the time of all ranks in the window.
	Share float64 `json:"share"`
	// Rank is the rank of the world to which most of the waiting in the window goes back, −1 if that is not known of
	// any, and GoesBack how much; docs/causes.md says how that is found.
	Rank     int     `json:"rank"`
	Name     string  `json:"rank_name"`
	GoesBack float64 `json:"goes_back_ns"`
}

// Windows gives the windows from the begin of the run to its end, in order; ranks is how many have data.
func (l *Line) Windows(begin, end otf2.Timestamp, ranks int) []Window {
	all := []Window{}
	if l == nil || len(l.windows) == 0 || end <= begin {
		return all
	}
	l.windowAt(begin)
	l.windowAt(end - 1)
	for i := range l.windows {
		w := &l.windows[i]
		from := otf2.Timestamp((l.first + uint64(i)) << l.shift)
		one := Window{Begin: max(from, begin), End: min(from+1<<l.shift, end), Waits: w.begun, Waited: w.waited,
			Rank: -1}
		if one.End <= one.Begin { // outside of what is taken for the run
			if w.waited == 0 {
				continue
			}
			one.Begin, one.End = from, from+1<<l.shift
		}
		one.setShare(ranks)
		for r, ns := range w.goes {
			if ns > one.GoesBack {
				one.Rank, one.GoesBack = r, ns
			}
		}
		all = append(all, one)
	}
	return all
}

func (w *Window) setShare(ranks int) {
	if w.End > w.Begin && ranks > 0 {
		w.Share = float64(w.Waited) / (float64(w.End-w.Begin) * float64(ranks))
	}
}

// Worst is the window with the greatest share of waiting, nil if nobody waited.
func Worst(all []Window) *Window {
	if len(all) == 0 {
		return nil
	}
	at := slices.IndexFunc(all, func(w Window) bool { return w.Waited > 0 })
	if at < 0 {
		return nil
	}
	best := slices.MaxFunc(all, func(a, b Window) int {
		return cmp.Or(
			cmp.Compare(a.Share, b.Share), cmp.Compare(b.Begin, a.Begin))
	})
	return &best
}
