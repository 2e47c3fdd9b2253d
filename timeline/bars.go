// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"math"

	"ncclotf2/otf2"
)

// bars is what a location has: its regions in the order in which they were entered, and its transfers. One goroutine
// fills it from the events; another adds operations and waits.
type bars struct {
	start     []uint64 // ns since the begin of the archive
	length    []uint64 // ns
	region    []uint32 // index into archive.regions
	depth     []uint8
	parent    []place  // of the region that asked for it; none
	attribute []uint32 // offset into notes
	notes     notes
	open      []int32 // numbers of regions under way
	last      uint64  // ns of the last event
	cut       int     // regions without an end

	transfers []transfer
	puts      map[putKey]int // transfers under way

	operations []operation
	asked      map[request]uint32 // offset into notes, of operations that were launched together with others
	waits      []wait
}

// request names an operation within a region.
type request struct {
	number uint32
	event  uint64
}

func newBars() *bars { return &bars{puts: make(map[putKey]int), asked: make(map[request]uint32)} }

// place is a region: the n-th of a location.
type place struct {
	row, number uint32
}

var nowhere = place{math.MaxUint32, math.MaxUint32}

type putKey struct {
	window   otf2.RmaWinRef
	matching uint64
}

// transfer is a line between two rows.
type transfer struct {
	start, length uint64 // ns
	bytes         uint64
	to            uint32 // row; noRow
	parent        place
	notes         uint32
	ended         bool
}

const noRow = math.MaxUint32

// operation is one part of a collective, or an end of a message.
type operation struct {
	number         uint32 // of the region on its row
	instance       uint32 // index into archive.instances
	sent, received uint64
	root           uint32
	event          uint64
}

type wait struct {
	number uint32
	length uint64
	kind   uint8  // index into archive.waitKinds
	rank   uint16 // that was waited for
	first  bool
}

// notes holds attribute lists: for each the number of attributes, then id and value of each, as varints.
type notes []byte

// add appends the attributes of lists and gives the offset of what it appended.
func (n *notes) add(lists ...[]otf2.AttributeValue) uint32 {
	at := uint32(len(*n))
	count := 0
	for _, l := range lists {
		count += len(l)
	}
	b := binary.AppendUvarint(*n, uint64(count))
	for _, l := range lists {
		for i := range l {
			b = binary.AppendUvarint(b, uint64(l[i].ID))
			b = binary.AppendUvarint(b, l[i].Bits)
		}
	}
	*n = b
	return at
}

// note is one attribute of a list.
type note struct {
	id    uint32
	value uint64
}

// at reads the list at an offset into out.
func (n notes) at(offset uint32, out []note) []note {
	out, _ = n.read(offset, out)
	return out
}

// read is at that tells where the next list begins, too.
func (n notes) read(offset uint32, out []note) ([]note, uint32) {
	at := int(offset)
	next := func() uint64 {
		v, size := binary.Uvarint(n[at:])
		at += max(size, 0)
		return v
	}
	out = out[:0]
	for range next() {
		id := next()
		out = append(out, note{uint32(id), next()})
	}
	return out, uint32(at)
}

// maxDepth bounds how many regions of a row lie within each other on the page; deeper ones are on the last lane.
const maxDepth = 15

func (b *bars) enter(time uint64, region uint32, parent place, attributes []otf2.AttributeValue) {
	b.start = append(b.start, time)
	b.length = append(b.length, 0)
	b.region = append(b.region, region)
	b.depth = append(b.depth, uint8(min(len(b.open), maxDepth)))
	b.parent = append(b.parent, parent)
	b.attribute = append(b.attribute, b.notes.add(attributes))
	b.open = append(b.open, int32(len(b.start)-1))
}

// leave ends the innermost region. Attributes that come with the end are put behind those of the begin.
func (b *bars) leave(time uint64, attributes []otf2.AttributeValue) {
	n := len(b.open)
	if n == 0 {
		b.cut++
		return
	}
	at := b.open[n-1]
	b.open = b.open[:n-1]
	b.length[at] = time - min(time, b.start[at])
	if len(attributes) > 0 {
		b.annotate(uint32(at), attributes)
	}
}

func (b *bars) annotate(at uint32, more []otf2.AttributeValue) {
	var first []otf2.AttributeValue
	for _, n := range b.notes.at(b.attribute[at], nil) {
		first = append(first, otf2.AttributeValue{ID: otf2.AttributeRef(n.id), Bits: n.value})
	}
	b.attribute[at] = b.notes.add(first, more)
}

// end closes what is open when the events have ended.
func (b *bars) end() {
	b.cut += len(b.open)
	for _, at := range b.open {
		b.length[at] = b.last - min(b.last, b.start[at])
	}
	b.open = nil
	b.puts = nil
}
