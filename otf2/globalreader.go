// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"cmp"
	"iter"
)

// Events iterates over the events of all selected locations, ordered by time and, at equal times, by location.
// The event is valid until the next one. sel may be nil.
//
// The order of a location's events is never changed, even if its times go back. Memory is bounded by a window
// per location, open files by ReadOptions.MaxOpenFiles. When a location's file is damaged, its events up to there
// are delivered, then nil and a *FormatError, and if the loop goes on so do the other locations.
func (a *Archive) Events(sel *Selection) iter.Seq2[*Event, error] {
	sel = cmp.Or(sel, &Selection{})
	return func(yield func(*Event, error) bool) {
		m := &merge{filter: newFilter(sel)}
		defer m.close()
		if a.fill(m, sel, func(err error) bool { return yield(nil, err) }) {
			m.run(yield)
		}
	}
}

// fill opens the selected locations. It passes errors to failed and ends, with false, if that returns false.
func (a *Archive) fill(m *merge, sel *Selection, failed func(error) bool) bool {
	locations := a.selected(sel)
	window := a.window(max(len(locations), sel.Among))
	for _, loc := range locations {
		r := a.eventReader(loc, window)
		if err := r.seek(sel.From); err != nil {
			r.fail(err)
		}
		if err := m.add(r); err != nil && !failed(err) {
			return false
		}
	}
	return true
}

// window returns the size of the windows of a number of locations that are read at the same time.
func (a *Archive) window(locations int) int {
	return min(maxWindow, max(smallWindow, a.opts.Memory/max(1, locations)))
}

// merge is a binary heap of readers, each standing at its next event.
type merge struct {
	heap   []turn
	filter *filter
}

// turn is a reader's place in the order. The key is kept beside the pointer: with a thousand readers the heap
// then fits the first-level cache.
type turn struct {
	time     Timestamp
	location LocationRef
	reader   *eventReader
}

func (a *turn) precedes(b *turn) bool {
	if a.time != b.time {
		return a.time < b.time
	}
	return a.location < b.location
}

// add reads to the first wanted event of r and puts it on the heap.
func (m *merge) add(r *eventReader) error {
	ok, err := m.filter.advance(r)
	if !ok {
		r.close()
		return err
	}
	m.heap = append(m.heap, turn{r.event.Time, r.event.Location, r})
	for i := len(m.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !m.heap[i].precedes(&m.heap[parent]) {
			break
		}
		m.heap[i], m.heap[parent] = m.heap[parent], m.heap[i]
		i = parent
	}
	return nil
}

// run yields events until the heap is empty. A reader keeps its turn as long as its events come first, which
// saves most of the heap's work.
func (m *merge) run(yield func(*Event, error) bool) {
	for len(m.heap) > 0 {
		r := m.heap[0].reader
		second := m.second()
		for {
			if !yield(&r.event, nil) {
				return
			}
			ok, err := m.filter.advance(r)
			if !ok {
				m.drop()
				m.siftDown()
				if err != nil && !yield(nil, err) {
					return
				}
				break
			}
			m.heap[0].time = r.event.Time
			if second != nil && !m.heap[0].precedes(second) {
				m.siftDown()
				break
			}
		}
	}
}

// step takes the first reader to its next event; at the end of its file, or where that cannot be read on, it leaves the
// heap.
func (m *merge) step() error {
	r := m.heap[0].reader
	ok, err := m.filter.advance(r)
	if ok {
		m.heap[0].time = r.event.Time
	} else {
		m.drop()
	}
	m.siftDown()
	return err
}

// drop closes the first reader and puts the last one in its place.
func (m *merge) drop() {
	m.heap[0].reader.close()
	last := len(m.heap) - 1
	m.heap[0] = m.heap[last]
	m.heap[last] = turn{}
	m.heap = m.heap[:last]
}

// second is the turn that comes after the first, nil if there is none.
func (m *merge) second() *turn {
	switch len(m.heap) {
	case 1:
		return nil
	case 2:
		return &m.heap[1]
	}
	if m.heap[1].precedes(&m.heap[2]) {
		return &m.heap[1]
	}
	return &m.heap[2]
}

// siftDown restores the heap after its first element changed.
func (m *merge) siftDown() {
	h := m.heap
	if len(h) == 0 {
		return
	}
	moving := h[0]
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].precedes(&h[child]) {
			child++
		}
		if !h[child].precedes(&moving) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = moving
}

func (m *merge) close() {
	for i := range m.heap {
		m.heap[i].reader.close()
	}
}
