// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"encoding/binary"
	"math"
	"strconv"
)

// Number is one number of a value: most types of values have one.
type Number struct {
	kind numberKind
	bits uint64 // sign-extended
}

// Float64 returns the number, rounded if it is a large integer.
func (n Number) Float64() float64 {
	switch n.kind {
	case numberUnsigned:
		return float64(n.bits)
	case numberSigned:
		return float64(int64(n.bits))
	}
	return math.Float64frombits(n.bits)
}

// Bits returns the number as it is: an unsigned integer, a signed one in two's complement of 64 bits, or the bits of a
// double.
func (n Number) Bits() uint64 { return n.bits }

// String returns the number in decimals, so that it is read back the same.
func (n Number) String() string {
	switch n.kind {
	case numberUnsigned:
		return strconv.FormatUint(n.bits, 10)
	case numberSigned:
		return strconv.FormatInt(int64(n.bits), 10)
	}
	return strconv.FormatFloat(math.Float64frombits(n.bits), 'g', -1, 64)
}

// Row has the values of a metric at a cnode, one for each location. The zero Row is to be filled by [Profile.Row].
type Row struct {
	metric *Metric
	layout layout
	data   []byte // least significant byte first, for any byte order of the file
	err    error  // of the first Set that was refused
}

func newRow(m *Metric, locations int) *Row {
	l, _ := m.Type.layout()
	r := &Row{metric: m, layout: l, data: make([]byte, locations*l.size)}
	r.clear()
	return r
}

// clear sets all values to what a value is that is not stored.
func (r *Row) clear() {
	clear(r.data)
	for _, p := range r.layout.parts {
		if p.absent != 0 {
			r.fillAbsent()
			return
		}
	}
}

func (r *Row) fillAbsent() {
	for at := 0; at < len(r.data); {
		for _, p := range r.layout.parts {
			putBits(r.data[at:], p.size, p.absent)
			at += p.size
		}
	}
}

// Locations returns the number of values.
func (r *Row) Locations() int {
	if r.layout.size == 0 {
		return 0
	}
	return len(r.data) / r.layout.size
}

// Numbers returns how many numbers each value has.
func (r *Row) Numbers() int { return len(r.layout.parts) }

// At returns the first, usually only, number of the value at a location.
func (r *Row) At(l LocationID) Number { return r.NumberAt(l, 0) }

// NumberAt returns the i-th number of the value at a location.
func (r *Row) NumberAt(l LocationID, i int) Number {
	at := int(l) * r.layout.size
	for _, p := range r.layout.parts[:i] {
		at += p.size
	}
	p := r.layout.parts[i]
	return Number{p.number, getBits(r.data[at:], p)}
}

// Present reports whether there is a value at a location: minima and maxima of nothing are none.
func (r *Row) Present(l LocationID) bool {
	for i, p := range r.layout.parts {
		if p.number == numberFloat && p.absent != 0 && r.NumberAt(l, i).bits == p.absent {
			return false
		}
	}
	return true
}

// SetUint64 sets the value at a location, of a metric with an integer type. What does not fit is refused by
// [Writer.WriteMetric].
func (r *Row) SetUint64(l LocationID, v uint64) {
	if !r.settable(l, numberUnsigned, numberSigned) {
		return
	}
	p := r.layout.parts[0]
	width := uint(8 * p.size)
	if p.number == numberSigned {
		width--
	}
	if width < 64 && v>>width != 0 {
		r.err = invalid("%d at location %d does not fit %s", v, l, r.metric.Type)
		return
	}
	putBits(r.data[int(l)*p.size:], p.size, v)
}

// SetInt64 sets the value at a location, of a metric with an integer type.
func (r *Row) SetInt64(l LocationID, v int64) {
	if v >= 0 {
		r.SetUint64(l, uint64(v))
		return
	}
	if !r.settable(l, numberUnsigned, numberSigned) {
		return
	}
	p := r.layout.parts[0]
	if p.number == numberUnsigned || v>>(8*p.size-1) != -1 {
		r.err = invalid("%d at location %d does not fit %s", v, l, r.metric.Type)
		return
	}
	putBits(r.data[int(l)*p.size:], p.size, uint64(v))
}

// SetFloat64 sets the value at a location, of a metric with a type of doubles. Infinities and NaN are refused, as they
// would spread into all sums.
func (r *Row) SetFloat64(l LocationID, v float64) {
	if !r.settable(l, numberFloat, numberFloat) {
		return
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		r.err = invalid("%v at location %d is no number to add up", v, l)
		return
	}
	putBits(r.data[int(l)*8:], 8, math.Float64bits(v))
}

func (r *Row) settable(l LocationID, a, b numberKind) bool {
	switch {
	case r.err != nil:
		return false
	case l < 0 || int(l) >= r.Locations():
		r.err = invalid("there is no location %d among %d", l, r.Locations())
		return false
	case r.layout.parts[0].number != a && r.layout.parts[0].number != b:
		r.err = invalid("values are of type %s: use SetFloat64 for doubles, SetUint64 or SetInt64 for integers",
			r.metric.Type)
		return false
	}
	return true
}

func putBits(b []byte, size int, v uint64) {
	switch size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func getBits(b []byte, p part) uint64 {
	var v uint64
	switch p.size {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(binary.LittleEndian.Uint16(b))
	case 4:
		v = uint64(binary.LittleEndian.Uint32(b))
	default:
		v = binary.LittleEndian.Uint64(b)
	}
	if p.number == numberSigned {
		shift := 64 - 8*p.size
		v = uint64(int64(v<<shift) >> shift)
	}
	return v
}

// swap turns values of the other byte order into those of a Row.
func (l *layout) swap(data []byte) {
	for at := 0; at < len(data); {
		for _, p := range l.parts {
			for i, j := at, at+p.size-1; i < j; i, j = i+1, j-1 {
				data[i], data[j] = data[j], data[i]
			}
			at += p.size
		}
	}
}
