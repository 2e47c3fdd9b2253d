// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The page's data are blocks, each compressed by itself (raw deflate, RFC 1951). The head is JSON (see head.go). Every
// other block consists of columns: the number of bytes of the column, then its values as varints (7 bits each, the
// lowest first). "Differences" are taken from the value before in the column, starting from 0 in each block; signed
// ones are zigzag-encoded. Times are ns.
//
//	bars         of a lane, up to chunk: start (from the end of the bar before), length, region, wait
//	notes        of the same bars: parent (bar + 1, 0: none; signed differences), number of children, children (signed
//	             differences), waits (place in the block, kind, rank, whether first), attributes (see below)
//	transfers    of a row, up to chunk: start (differences), length + 1 (0: not known), row (+ 1, 0: not known), bytes,
//	             parent (bar + 1; signed differences), attributes
//	operations   of a row, chunk or a few more: bar (differences), instance (signed differences), sent, received, root + 1,
//	             size, attributes
//	instances    up to chunk: kind (bit 0: message, 1: not matched), communicator, function, ordinal (signed
//	             differences), expected parts, parts, then of all parts: rank, bar (signed differences from
//	             that of the same place in the instance before)
//	path         up to chunk segments of the critical path, one behind the other: length, rank + 1 (signed differences),
//	             what (index into the head's list)
//	waiting      up to chunk waits in the order of their operations' begins: begin of the operation's first member
//	             (differences; from 0), length, rank + 1, rank that was waited for + 1, whether in start-up, communicator,
//	             function, begin of the wait (from that of the operation)
//	charges      up to chunk operations: begin (differences; from 0), last begin (from the first), number of charges; of each
//	             rank + 1, kind (index into the head's list), ns of waiting that it caused
//	metrics      of a series, up to chunk intervals: time of the points around them (differences; one more than there are
//	             intervals), then of each member its values there: integers as signed differences in 64 bits that wrap,
//	             doubles as they are, in 8 bytes, the lowest first
//	metric nodes of all series: start (differences; of a series from 0); then of all series, their members, the nodes of
//	             each: least, greatest, area (values times ns), as doubles; ns without a value
//	nodes        of all lanes, then of all rows with transfers; each: start (from that of the node before), length,
//	             busy, region, wait. Then of each lane: number of regions, and of each the region, count, time
//
// Attributes are: of each entry the number of a shape; the shapes (number of attributes, their ids); then for each
// shape and each of its attributes a column with the values of the entries of that shape, signed differences in 64 bits
// that wrap.
const chunk = 8192

// block is the columns of a block, later their compressed form.
type block struct {
	buf    []byte
	packed bytes.Buffer
}

// spareBlocks and packers reuse large buffers.
var (
	spareBlocks = sync.Pool{New: func() any { return new(block) }}
	packers     = sync.Pool{New: func() any {
		w, _ := flate.NewWriter(nil, 6) // the level is one it knows
		return w
	}}
)

// newBlock makes a block of columns and empties these.
func newBlock(all ...*column) *block {
	b := spareBlocks.Get().(*block)
	b.buf = b.buf[:0]
	b.columns(all...)
	return b
}

// release returns the block to the pool.
func (b *block) release() { spareBlocks.Put(b) }

func (b *block) columns(all ...*column) {
	for _, c := range all {
		b.buf = binary.AppendUvarint(b.buf, uint64(len(c.buf)))
		b.buf = append(b.buf, c.buf...)
		c.buf, c.last = c.buf[:0], 0
	}
}

// pack compresses the block.
func (b *block) pack() {
	b.packed.Reset()
	pack(b.buf, &b.packed)
}

// column is a column under construction.
type column struct {
	buf  []byte
	last uint64
}

func (c *column) add(v uint64) { c.buf = binary.AppendUvarint(c.buf, v) }

// difference adds a value that is not less than the value before.
func (c *column) difference(v uint64) {
	c.add(v - c.last)
	c.last = v
}

// signed adds a value as a signed difference from the value before.
func (c *column) signed(v uint64) {
	c.zigzag(v - c.last)
	c.last = v
}

// raw adds 64 bits uncompressed.
func (c *column) raw(v uint64) { c.buf = binary.LittleEndian.AppendUint64(c.buf, v) }

func (c *column) zigzag(d uint64) { c.add(zigzag(d)) }

// shapes collects lists of attributes.
type shapes struct {
	of    column
	known map[string]int
	all   []shape
	key   []byte
	texts texts
}

// shape is the lists that have the same attributes.
type shape struct {
	ids     []uint32
	textual []bool // by attribute: whether its values are ids of strings
	values  []column
}

func (s *shapes) add(list []note) {
	s.key = s.key[:0]
	for i := range list {
		s.key = binary.AppendUvarint(s.key, uint64(list[i].id))
	}
	at, ok := s.known[string(s.key)]
	if !ok {
		if s.known == nil {
			s.known = make(map[string]int)
		}
		at = len(s.all)
		s.known[string(s.key)] = at
		one := shape{values: make([]column, len(list))}
		for i := range list {
			one.ids = append(one.ids, list[i].id)
			one.textual = append(one.textual, s.texts.textual[list[i].id])
			if one.textual[i] {
				s.texts.named[list[i].value] = true
			}
		}
		s.all = append(s.all, one)
	}
	s.of.add(uint64(at))
	one := &s.all[at]
	for i := range list {
		c := &one.values[i]
		if one.textual[i] && list[i].value != c.last {
			s.texts.named[list[i].value] = true
		}
		c.signed(list[i].value)
	}
}

// write adds the columns to a block and empties them.
func (s *shapes) write(b *block) {
	var table column
	for _, one := range s.all {
		table.add(uint64(len(one.ids)))
		for _, id := range one.ids {
			table.add(uint64(id))
		}
	}
	b.columns(&s.of, &table)
	for _, one := range s.all {
		for i := range one.values {
			b.columns(&one.values[i])
		}
	}
	clear(s.known)
	s.all = s.all[:0]
}

// texts are the strings that attributes refer to.
type texts struct {
	textual map[uint32]bool // by attribute
	named   map[uint64]bool
}

func textsOf(attributes []otf2.Attribute, named map[uint64]bool) texts {
	t := texts{make(map[uint32]bool), named}
	for _, a := range attributes {
		if a.Type == otf2.TypeString {
			t.textual[uint32(a.Self)] = true
		}
	}
	return t
}

// pack compresses b.
func pack(b []byte, to io.Writer) {
	w := packers.Get().(*flate.Writer)
	w.Reset(to)
	_, _ = w.Write(b) // writes to buffers cannot fail
	_ = w.Close()
	packers.Put(w)
}
