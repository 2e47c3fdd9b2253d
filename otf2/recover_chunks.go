// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"encoding/binary"
	"slices"
)

// chunkBuilder puts whole records, as they stand in another file, into chunks of a new one.
type chunkBuilder struct {
	out   []byte
	chunk int
	start int // of the current chunk
	big   bool
}

func newChunkBuilder(chunk int64) *chunkBuilder {
	return &chunkBuilder{chunk: int(chunk), start: -1}
}

// add appends a record of a byte order. Records of one order share chunks.
func (c *chunkBuilder) add(big bool, raw []byte) {
	if c.start < 0 || big != c.big || len(c.out)-c.start+len(raw)+endSize > c.chunk {
		c.begin(big)
	}
	c.out = append(c.out, raw...)
}

// begin opens a chunk; the one before is filled up.
func (c *chunkBuilder) begin(big bool) {
	if c.start >= 0 {
		c.out = append(c.out, make([]byte, c.chunk-(len(c.out)-c.start))...)
	}
	c.start, c.big = len(c.out), big
	c.out = append(c.out, make([]byte, headerSize)...)
	putHeader(c.out[c.start:], big, 1, 0)
}

// finish returns the file.
func (c *chunkBuilder) finish() []byte {
	if c.start < 0 {
		c.begin(false)
	}
	return append(c.out, recordEndOfFile, recordEndOfBuffer)
}

// putHeader writes a chunk header over the start of b.
func putHeader(b []byte, big bool, first, last uint64) {
	b[0] = recordHeader
	if big {
		b[1] = bigEndian
		binary.BigEndian.PutUint64(b[2:], first)
		binary.BigEndian.PutUint64(b[10:], last)
		return
	}
	b[1] = littleEndian
	binary.LittleEndian.PutUint64(b[2:], first)
	binary.LittleEndian.PutUint64(b[10:], last)
}

// withEvents returns a Location record, its id and length field included, with another number of events. Fields
// that later versions may have appended stay.
func withEvents(big bool, raw []byte, head int, events uint64) []byte {
	d := fieldDecoder{buf: raw, pos: head, big: big}
	d.c64() // self
	d.c32() // name
	d.u8()  // type
	before := d.pos
	d.c64()
	if d.err != nil {
		return raw
	}
	number := appendC64(nil, events)
	if big && len(number) > 1 {
		slices.Reverse(number[1:])
	}
	fields := append(append(append([]byte(nil), raw[head:before]...), number...), raw[d.pos:]...)
	out := []byte{raw[0]}
	switch {
	case len(fields) < 255:
		out = append(out, byte(len(fields)))
	case big:
		out = binary.BigEndian.AppendUint64(append(out, 0xff), uint64(len(fields)))
	default:
		out = binary.LittleEndian.AppendUint64(append(out, 0xff), uint64(len(fields)))
	}
	return append(out, fields...)
}
