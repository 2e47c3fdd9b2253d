// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"encoding/binary"
	"fmt"
)

// recordFile writes the chunks of a file without time stamps: definitions, markers, thumbnails. The file appears
// under its name when it is closed.
type recordFile struct {
	file   *atomicFile
	chunk  int
	used   int    // bytes of the current chunk, header included
	buf    []byte // those of them that are not yet in the file
	record []byte // fields of the record being made
	count  uint64
	big    bool // byte order of the current chunk
	err    error
	closed bool

	// watch, if there is one, sees the fields of every record before it is written. It may refuse the record, and
	// replace the fields by others of which eight bytes, from reserve on, are filled in later; else reserve is -1.
	watch    func(id uint8, fields []byte) (replaced []byte, reserve int, err error)
	written  int64   // bytes in the file
	reserved []int64 // offsets of the bytes to be filled in
}

// Buffered bytes at which a recordFile writes.
const writeBehind = 256 << 10

func createRecordFile(path string, chunkSize, def uint64) (*recordFile, error) {
	return newRecordFile(createAtomic, path, chunkSize, def)
}

func newRecordFile(create func(path string) (*atomicFile, error), path string, chunkSize, def uint64) (
	*recordFile, error) {
	chunk, err := checkChunkSize(chunkSize, def)
	if err != nil {
		return nil, err
	}
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	w := &recordFile{file: f, chunk: chunk}
	w.header()
	return w, nil
}

// header begins a chunk; the event numbers are 1 and 0 in files that have no events.
func (w *recordFile) header() {
	w.buf = appendHeader(w.buf, 1, 0)
	putHeader(w.buf[len(w.buf)-headerSize:], w.big, 1, 0)
	w.used = headerSize
}

// order sets the byte order of the records that follow, which is a matter of whole chunks.
func (w *recordFile) order(big bool) {
	if w.big == big || w.err != nil {
		return
	}
	w.big = big
	if w.used == headerSize { // nothing in it yet, and it is not written before there is
		w.buf = w.buf[:len(w.buf)-headerSize]
	} else {
		w.buf = append(w.buf, make([]byte, w.chunk-w.used)...)
	}
	w.header()
}

// start returns the buffer for the fields of the next record.
func (w *recordFile) start() []byte { return w.record[:0] }

// emit writes a record; its size estimate is that of its fields plus slack.
func (w *recordFile) emit(id uint8, fields []byte, slack int) error {
	w.record = fields[:0]
	if w.err != nil {
		return w.err
	}
	if n := len(fields) + slack; headerSize+1+lengthSize(n)+n >= w.chunk-endSize {
		return fmt.Errorf("otf2: record of %d bytes in chunks of %d: %w", len(fields), w.chunk, ErrTooLarge)
	}
	reserve := -1
	if w.watch != nil {
		var err error
		if fields, reserve, err = w.watch(id, fields); err != nil {
			return err
		}
	}
	estimate := len(fields) + slack
	length := lengthSize(estimate)
	size := 1 + length + len(fields)
	// libotf2 opens a new chunk when the estimate reaches the free bytes; room for the end mark must be left too.
	if free := w.chunk - w.used; 1+length+estimate >= free || size > free-endSize {
		w.buf = append(w.buf, make([]byte, free)...)
		w.header()
	}
	w.used += size
	w.buf = append(w.buf, id)
	switch {
	case length == 1:
		w.buf = append(w.buf, byte(len(fields)))
	case w.big:
		w.buf = binary.BigEndian.AppendUint64(append(w.buf, 0xff), uint64(len(fields)))
	default:
		w.buf = binary.LittleEndian.AppendUint64(append(w.buf, 0xff), uint64(len(fields)))
	}
	if reserve >= 0 {
		w.reserved = append(w.reserved, w.written+int64(len(w.buf)+reserve))
	}
	w.buf = append(w.buf, fields...)
	w.count++
	if len(w.buf) >= writeBehind {
		w.write()
	}
	return w.err
}

func (w *recordFile) write() {
	if len(w.buf) == 0 {
		return
	}
	if _, err := w.file.Write(w.buf); err != nil && w.err == nil {
		w.err = fmt.Errorf("otf2: writing %s: %w", w.file.path, err)
	}
	w.written += int64(len(w.buf))
	w.buf = w.buf[:0]
}

// writeReserved writes the i-th reserved number.
func (w *recordFile) writeReserved(i int, v uint64) {
	w.write()
	if w.err != nil {
		return
	}
	if _, err := w.file.WriteAt(binary.LittleEndian.AppendUint64(nil, v), w.reserved[i]); err != nil {
		w.err = fmt.Errorf("otf2: writing %s: %w", w.file.path, err)
	}
}

// finish ends the file and gives it its name. After an error no file appears.
func (w *recordFile) finish() error {
	if w.closed {
		return fmt.Errorf("otf2: %s: %w", w.file.path, ErrClosed)
	}
	w.closed = true
	w.buf = append(w.buf, recordEndOfFile, recordEndOfBuffer)
	w.write()
	if w.err != nil {
		w.file.abandon(nil)
		return w.err
	}
	err := w.file.commit()
	w.err = fmt.Errorf("otf2: %s: %w", w.file.path, ErrClosed)
	return err
}

// abort gives the file up: nothing appears under its name, an older file of that name stays.
func (w *recordFile) abort() {
	if !w.closed {
		w.closed = true
		w.file.abandon(nil)
		w.err = fmt.Errorf("otf2: %s: %w", w.file.path, ErrClosed)
	}
}
