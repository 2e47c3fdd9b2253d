// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// interesting numbers: any length of the compressed form, and its borders.
func anyUint64() *rapid.Generator[uint64] {
	return rapid.Custom(func(t *rapid.T) uint64 {
		v := rapid.Uint64().Draw(t, "v")
		return v >> rapid.IntRange(0, 64).Draw(t, "shift")
	})
}

// What the two encoders write is the same, and both decoders read it in both byte orders.
func TestCompressedNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyUint64().Draw(t, "v")
		if rapid.Bool().Draw(t, "undefined") {
			v = 1<<64 - 1
		}
		var buf [32]byte
		for _, c := range []struct {
			name     string
			put      int
			appended []byte
			plain    func(p plain) []byte
			read     func(d *fieldDecoder) uint64
			want     uint64
			max      uint8
		}{
			{"c64", putC64(buf[:], 0, v), appendC64(nil, v), func(p plain) []byte { return p.c64(nil, v) },
				func(d *fieldDecoder) uint64 { return d.c64() }, v, 8},
			{"c32", putC32(buf[:], 0, uint32(v)), appendC32(nil, uint32(v)),
				func(p plain) []byte { return p.c32(nil, uint32(v)) },
				func(d *fieldDecoder) uint64 { return uint64(d.c32()) }, uint64(uint32(v)), 4},
			{"s64", putS64(buf[:], 0, int64(v)), appendS64(nil, int64(v)),
				func(p plain) []byte { return p.s64(nil, int64(v)) },
				func(d *fieldDecoder) uint64 { return uint64(d.s64()) }, v, 8},
		} {
			testkit.Require(t, string(c.appended) == string(c.plain(plainLittle)) && c.put == len(c.appended),
				"%s(%#x) = % x (put: %d bytes), want % x", c.name, v, c.appended, c.put, c.plain(plainLittle))
			for _, p := range []plain{plainLittle, plainBig} {
				b := c.plain(p)
				d := fieldDecoder{buf: b, big: p.mark == bigEndian}
				if got := c.read(&d); got != c.want || d.err != nil || d.pos != len(b) {
					t.Fatalf("%s(%#x) read as %#x, %v", c.name, v, got, d.err)
				}
				for _, more := range [][]byte{nil, make([]byte, 16)} {
					size, got, err := compressedAt(append(b[:len(b):len(b)], more...), c.max, d.big)
					testkit.Require(t, err == nil && got == c.want && size == len(b),
						"%s(%#x) read as %#x in %d bytes, %v", c.name, v, got, size, err)
				}
				for cut := range b {
					d := fieldDecoder{buf: b[:cut], big: d.big}
					if c.read(&d); d.err == nil {
						t.Fatalf("%s(%#x) cut to %d bytes: no error", c.name, v, cut)
					}
				}
			}
		}
		putC64(buf[:], 0, v)
		testkit.Require(t, string(buf[:putC64(buf[:], 0, v)]) == string(appendC64(nil, v)), "putC64(%#x) = % x", v, buf)
	})
}

// Non-minimal forms are read; too long ones are refused.
func TestCompressedForms(t *testing.T) {
	d := fieldDecoder{buf: []byte{4, 7, 0, 0, 0}}
	v := d.c32()
	testkit.Check(t, v == 7 && d.err == nil, "non-minimal 7 read as %d, %v", v, d.err)
	d = fieldDecoder{buf: []byte{5, 7, 0, 0, 0, 0}}
	if d.c32(); d.err == nil {
		t.Error("five bytes for 32 bits: no error")
	}
	d = fieldDecoder{buf: []byte{0xff}}
	testkit.Equal(t, d.s64(), -1, "ff read as signed")
}

// Values keep their bits through the form of their type.
func TestValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := Type(rapid.IntRange(0, 30).Draw(t, "type"))
		v := Value(anyUint64().Draw(t, "v"))
		switch typ { // what the type can hold
		case TypeUint8:
			v = Value(uint8(v))
		case TypeUint16:
			v = Value(uint16(v))
		case TypeInt8:
			v = IntValue(int64(int8(v)))
		case TypeInt16:
			v = IntValue(int64(int16(v)))
		case TypeInt32:
			v = IntValue(int64(int32(v)))
		case TypeUint32, TypeFloat:
			v = Value(uint32(v))
		default:
			if typ.IsReference() && typ != TypeLocation {
				v = Value(uint32(v))
			}
		}
		b := appendValue(nil, typ, v)
		d := fieldDecoder{buf: b}
		got := d.value(typ)
		testkit.Require(t, got == v && d.err == nil && d.pos == len(b), "%v %#x read as %#x, %v", typ, v, got, d.err)
	})
	testkit.Equal(t, DoubleValue(-2.25).Double(), -2.25, "double")
	testkit.Equal(t, FloatValue(float32(math.Pi)).Float(), float32(math.Pi), "float")
}
