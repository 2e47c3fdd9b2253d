// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
)

// temp is where temporary files lie, and the first thing that went wrong with one. After that nothing more is written
// or read: who uses them asks for failed at the end.
type temp struct {
	mu  sync.Mutex
	err error
}

func (t *temp) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = fmt.Errorf("%w: set TMPDIR to a folder with as much room as the archive takes", err)
	}
}

// failed is what went wrong, nil if nothing did.
func (t *temp) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// spool is a temporary file without a name, made when something is written to it. Several goroutines can write.
type spool struct {
	temp *temp
	mu   sync.Mutex
	file *os.File
	size int64
}

// extent is a piece of a spool.
type extent struct {
	at   int64
	size int
}

func (s *spool) write(b []byte) extent {
	f, at := s.reserve(len(b))
	if f == nil {
		return extent{}
	}
	if _, err := f.WriteAt(b, at); err != nil {
		s.temp.fail(err)
	}
	return extent{at, len(b)}
}

// reserve gives the place of that many bytes; no file if there cannot be one.
func (s *spool) reserve(size int) (*os.File, int64) {
	if s.temp.failed() != nil {
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		f, err := os.CreateTemp("", "nccl-otf2-timeline-")
		if err == nil {
			s.file = f
			err = os.Remove(f.Name())
		}
		if err != nil {
			s.temp.fail(err)
			return nil, 0
		}
	}
	s.size += int64(size)
	return s.file, s.size - int64(size)
}

// read reads a piece into a buffer, and gives the buffer.
func (s *spool) read(e extent, into []byte) []byte {
	if cap(into) < e.size {
		into = make([]byte, e.size)
	}
	into = into[:e.size]
	if s.temp.failed() != nil {
		return into[:0]
	}
	if _, err := s.file.ReadAt(into, e.at); err != nil {
		s.temp.fail(err)
		return into[:0]
	}
	return into
}

// close gives the room back.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // nobody wants what is in it
		s.file = nil
	}
}

// stream is a sequence of records of varints and bytes. One goroutine writes it; what it has written lies in a spool,
// but for the last piece.
type stream struct {
	to     *spool
	piece  int // bytes after which a piece is written
	buf    []byte
	pieces []extent
}

// number adds a number to the record.
func (s *stream) number(v uint64) { s.buf = binary.AppendUvarint(s.buf, v) }

// end ends a record.
func (s *stream) end() {
	if len(s.buf) >= s.piece {
		s.flush()
	}
}

// flush writes what is in memory.
func (s *stream) flush() {
	if len(s.buf) > 0 {
		s.pieces = append(s.pieces, s.to.write(s.buf))
		s.buf = s.buf[:0]
	}
}

func (s *stream) open() *cursor { return &cursor{of: s} }

// cursor reads the records of a stream that is complete.
type cursor struct {
	of   *stream
	next int // piece; behind the last one the rest that is in memory
	buf  []byte
	at   int
	own  []byte
}

// more tells whether there is another record.
func (c *cursor) more() bool {
	for c.at >= len(c.buf) {
		switch {
		case c.next < len(c.of.pieces):
			c.own = c.of.to.read(c.of.pieces[c.next], c.own)
			c.buf = c.own
		case c.next == len(c.of.pieces):
			c.buf = c.of.buf
		default:
			return false
		}
		c.next++
		c.at = 0
	}
	return true
}

// number reads a number of a record; 0 behind its end, which only comes of a file that could not be read.
func (c *cursor) number() uint64 {
	v, size := binary.Uvarint(c.buf[c.at:])
	c.at += max(size, 0)
	return v
}

// rest is what has not been read of an entry.
func (c *cursor) rest() []byte { return c.buf[c.at:] }

// bytes reads that many bytes of a record, which are valid until the next one is read.
func (c *cursor) bytes(n int) []byte {
	from := min(c.at, len(c.buf))
	c.at = min(from+n, len(c.buf))
	return c.buf[from:c.at]
}
