// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"errors"
	"io"
)

// frames walks the records of a chunked file for repair. Unlike the readers it keeps nothing but where records
// begin and end, checks the fields of every kind by the table, and can go on behind damage.
type frames struct {
	table   *recordTable
	stamped bool // time stamps and attribute lists stand between the records: events, snapshots
	chunk   int64

	// record, if set, is called with each whole record: its id, length field and fields.
	record func(big bool, raw []byte, head int)
}

// scannedChunk is a chunk that begins with a good header.
type scannedChunk struct {
	start       int64
	big         bool
	first, last uint64 // event numbers in the header
	records     uint64 // whole records
}

// scanned is the outcome of a walk.
type scanned struct {
	chunks  []scannedChunk
	records uint64
	end     int64 // file offset behind the last whole record, where the end mark belongs
	size    int64 // of the file
	flaw    error // nil if there is an end mark behind the last record
	flawAt  int64
}

// walk reads a file from start to end. The error is one of reading the file; damage is scanned.flaw. With resync
// it goes on at the next chunk behind damage, and flaw is the first one.
func (f *frames) walk(path string, resync bool) (*scanned, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	s := &scanned{size: info.Size()}
	buf := make([]byte, min(f.chunk, s.size))
	for start := int64(0); ; start += f.chunk {
		n, err := file.ReadAt(buf[:min(f.chunk, max(0, s.size-start))], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		done, pos, flaw := f.chunkRecords(s, start, buf[:n])
		if flaw != nil && s.flaw == nil {
			s.flaw, s.flawAt = flaw, start+int64(pos)
		}
		if done || flaw != nil && (!resync || start+f.chunk >= s.size) {
			return s, nil
		}
	}
}

// chunkRecords walks the chunk at a file offset, of which b are the bytes that the file has. It reports whether
// the file ends there as it should, and the place and nature of damage.
func (f *frames) chunkRecords(s *scanned, start int64, b []byte) (done bool, pos int, flaw error) {
	big, err := byteOrder(b)
	if err != nil {
		return false, 0, err
	}
	c := scannedChunk{start: start, big: big}
	c.first, c.last = eventNumbers(b, big)
	s.chunks = append(s.chunks, c)
	current := &s.chunks[len(s.chunks)-1]
	pos = headerSize
	for pos < len(b) {
		switch id := b[pos]; {
		case id == recordEndOfFile:
			return true, pos, nil
		case id == recordEndOfChunk:
			return false, pos, nil
		case id == recordEndOfBuffer, id == recordHeader,
			f.stamped && id < firstEventRecord && id != recordTimestamp && id != recordAttributes:
			return false, pos, corruptRecord(id)
		}
		head, size, err := f.measure(b[pos:], big, f.chunk-int64(pos))
		if err != nil {
			return false, pos, err
		}
		raw := b[pos : pos+size]
		if f.stamped && raw[0] < firstEventRecord {
			if raw[0] == recordAttributes {
				d := fieldDecoder{buf: raw, pos: head, big: big}
				if err := checkAttributes(&d); err != nil {
					return false, pos, err
				}
			}
			pos += size
			continue // belongs to the record that follows
		}
		d := fieldDecoder{buf: raw, pos: head, big: big}
		if err := readFields(&f.table[raw[0]], &d, func(*Field, uint64) {}); err != nil {
			return false, pos, err
		}
		pos += size
		s.records++
		current.records++
		s.end = start + int64(pos)
		if f.record != nil {
			f.record(big, raw, head)
		}
	}
	if int64(pos) < f.chunk {
		return false, pos, ErrTruncated
	}
	return false, pos, nil // full to the last byte; readers look for the next chunk
}

// measure finds the size of the record at the start of b, and that of its id and length field. left is what the
// chunk has room for.
func (f *frames) measure(b []byte, big bool, left int64) (head, size int, err error) {
	id := b[0]
	switch {
	case f.stamped && id == recordTimestamp:
		head, size = 1, stampSize
	case f.stamped && f.table[id].NoLength:
		n, _, err := compressedAt(b[1:], f.table[id].Fields[0].Encoding.compressedMax(), big)
		if err != nil {
			return 0, 0, err
		}
		head, size = 1, 1+n
	default:
		h, fields, ok := recordLength(b, big)
		if !ok {
			return 0, 0, ErrTruncated
		}
		if fields > uint64(left) {
			return 0, 0, recordTooLong(fields)
		}
		head, size = h, h+int(fields)
	}
	switch {
	case int64(size) > left:
		return 0, 0, recordTooLong(uint64(size))
	case size > len(b):
		return 0, 0, ErrTruncated
	}
	return head, size, nil
}

// compressedMax is the most bytes of a compressed number behind its length byte.
func (e Encoding) compressedMax() uint8 {
	if e == EncodingC32 {
		return 4
	}
	return 8
}

// checkAttributes reads an attribute list and refuses what readers refuse.
func checkAttributes(d *fieldDecoder) error {
	for range count(d, d.c32(), 3) {
		d.c32()
		d.value(Type(d.u8()))
	}
	return d.err
}

// readFields reads the fields of a record as the table describes them and hands the numbers to visit, in on-disk order.
// Records of unknown kinds are fine.
func readFields(spec *recordSpec, d *fieldDecoder, visit func(f *Field, v uint64)) error {
	var typ Type
	var times uint64 // last number outside a repetition
	one := func(f *Field) {
		var v uint64
		switch f.Encoding {
		case EncodingU8:
			v = uint64(d.u8())
		case EncodingC32:
			v = uint64(d.c32())
		case EncodingF64, EncodingDouble:
			v = d.f64()
		case EncodingString:
			d.str()
			return
		case EncodingValue:
			v = uint64(d.value(typ))
		case EncodingIDMap:
			if times < mappingTypes { // tables of unknown types are skipped by readers
				checkIDMap(d)
			}
			return
		default:
			v = d.c64()
		}
		if f.Type == "Type" {
			typ = Type(v)
		}
		if !f.Repeated {
			times = v
		}
		visit(f, v)
	}
	for i := 0; i < len(spec.Fields) && d.err == nil; {
		if !spec.Fields[i].Repeated {
			if spec.Fields[i].Since != 0 && !d.hasField() {
				break // appended by a later version than the file's
			}
			one(&spec.Fields[i])
			i++
			continue
		}
		n := i
		for n < len(spec.Fields) && spec.Fields[n].Repeated {
			n++
		}
		for range count(d, times, n-i) {
			for j := i; j < n; j++ {
				one(&spec.Fields[j])
			}
		}
		i = n
	}
	return d.err
}

// checkIDMap reads the entries of a mapping table, which must not be empty.
func checkIDMap(d *fieldDecoder) {
	n, mode := d.c64(), d.u8()
	if n == 0 {
		d.fail("mapping table without entries")
	}
	each := 1
	switch mode {
	case idMapDense:
	case idMapSparse:
		each = 2
	default:
		d.fail("id map mode %d", mode)
	}
	for range count(d, n, each) * each {
		d.c64()
	}
}

// deduceChunkSize finds the size of a file's chunks from the file itself: the first chunk ends with zero bytes,
// and the second begins with a header. It returns 0 for files of one chunk, and where damage hides the border.
func deduceChunkSize(path string, table *recordTable, stamped bool) (uint64, error) {
	f, err := openRegular(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxChunkSize+headerSize))
	if err != nil {
		return 0, err
	}
	walk := frames{table: table, stamped: stamped, chunk: int64(len(b)) + 1}
	done, pos, flaw := walk.chunkRecords(&scanned{}, 0, b)
	if done || flaw != nil {
		return 0, nil
	}
	rest := bytes.TrimLeft(b[pos:], "\x00")
	size := uint64(len(b) - len(rest))
	if _, err := byteOrder(rest); err != nil || size < MinChunkSize || size > MaxChunkSize {
		return 0, nil
	}
	return size, nil
}
