// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"encoding/binary"
	"errors"
	"io"
)

// readRecords reads a file without time stamps and hands each record to visit, whose decoder covers the record's
// fields; fields that visit leaves unread are skipped. It returns nil at the end mark, *FormatError where reading
// stopped early.
func readRecords(path string, loc LocationRef, chunkSize uint64, table *recordTable,
	visit func(id uint8, d *fieldDecoder) error) error {
	src := &fileSource{path: path, budget: newOpenFiles(1), size: -1}
	defer src.close()
	w := newWindow(src, chunkSize, 64<<10)
	var record string
	err := scanRecords(w, func(id uint8, d *fieldDecoder) error {
		record = table.name(id)
		return visit(id, d)
	}, &record)
	if err == nil {
		return nil
	}
	return &FormatError{File: path, Location: loc, Offset: w.offset(), Record: record, Err: err}
}

func scanRecords(w *window, visit func(id uint8, d *fieldDecoder) error, record *string) error {
	big, err := w.enter(0)
	if errors.Is(err, io.EOF) {
		return ErrTruncated
	}
	for err == nil {
		*record = ""
		have, ferr := w.fillBuffer(10)
		if ferr != nil {
			return ferr
		}
		if have == 0 {
			return ErrTruncated
		}
		b := w.buf[w.r:w.n]
		switch b[0] {
		case recordEndOfFile:
			return nil
		case recordEndOfChunk:
			if big, err = w.enter(w.chunkEnd); errors.Is(err, io.EOF) {
				return ErrTruncated
			}
			continue
		case recordEndOfBuffer, recordHeader:
			return corruptRecord(b[0])
		}
		head, size, ok := recordLength(b, big)
		if !ok {
			return ErrTruncated
		}
		if size > uint64(w.chunkEnd-w.offset()) {
			return recordTooLong(size)
		}
		total := head + int(size)
		if have, err = w.fillBuffer(total); err != nil {
			return err
		}
		if have < total {
			return ErrTruncated
		}
		b = w.buf[w.r : w.r+total]
		d := fieldDecoder{buf: b[head:], big: big}
		if err := visit(b[0], &d); err != nil {
			return err
		}
		if d.err != nil {
			return d.err
		}
		w.r += total
	}
	return err
}

// recordLength reads the length field of the record at the start of b: the size of id and length field, and that
// of the fields. It fails if b is too short.
func recordLength(b []byte, big bool) (head int, size uint64, ok bool) {
	switch {
	case len(b) < 2:
		return 0, 0, false
	case b[1] != 0xff:
		return 2, uint64(b[1]), true
	case len(b) < 10:
		return 0, 0, false
	case big:
		return 10, binary.BigEndian.Uint64(b[2:]), true
	}
	return 10, binary.LittleEndian.Uint64(b[2:]), true
}
