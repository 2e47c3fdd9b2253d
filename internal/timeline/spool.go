// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
)

// temp is the folder of temporary files, and the first error with one of them. After an error nothing more is written
// or read; callers check failed at the end.
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

// failed returns the first error.
func (t *temp) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// spool is a temporary file without a name, created by the first write. Several goroutines may write.
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

// reserve allocates size bytes and returns their offset; the file is nil after an error.
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

// read reads a piece into a buffer and returns the buffer.
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

// close frees the file.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // its content is not needed any more
		s.file = nil
	}
}

// stream is a sequence of records of varints and bytes, written by one goroutine. All but the last piece is in a spool.
type stream struct {
	to     *spool
	piece  int // bytes after which a piece is written
	buf    []byte
	pieces []extent
}

// writeNumber adds a number to the record.
func (s *stream) writeNumber(v uint64) { s.buf = binary.AppendUvarint(s.buf, v) }

// endRecord ends a record.
func (s *stream) endRecord() {
	if len(s.buf) >= s.piece {
		s.flush()
	}
}

// flush writes the piece in memory.
func (s *stream) flush() {
	if len(s.buf) > 0 {
		s.pieces = append(s.pieces, s.to.write(s.buf))
		s.buf = s.buf[:0]
	}
}

func (s *stream) open() *cursor { return &cursor{of: s} }

// cursor reads the records of a complete stream.
type cursor struct {
	of   *stream
	next int // index of the next piece; the last one is in memory
	buf  []byte
	at   int
	own  []byte
}

// hasNext reports whether there is another record.
func (c *cursor) hasNext() bool {
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

// readNumber reads a number of a record; it is 0 after the end, which happens only if a file cannot be read.
func (c *cursor) readNumber() uint64 {
	v, size := binary.Uvarint(c.buf[c.at:])
	c.at += max(size, 0)
	return v
}

// unreadBytes returns the unread part of an entry.
func (c *cursor) unreadBytes() []byte { return c.buf[c.at:] }

// bytes reads n bytes of a record, which are valid until the next record is read.
func (c *cursor) bytes(n int) []byte {
	from := min(c.at, len(c.buf))
	c.at = min(from+n, len(c.buf))
	return c.buf[from:c.at]
}
