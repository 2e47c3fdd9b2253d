// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// fieldDecoder decodes the fields of one record. Its first error sticks and everything after it is zero, so that
// a record is checked once at its end. It never reads past buf.
type fieldDecoder struct {
	buf []byte
	pos int
	big bool // byte order
	err error
}

// hasField reports whether another field follows.
func (d *fieldDecoder) hasField() bool { return d.err == nil && d.pos < len(d.buf) }

func (d *fieldDecoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
}

// nextBytes returns the next n bytes, or nil after an error.
func (d *fieldDecoder) nextBytes(n int) []byte {
	if d.err != nil {
		return nil
	}
	if len(d.buf)-d.pos < n {
		d.fail("%d bytes left where %d are needed", len(d.buf)-d.pos, n)
		return nil
	}
	b := d.buf[d.pos : d.pos+n]
	d.pos += n
	return b
}

func (d *fieldDecoder) u8() uint8 {
	if b := d.nextBytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *fieldDecoder) u16() uint16 { return uint16(d.full(2)) }
func (d *fieldDecoder) f32() uint32 { return uint32(d.full(4)) }
func (d *fieldDecoder) f64() uint64 { return d.full(8) }

// full reads an uncompressed number of n bytes.
func (d *fieldDecoder) full(n int) uint64 {
	b := d.nextBytes(n)
	var v uint64
	if d.big {
		for i := range b {
			v = v<<8 | uint64(b[i])
		}
		return v
	}
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

func (d *fieldDecoder) c32() uint32 { return uint32(d.compressed(4)) }
func (d *fieldDecoder) c64() uint64 { return d.compressed(8) }

// s64 reads a compressed signed number; ff is -1, as libotf2 has it.
func (d *fieldDecoder) s64() int64 { return int64(d.compressed(8)) }

func (d *fieldDecoder) compressed(size int) uint64 {
	n := int(d.u8())
	switch {
	case n == 0xff:
		return 1<<(8*size) - 1
	case n > size:
		d.fail("compressed number of %d bytes where at most %d are allowed", n, size)
		return 0
	}
	return d.full(n)
}

// str reads a text and its NUL.
func (d *fieldDecoder) str() string {
	if d.err != nil {
		return ""
	}
	n := bytes.IndexByte(d.buf[d.pos:], 0)
	if n < 0 {
		d.fail("text without end")
		return ""
	}
	s := string(d.buf[d.pos : d.pos+n])
	d.pos += n + 1
	return s
}

// value reads an attribute value of a type.
func (d *fieldDecoder) value(typ Type) Value {
	switch typ {
	case TypeUint8:
		return Value(d.u8())
	case TypeInt8:
		return IntValue(int64(int8(d.u8())))
	case TypeUint16:
		return Value(d.u16())
	case TypeInt16:
		return IntValue(int64(int16(d.u16())))
	case TypeUint32:
		return Value(d.c32())
	case TypeInt32:
		return IntValue(int64(int32(d.c32())))
	case TypeFloat:
		return Value(d.f32())
	case TypeDouble:
		return Value(d.f64())
	case TypeUint64, TypeInt64, TypeLocation:
		return Value(d.c64())
	}
	if typ.IsReference() {
		return Value(d.c32())
	}
	return Value(d.c64())
}

// number is implemented by the types in which counts are stored.
type number interface{ ~uint8 | ~uint32 | ~uint64 }

// count checks a number of elements of at least size bytes each against the bytes that are left, before anything
// is allocated by it.
func count[T number](d *fieldDecoder, n T, size int) int {
	if d.err != nil {
		return 0
	}
	if left := len(d.buf) - d.pos; uint64(n) > uint64(left/size) {
		d.fail("%d elements in %d bytes", n, left)
		return 0
	}
	return int(n)
}

// byteOrder returns how a chunk that begins with b is to be read.
func byteOrder(b []byte) (big bool, err error) {
	if len(b) < headerSize {
		return false, ErrTruncated
	}
	if b[0] != recordHeader {
		return false, fmt.Errorf("%w: no chunk header", ErrCorrupt)
	}
	switch b[1] {
	case littleEndian:
		return false, nil
	case bigEndian:
		return true, nil
	}
	return false, fmt.Errorf("%w: byte order %#02x", ErrCorrupt, b[1])
}

// eventNumbers returns the numbers of the first and last event from a chunk header.
func eventNumbers(b []byte, big bool) (first, last uint64) {
	if big {
		return binary.BigEndian.Uint64(b[2:]), binary.BigEndian.Uint64(b[10:])
	}
	return binary.LittleEndian.Uint64(b[2:]), binary.LittleEndian.Uint64(b[10:])
}
