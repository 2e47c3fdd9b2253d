// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"io"
	"os"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// fileSource reads a file that is open only while that is affordable: with more files than budget it is opened
// for each window and closed again.
type fileSource struct {
	path   string
	budget *openFiles
	file   openFile // nil while it is closed
	size   int64    // -1 before the first read
}

// openFile is what reading needs of an *os.File.
type openFile interface {
	io.ReaderAt
	io.Closer
}

// openFiles is the number of files that may stay open.
type openFiles struct{ left atomic.Int64 }

func newOpenFiles(n int) *openFiles {
	o := new(openFiles)
	o.left.Store(int64(n))
	return o
}

// prepare makes the size of the file known.
func (s *fileSource) prepare() error {
	if s.size >= 0 {
		return nil
	}
	_, err := s.readAt(nil, 0)
	return err
}

// readAt fills p from off on as far as the file goes.
func (s *fileSource) readAt(p []byte, off int64) (n int, err error) {
	if err := s.keep(); err != nil {
		return 0, err
	}
	if s.file == nil {
		n, size, err := regular.ReadAt(s.path, p, off)
		if err == nil {
			s.size = size
		}
		return n, irregular(err)
	}
	n, err = s.file.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// keep opens the file if it may stay open.
func (s *fileSource) keep() error {
	if s.file != nil {
		return nil
	}
	if s.budget.left.Add(-1) < 0 {
		s.budget.left.Add(1)
		return nil
	}
	f, err := s.open()
	if err != nil {
		s.budget.left.Add(1)
		return err
	}
	s.file = f
	return nil
}

func (s *fileSource) open() (*os.File, error) {
	f, err := openRegular(s.path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	s.size = info.Size()
	return f, nil
}

func (s *fileSource) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
		s.budget.left.Add(1)
	}
}

// window shows a file chunk by chunk through a bounded buffer. It grows only for a record that does not fit, and
// never beyond a chunk or the file.
//
//	file   |--------- chunk ---------|--------- chunk ---------|
//	buf               [ r ..... n ]
//	                  ^ off
type window struct {
	src      *fileSource
	want     int // size of buf where the file is not smaller
	buf      []byte
	r, n     int    // buf[r:n] is unread
	off      int64  // file offset of buf[0]
	chunk    int64  // chunk size
	chunkEnd int64  // file offset of the end of the current chunk
	ended    bool   // nothing of this chunk or file lies behind buf[:n]
	first    uint64 // number of the chunk's first event, as its header says
}

// smallest window that makes sense: a chunk header, a stamp and a usual record.
const minWindow = 512

func newWindow(src *fileSource, chunk uint64, size int) *window {
	return &window{src: src, chunk: int64(chunk), want: max(size, minWindow)}
}

// allocate makes the buffer, small for a small file.
func (w *window) allocate() error {
	if err := w.src.prepare(); err != nil {
		return err
	}
	w.buf = make([]byte, int(min(int64(w.want), max(minWindow, w.src.size+decodeSlack))))
	return nil
}

// offset is the file offset of the next unread byte.
func (w *window) offset() int64 { return w.off + int64(w.r) }

// fillBuffer tries to have at least need unread bytes and returns how many there are; fewer mean that the chunk or the
// file ends there.
func (w *window) fillBuffer(need int) (int, error) {
	if w.buf == nil {
		if err := w.allocate(); err != nil {
			return 0, err
		}
	}
	for w.n-w.r < need && !w.ended {
		if need > len(w.buf) {
			if w.src.size >= 0 && w.offset()+int64(need) > min(w.chunkEnd, w.src.size) {
				return w.n - w.r, nil // cannot be satisfied; do not allocate for it
			}
			grown := make([]byte, need+minWindow)
			copy(grown, w.buf[w.r:w.n])
			w.buf, w.off = grown, w.offset()
		} else {
			copy(w.buf, w.buf[w.r:w.n])
			w.off = w.offset()
		}
		w.n -= w.r
		w.r = 0
		at := w.off + int64(w.n)
		end := min(int64(len(w.buf)), w.chunkEnd-w.off)
		if int64(w.n) >= end {
			w.ended = true
			break
		}
		n, err := w.src.readAt(w.buf[w.n:end], at)
		if err != nil {
			return w.n - w.r, err
		}
		w.n += n
		if int64(w.n) < end || w.off+int64(w.n) == w.chunkEnd {
			w.ended = true
		}
	}
	return w.n - w.r, nil
}

// enter moves to the chunk that begins at off and checks its header. With io.EOF the file has no such chunk.
func (w *window) enter(off int64) (big bool, err error) {
	w.skipTo(off)
	w.chunkEnd = off + w.chunk
	w.ended = false
	have, err := w.fillBuffer(headerSize)
	if err != nil {
		return false, err
	}
	if have == 0 {
		return false, io.EOF
	}
	big, err = byteOrder(w.buf[w.r:w.n])
	if err == nil {
		w.first, _ = eventNumbers(w.buf[w.r:w.n], big)
		w.r += headerSize
	}
	return big, err
}

// skipTo makes off the next unread byte.
func (w *window) skipTo(off int64) {
	if d := off - w.off; d >= int64(w.r) && d <= int64(w.n) {
		w.r = int(d)
		return
	}
	w.off, w.r, w.n = off, 0, 0
}
