// SPDX-License-Identifier: Apache-2.0

package collector

import "github.com/nccl-otf2/nccl-otf2/plugin/shm"

// merge gives the records of several rings in the order of their ticks. Records of one ring keep their order whatever
// their ticks are. Records of equal ticks come in the order of their rings' numbers.
type merge struct {
	heap   []head
	record shm.Record
	taken  positions // what has been given so far

	stalled error // why the last drain ended early: more cannot be read now
}

// head is the next record of a ring.
type head struct {
	ticks uint64
	ring  *shm.Ring
}

func (a head) less(b head) bool {
	return a.ticks < b.ticks || a.ticks == b.ticks && a.ring.Index() < b.ring.Index()
}

// drain calls take for all published records with ticks up to the horizon; take must not keep them. at is the position
// of the record in its ring. late says that records with greater ticks came before. drain ends early when take returns
// false or a ring cannot be read for now. It returns the number of records.
func (m *merge) drain(rings []*shm.Ring, horizon uint64,
	take func(ring int, at uint64, r *shm.Record, late bool) bool) (n int) {
	m.heap, m.stalled = m.heap[:0], nil
	for _, ring := range rings {
		if ticks, ok := ring.Peek(); ok && ticks <= horizon {
			m.heap = append(m.heap, head{ticks, ring})
		} else if m.stalled = ring.Stalled(); m.stalled != nil {
			return 0
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	for len(m.heap) > 0 {
		top := &m.heap[0]
		at := top.ring.Position()
		if top.ring.Next(&m.record) {
			late := m.record.Ticks < m.taken.last
			m.taken.add(top.ring.Index(), m.record.Ticks, top.ring.Position())
			n++
			if !take(top.ring.Index(), at, &m.record, late) {
				return n
			}
		}
		if ticks, ok := top.ring.Peek(); ok && ticks <= horizon {
			top.ticks = ticks
		} else if m.stalled = top.ring.Stalled(); m.stalled != nil {
			return n // others' records would come before this one's
		} else {
			*top = m.heap[len(m.heap)-1]
			m.heap = m.heap[:len(m.heap)-1]
		}
		m.down(0)
	}
	return n
}

// down restores the heap below i.
func (m *merge) down(i int) {
	h := m.heap
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].less(h[child]) {
			child++
		}
		if !h[child].less(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
