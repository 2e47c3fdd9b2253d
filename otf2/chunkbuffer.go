// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"encoding/binary"
	"slices"
)

// firstBuffer is the size of a new buffer in bytes. It grows up to the chunk size, so a quiet location costs little.
const firstBuffer = 1 << 10

// chunkBuffer is the chunk of an event file that records are appended to.
type chunkBuffer struct {
	buf    []byte    // the chunk from its header on; encoders may write anything behind pos
	pos    int       // end of the used part of buf
	high   int       // a record that would end near this position takes the slow path
	size   int       // bytes of a chunk in the file
	last   Timestamp // time of the last event
	events uint64    // records written, those of earlier chunks included
	probe  int       // where the current record begins if it may leave too little room for the end mark, else 0
	parked bool      // buf holds the chunk's header alone, see EventWriter.Park
}

// resize gives the buffer room for n bytes of the chunk.
func (b *chunkBuffer) resize(n int) {
	n = min(n, b.size)
	// A full chunk is written together with the header and end mark of the next one.
	buf := make([]byte, n+headerSize+endSize+encoderSlack)
	copy(buf, b.buf[:b.pos])
	b.buf = buf
	b.high = n - 1
}

// stamp writes a time stamp at p and returns the position behind it.
func (b *chunkBuffer) stamp(p int, t Timestamp) int {
	place := b.buf[p : p+stampSize]
	place[0] = recordTimestamp
	binary.LittleEndian.PutUint64(place[1:], uint64(t))
	b.last = t
	return p + stampSize
}

// closeChunk pads the chunk and returns it with the header and end mark of the next one.
func (b *chunkBuffer) closeChunk() []byte {
	clear(b.buf[b.pos:b.size])
	appendHeader(b.buf[:b.size], b.events+1, b.events)
	end := b.size + headerSize
	b.buf[end], b.buf[end+1] = recordEndOfFile, recordEndOfBuffer
	return b.buf[:end+endSize]
}

// openChunk begins the chunk behind a closed one with the time stamp of its first event.
func (b *chunkBuffer) openChunk(t Timestamp) {
	copy(b.buf, b.buf[b.size:b.size+headerSize])
	b.pos = b.stamp(headerSize, t)
}

// park frees the buffer, whose content must be in the file. Only the header is needed again.
func (b *chunkBuffer) park() {
	b.parked = true
	b.buf = slices.Clone(b.buf[:headerSize])
	b.high = 0 // no event fits: the next one takes the slow path
}

// unpark allocates a parked buffer again.
func (b *chunkBuffer) unpark() {
	if !b.parked {
		return
	}
	b.parked = false
	n := firstBuffer
	for n < b.pos+firstBuffer/2 {
		n *= 2
	}
	header, pos := b.buf, b.pos
	b.buf, b.pos = nil, 0
	b.resize(n)
	copy(b.buf, header)
	b.pos = pos
}
