// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// Ids of the records that every file kind has.
const (
	recordEndOfChunk  = 0 // rest of the chunk is unused
	recordEndOfBuffer = 1
	recordEndOfFile   = 2
	recordHeader      = 3 // chunk header
	recordTimestamp   = 5 // only in event and snapshot files
	recordAttributes  = 6 // only in event and snapshot files
)

// Byte order marks, the second byte of every chunk.
const (
	littleEndian = 0x42
	bigEndian    = 0x23
)

const (
	headerSize   = 18 // 03, byte order, number of the first and of the last event
	endSize      = 2  // 02 01
	stampSize    = 9  // 05 and eight bytes
	encoderSlack = 64 // bytes behind the buffer's used part that encoders may scribble over
)

// putC32 writes v compressed at b[p] and returns the position behind it. It may touch eight bytes behind that.
func putC32(b []byte, p int, v uint32) int { return putCompressed(b, p, uint64(v), 1<<32-1) }

// putC64 is putC32 for 64 bits.
func putC64(b []byte, p int, v uint64) int { return putCompressed(b, p, v, 1<<64-1) }

// putCompressed writes 0 as 00, the undefined value as ff, others as their length and that many low bytes.
func putCompressed(b []byte, p int, v, undefined uint64) int {
	if v == undefined {
		b[p] = 0xff
		return p + 1
	}
	n := (bits.Len64(v) + 7) >> 3
	b[p] = byte(n)
	binary.LittleEndian.PutUint64(b[p+1:], v) // bytes past the n-th are overwritten by what follows
	return p + 1 + n
}

// putS64 writes a signed number; negative ones take all eight bytes, so that -1 differs from undefined.
func putS64(b []byte, p int, v int64) int {
	if v >= 0 {
		return putCompressed(b, p, uint64(v), 1<<64-1)
	}
	b[p] = 8
	binary.LittleEndian.PutUint64(b[p+1:], uint64(v))
	return p + 9
}

// putF64 writes eight bytes.
func putF64(b []byte, p int, v uint64) int {
	binary.LittleEndian.PutUint64(b[p:], v)
	return p + 8
}

// lengthSize returns the size of a record's length field. libotf2's estimate of the record's size decides, not the
// actual size.
func lengthSize(estimate int) int {
	if estimate < 255 {
		return 1
	}
	return 9
}

// putLength fills the length field before b[start:p], whose form follows from the estimate.
func putLength(b []byte, start, p, estimate int) {
	if estimate < 255 {
		b[start-1] = byte(p - start)
		return
	}
	b[start-9] = 0xff
	binary.LittleEndian.PutUint64(b[start-8:], uint64(p-start))
}

func appendC32(b []byte, v uint32) []byte { return appendCompressed(b, uint64(v), 1<<32-1) }
func appendC64(b []byte, v uint64) []byte { return appendCompressed(b, v, 1<<64-1) }

func appendCompressed(b []byte, v, undefined uint64) []byte {
	if v == undefined {
		return append(b, 0xff)
	}
	n := (bits.Len64(v) + 7) >> 3
	b = append(b, byte(n))
	for range n {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}

func appendS64(b []byte, v int64) []byte {
	if v >= 0 {
		return appendCompressed(b, uint64(v), 1<<64-1)
	}
	return binary.LittleEndian.AppendUint64(append(b, 8), uint64(v))
}

// Value is an attribute or property value: the 64 bits of an unsigned number or reference, of a signed number
// (sign extended), or of a floating-point number (FLOAT in the low 32 bits). Its [Type] stands beside it.
type Value uint64

// IntValue returns the Value of a signed number.
func IntValue(v int64) Value { return Value(v) }

// FloatValue returns the Value of a FLOAT.
func FloatValue(v float32) Value { return Value(math.Float32bits(v)) }

// DoubleValue returns the Value of a DOUBLE.
func DoubleValue(v float64) Value { return Value(math.Float64bits(v)) }

// Float returns the number of a FLOAT.
func (v Value) Float() float32 { return math.Float32frombits(uint32(v)) }

// Double returns the number of a DOUBLE.
func (v Value) Double() float64 { return math.Float64frombits(uint64(v)) }

// appendValue writes a value in the form that its type has on disk. A type without a form of its own is a
// compressed 64-bit number, as libotf2 does.
func appendValue(b []byte, typ Type, v Value) []byte {
	switch typ {
	case TypeUint8, TypeInt8:
		return append(b, byte(v))
	case TypeUint16, TypeInt16:
		return binary.LittleEndian.AppendUint16(b, uint16(v))
	case TypeUint32:
		return appendC32(b, uint32(v))
	case TypeInt32:
		if int32(v) < 0 {
			return binary.LittleEndian.AppendUint32(append(b, 4), uint32(v))
		}
		return appendC32(b, uint32(v))
	case TypeInt64:
		return appendS64(b, int64(v))
	case TypeFloat:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	case TypeDouble:
		return binary.LittleEndian.AppendUint64(b, uint64(v))
	case TypeLocation, TypeUint64:
		return appendC64(b, uint64(v))
	}
	if typ.IsReference() {
		return appendC32(b, uint32(v))
	}
	return appendC64(b, uint64(v))
}

// appendHeader writes a chunk header.
func appendHeader(b []byte, first, last uint64) []byte {
	b = append(b, recordHeader, littleEndian)
	b = binary.LittleEndian.AppendUint64(b, first)
	return binary.LittleEndian.AppendUint64(b, last)
}

// checkText refuses what the format cannot hold: texts end at their first NUL.
func checkText(s string) error {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return fmt.Errorf("otf2: text %q has a NUL at byte %d: %w", s, i, ErrInvalid)
	}
	return nil
}

// Limits and defaults of chunk sizes in bytes.
const (
	MinChunkSize          = 256 << 10
	MaxChunkSize          = 16 << 20
	DefaultEventChunkSize = 256 << 10 // ours; libotf2's default is 1 MiB
	DefaultDefChunkSize   = 4 << 20
	ThumbnailChunkSize    = 1 << 20 // fixed by the format
)

// checkChunkSize returns size, or def for 0, or an error if libotf2 would refuse it.
func checkChunkSize(size, def uint64) (int, error) {
	if size == 0 {
		size = def
	}
	if size < MinChunkSize || size > MaxChunkSize {
		return 0, &ChunkSizeError{size}
	}
	return int(size), nil
}
