// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// All waits in the order of the begins of their operations, in addition to those of bars, so that a query of a range of
// time reads only that range, whatever the number of ranks. An operation begins with its first member, as in selections
// of the report.

// headWaits is the index of the waits in the head.
type headWaits struct {
	headSeries
	Starts []uint64 `json:"starts"` // by block: begin of the first wait's operation
	Ends   []uint64 `json:"ends"`   // by block: last end of a wait of this or an earlier block
}

// headWaiting is the waiting in the operations of one function on a communicator, as in the report.
type headWaiting struct {
	Comm   int    `json:"comm"` // index into comms; −1: none
	Name   string `json:"name"`
	Waits  uint64 `json:"waits"`
	Waited uint64 `json:"waited"`
}

// mostWaiting bounds the number of headWaiting.
const mostWaiting = 64

// waiting returns the functions with the most waiting.
func (d *Data) waiting() []headWaiting {
	comms := make(map[otf2.CommRef]int)
	for i, c := range d.comms {
		comms[c.ref] = i
	}
	all := []headWaiting{}
	for i := range d.report.WaitStates.Pairs {
		p := &d.report.WaitStates.Pairs[i]
		if p.Waited == 0 {
			continue
		}
		one := headWaiting{Comm: -1, Name: p.Name, Waits: p.Waits, Waited: p.Waited}
		if at, ok := comms[p.Comm]; ok {
			one.Comm = at
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b headWaiting) int { return cmp.Compare(b.Waited, a.Waited) })
	return all[:min(len(all), mostWaiting)]
}

// functionNumber returns the index of a function; beyond the limit all share the last index.
func (r *reader) functionNumber(name string) uint16 {
	fn, ok := r.functionOf[name]
	if !ok && len(r.functions) < math.MaxUint16 {
		fn = uint16(len(r.functions))
		r.functionOf[name] = fn
		r.functions = append(r.functions, name)
	}
	return fn
}

// keepWait stores a wait: length, rank + 1, rank waited for + 1, whether in start-up, communicator, function, begin
// relative to the operation's.
func (r *reader) keepWait(w *waits.Wait) {
	r.order++
	since := r.since(w.Since)
	r.waited.add(since, r.order, r.scale(w.Waited), uint64(w.World+1), uint64(w.For+1), analysis.BoolCount(w.StartUp),
		uint64(r.commOf[w.Comm]), uint64(r.functionNumber(w.Function)), r.since(w.Begin)-since)
}

// allWaits writes the waits: begin of the operation (differences), and a column for each other value.
func (w *writer) allWaits() {
	const others = 7
	h := &headWaits{headSeries: headSeries{Block: w.made}, Starts: []uint64{}, Ends: []uint64{}}
	var start, length, rank, by, first, comm, function, after column
	columns := [others]*column{&length, &rank, &by, &first, &comm, &function, &after}
	last := uint64(0)
	write := func() {
		w.block(newBlock(&start, &length, &rank, &by, &first, &comm, &function, &after))
		h.Ends = append(h.Ends, last)
	}
	for m := w.waitsInTime.sorted(); m.more; m.next() {
		if h.Count%chunk == 0 {
			h.Starts = append(h.Starts, m.a)
		}
		start.difference(m.a)
		lasts := m.a
		for _, c := range columns {
			n := m.entry.readNumber()
			if c == &length || c == &after {
				lasts += n
			}
			c.add(n)
		}
		last = max(last, lasts)
		if h.Count++; h.Count%chunk == 0 {
			write()
		}
	}
	if h.Count%chunk != 0 {
		write()
	}
	if h.Count > 0 {
		w.plan.waiting = h
	}
}
