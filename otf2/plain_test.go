// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"encoding/binary"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// plain is a second, simple encoder of the format, in both byte orders, with which the writers are compared and
// from which the readers get files that the writers do not make.
type plain struct {
	order binary.AppendByteOrder
	mark  byte
}

var (
	plainLittle = plain{binary.LittleEndian, littleEndian}
	plainBig    = plain{binary.BigEndian, bigEndian}
)

func (p plain) header(first, last uint64) []byte {
	b := []byte{recordHeader, p.mark}
	return p.order.AppendUint64(p.order.AppendUint64(b, first), last)
}

func (p plain) compressed(b []byte, v, undefined uint64) []byte {
	switch {
	case v == 0:
		return append(b, 0)
	case v == undefined:
		return append(b, 0xff)
	}
	n := 1
	for v>>(8*n) != 0 && n < 8 {
		n++
	}
	b = append(b, byte(n))
	if p.mark == littleEndian {
		for i := range n {
			b = append(b, byte(v>>(8*i)))
		}
		return b
	}
	for i := n - 1; i >= 0; i-- {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

func (p plain) c32(b []byte, v uint32) []byte { return p.compressed(b, uint64(v), 1<<32-1) }
func (p plain) c64(b []byte, v uint64) []byte { return p.compressed(b, v, 1<<64-1) }

func (p plain) s64(b []byte, v int64) []byte {
	if v < 0 {
		return p.order.AppendUint64(append(b, 8), uint64(v))
	}
	return p.c64(b, uint64(v))
}

func (p plain) field(b []byte, e Encoding, v uint64) []byte {
	switch e {
	case EncodingU8:
		return append(b, byte(v))
	case EncodingC32:
		return p.c32(b, uint32(v))
	case EncodingC64:
		return p.c64(b, v)
	case EncodingS64:
		return p.s64(b, int64(v))
	}
	return p.order.AppendUint64(b, v)
}

// framed puts id and length field before a record's fields; long is libotf2's choice for large estimates.
func (p plain) framed(id byte, fields []byte, long bool) []byte {
	b := []byte{id}
	if long {
		b = p.order.AppendUint64(append(b, 0xff), uint64(len(fields)))
	} else {
		b = append(b, byte(len(fields)))
	}
	return append(b, fields...)
}

// fieldsOf pairs the arguments of an event with its fields.
func fieldsOf(kind EventKind, args []uint64) []*Field {
	var list []*Field
	fields := kind.Fields()
	var repeated []*Field
	for i := range fields {
		if fields[i].Repeated {
			repeated = append(repeated, &fields[i])
		} else {
			list = append(list, &fields[i])
		}
	}
	for len(list) < len(args) && len(repeated) > 0 {
		list = append(list, repeated...)
	}
	return list
}

// event encodes an event without stamp and attributes.
func (p plain) event(kind EventKind, args []uint64) []byte {
	var b []byte
	estimate := 0
	for i, f := range fieldsOf(kind, args) {
		b = p.field(b, f.Encoding, args[i])
		estimate += map[Encoding]int{EncodingU8: 1, EncodingC32: 5, EncodingC64: 9, EncodingS64: 9,
			EncodingF64: 8}[f.Encoding]
	}
	switch kind {
	case 12, 13, 16, 17, 20, 21, 24, 28, 29, 30:
		return append([]byte{byte(kind)}, b...)
	}
	return p.framed(byte(kind), b, estimate >= 255)
}

func (p plain) stamp(t Timestamp) []byte {
	return p.order.AppendUint64([]byte{recordTimestamp}, uint64(t))
}

// file frames events into a file of one chunk.
func (p plain) file(events int, body ...[]byte) []byte {
	b := p.header(1, uint64(events))
	if events == 0 {
		b = p.header(1, 0)
	}
	for _, part := range body {
		b = append(b, part...)
	}
	return append(b, recordEndOfFile, recordEndOfBuffer)
}

// The worked examples of the format's description, byte by byte.
func TestWorkedBytes(t *testing.T) {
	w := NewMemoryEventWriter(nil)
	testkit.Must(t, w.Enter(20, nil, 0))
	testkit.Must(t, w.Leave(30, nil, 0))
	testkit.Must(t, w.Close())
	equalBytes(t, "two events", w.Bytes(), []byte{
		3, 0x42, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
		5, 0x14, 0, 0, 0, 0, 0, 0, 0, 0x0c, 0,
		5, 0x1e, 0, 0, 0, 0, 0, 0, 0, 0x0d, 0,
		2, 1,
	})
	w = NewMemoryEventWriter(nil)
	testkit.Must(t, w.MpiCollectiveBegin(1, nil))
	testkit.Must(t, w.MpiCollectiveEnd(1, nil, CollectiveOpAllreduce, 3, CollectiveRootNone, 4194304, 4194304))
	var a AttributeList
	a.Uint64(3, 5)
	testkit.Must(t, w.Enter(1, &a, 1))
	testkit.Must(t, w.Close())
	equalBytes(t, "collective and attribute", w.Bytes()[headerSize+stampSize:], []byte{
		0x16, 0, 0x17, 0x0c, 0x0b, 1, 3, 0xff, 3, 0, 0, 0x40, 3, 0, 0, 0x40,
		6, 7, 1, 1, 1, 3, 4, 1, 5, 0x0c, 1, 1,
		2, 1,
	})
	equalBytes(t, "empty file", NewMemoryEventWriter(nil).Bytes(),
		[]byte{3, 0x42, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1})
	dense := NewDenseMapping(MappingRegion, []uint64{11, 10})
	equalBytes(t, "dense map", dense.append([]byte{5, 8, 3}), []byte{5, 8, 3, 1, 2, 0, 1, 0x0b, 1, 0x0a})
	sparse := NewSparseMapping(MappingRegion, map[uint64]uint64{1: 10})
	equalBytes(t, "sparse map", sparse.append([]byte{5, 8, 3}), []byte{5, 8, 3, 1, 1, 1, 1, 1, 1, 0x0a})
}

// equalBytes compares and names the first difference.
func equalBytes(t testing.TB, what string, got, want []byte) {
	t.Helper()
	n := min(len(got), len(want))
	for i := range n {
		if got[i] != want[i] {
			t.Fatalf("%s: byte %d is %#02x, want %#02x\n got % x\nwant % x", what, i, got[i], want[i], nearby(got, i),
				nearby(want, i))
		}
	}
	testkit.Require(t, len(got) == len(want), "%s: %d bytes, want %d", what, len(got), len(want))
}

func nearby(b []byte, i int) []byte { return b[max(0, i-24):min(len(b), i+24)] }
