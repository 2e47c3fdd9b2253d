// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"encoding/binary"

	"github.com/klauspost/compress/flate"
)

// The page's data are blocks, each compressed by itself (raw deflate, RFC 1951). The head is JSON (see head.go); all
// others are columns: the number of bytes of a column, then its values, as varints (of 7 bits, the lowest first).
// "Differences" are from the value before in the column, from 0 at the begin of a block; signed ones are zigzag. Times
// are ns.
//
//	bars         of a lane, up to chunk: start (from the end of the bar before), length, region, wait
//	notes        of the same bars: parent (bar + 1, 0: none; signed differences), number of children, children (signed
//	             differences), waits (place in the block, kind, rank, whether first), attributes (see below)
//	transfers    of a row, up to chunk: start (differences), length + 1 (0: not known), row (+ 1, 0: not known), bytes,
//	             parent (bar + 1; signed differences), attributes
//	operations   of a row, chunk or a few more: bar (differences), instance (signed differences), sent, received, root + 1,
//	             attributes
//	instances    up to chunk: kind (bit 0: message, 1: not matched), communicator, function, ordinal (signed
//	             differences), expected parts, parts, then of all parts: rank, bar (signed differences from
//	             that of the same place in the instance before)
//	metrics      of a series, up to chunk intervals: time of the points around them (differences; one more than there are
//	             intervals), then of each member its values there: integers as signed differences in 64 bits that wrap,
//	             doubles as they are, in 8 bytes, the lowest first
//	metric nodes of all series: start (differences; of a series from 0); then of all series, their members, the nodes of
//	             each: least, greatest, area (values times ns), as doubles; ns without a value
//	nodes        of all lanes, then of all rows with transfers; each: start (from that of the node before), length,
//	             busy, region, wait. Then of each lane: number of regions, and of each the region, count, time
//
// Attributes are: of each entry the number of a shape; the shapes (number of attributes, their ids); then for each shape
// and each of its attributes a column with the values of the entries of that shape, signed differences in 64 bits that
// wrap.
const chunk = 8192

// block is a block in the making.
type block struct{ buf []byte }

func (b *block) column(c *column) {
	b.buf = binary.AppendUvarint(b.buf, uint64(len(c.buf)))
	b.buf = append(b.buf, c.buf...)
}

func (b *block) columns(all ...*column) {
	for _, c := range all {
		b.column(c)
	}
}

// column is a column in the making.
type column struct {
	buf  []byte
	last uint64
}

func (c *column) add(v uint64) { c.buf = binary.AppendUvarint(c.buf, v) }

// difference adds a value that is not less than the one before.
func (c *column) difference(v uint64) {
	c.add(v - c.last)
	c.last = v
}

// signed adds a value as difference from the one before.
func (c *column) signed(v uint64) {
	c.zigzag(v - c.last)
	c.last = v
}

// raw adds 64 bits as they are.
func (c *column) raw(v uint64) { c.buf = binary.LittleEndian.AppendUint64(c.buf, v) }

func (c *column) zigzag(d uint64) { c.add(d<<1 ^ uint64(int64(d)>>63)) }

// shapes collects attribute lists.
type shapes struct {
	of     column
	ids    [][]note
	known  map[string]int
	values [][]column
	key    []byte
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
		at = len(s.ids)
		s.known[string(s.key)] = at
		s.ids = append(s.ids, append([]note(nil), list...))
		s.values = append(s.values, make([]column, len(list)))
	}
	s.of.add(uint64(at))
	for i := range list {
		s.values[at][i].signed(list[i].value)
	}
}

func (s *shapes) write(b *block) {
	var table column
	for _, list := range s.ids {
		table.add(uint64(len(list)))
		for i := range list {
			table.add(uint64(list[i].id))
		}
	}
	b.columns(&s.of, &table)
	for i := range s.values {
		for j := range s.values[i] {
			b.column(&s.values[i][j])
		}
	}
}

// pack compresses a block.
func pack(b []byte) []byte {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, 6) // the level is one it knows
	_, _ = w.Write(b)                // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}
