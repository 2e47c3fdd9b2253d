// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Charges attribute waits to the ranks that caused them, operation by operation, as package causes determines them. The
// charges of one operation arrive together.

// charges collects the charges of one operation.
type charges struct {
	sorterBuffer
	order      uint64
	begin, end otf2.Timestamp
	at         map[charged]int // index into list
	list       []charge
	since      func(otf2.Timestamp) uint64
}

// charged is whom waits are charged to: a rank, and in which way it was late, as an index into chargedKinds.
type charged struct {
	rank int32
	kind uint8
}

// charge is the waiting charged, in ns.
type charge struct {
	charged
	ns float64
}

// chargedKinds are the kinds of delay that a rank causes by itself.
var chargedKinds = []verdict.Kind{verdict.HostLate, verdict.GPULate, verdict.Late}

// mostCharged bounds the ranks kept apart for an operation; the charges of further ranks count for rank −1.
const mostCharged = 32

// addCharge adds a charge; see operations.Observer.
func (c *charges) addCharge(rank int, of causes.Kind, begin, end otf2.Timestamp, ns float64) {
	if begin != c.begin || end != c.end {
		c.storeCharges()
		c.begin, c.end = begin, end
	}
	if c.at == nil {
		c.at = make(map[charged]int)
	}
	to := charged{int32(rank), uint8(slices.Index(chargedKinds, verdict.KindOf(of)))}
	i := keyed.EntryMade(c.at, to, func() int {
		c.list = append(c.list, charge{charged: to})
		return len(c.list) - 1
	})
	c.list[i].ns += ns
}

// storeCharges stores the charges of the operation: length, number of charges, rank + 1, kind and ns of each.
func (c *charges) storeCharges() {
	if len(c.list) == 0 {
		return
	}
	slices.SortFunc(c.list, func(a, b charge) int {
		return cmp.Or(cmp.Compare(b.ns, a.ns), cmp.Compare(a.rank, b.rank), cmp.Compare(a.kind, b.kind))
	})
	if len(c.list) > mostCharged {
		rest := charge{charged: charged{rank: -1}}
		for _, one := range c.list[mostCharged-1:] {
			rest.ns += one.ns
		}
		c.list = append(c.list[:mostCharged-1], rest)
	}
	numbers := []uint64{uint64(c.end - min(c.end, c.begin)), uint64(len(c.list))}
	for _, one := range c.list {
		numbers = append(numbers, uint64(one.rank+1), uint64(one.kind), uint64(one.ns+0.5))
	}
	c.order++
	c.add(c.since(c.begin), c.order, numbers...)
	clear(c.at)
	c.list = c.list[:0]
}

// headCharges is the index of the charges in the head.
type headCharges struct {
	headSeries
	Starts []uint64       `json:"starts"` // by block: begin of the first operation
	Kinds  []verdict.Kind `json:"kinds"`
}

// allCharges writes the charges: start (differences), length, number of charges, ranks + 1, kinds, ns.
func (w *writer) allCharges() {
	h := &headCharges{headSeries: headSeries{Block: w.made}, Starts: []uint64{}, Kinds: chargedKinds}
	var start, length, count, rank, kind, ns column
	write := func() { w.block(newBlock(&start, &length, &count, &rank, &kind, &ns)) }
	for m := w.chargesOf.sorted(); m.more; m.next() {
		if h.Count%chunk == 0 {
			h.Starts = append(h.Starts, m.a)
		}
		start.difference(m.a)
		length.add(m.entry.readNumber())
		n := m.entry.readNumber()
		count.add(n)
		for range n {
			rank.add(m.entry.readNumber())
			kind.add(m.entry.readNumber())
			ns.add(m.entry.readNumber())
		}
		if h.Count++; h.Count%chunk == 0 {
			write()
		}
	}
	if h.Count%chunk != 0 {
		write()
	}
	if h.Count > 0 {
		w.plan.charges = h
	}
}
