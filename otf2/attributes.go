// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"fmt"
	"slices"
)

// AttributeList collects the attributes of the next event. The zero value is an empty list; Reset makes it empty
// again and keeps its memory. Values are encoded when they are added, so that one list can be written to several
// events at the cost of a copy.
//
// Each id must be defined in the archive with the type under which it is added. An id that is added twice makes
// the list unusable until Reset: readers refuse such lists.
type AttributeList struct {
	buf   []byte // entries as they stand on disk, and room for one more
	used  int
	count int
	seen  [4]uint64      // ids below 256 that are in the list
	large []AttributeRef // the others
	err   error
}

// maxEntry is the largest size of an entry: id, type, value, and what encoders touch behind it.
const maxEntry = 5 + 1 + 9 + encoderSlack

// Reset empties the list.
func (a *AttributeList) Reset() {
	a.used, a.count = 0, 0
	a.seen = [4]uint64{}
	a.large = a.large[:0]
	a.err = nil
}

// Len returns the number of attributes.
func (a *AttributeList) Len() int { return a.count }

// Err returns why the list cannot be written, or nil.
func (a *AttributeList) Err() error { return a.err }

// Add appends an attribute of any type.
func (a *AttributeList) Add(id AttributeRef, typ Type, v Value) {
	switch typ {
	case TypeUint8, TypeInt8, TypeUint16, TypeInt16, TypeInt32, TypeInt64, TypeFloat, TypeDouble:
		p := a.head(id, typ)
		a.used = len(appendValue(a.buf[:p], typ, v)) // fits: head made room
	case TypeLocation:
		a.compressed(id, typ, uint64(v), 1<<64-1)
	default:
		if typ.IsReference() || typ == TypeUint32 {
			a.compressed(id, typ, uint64(uint32(v)), 1<<32-1)
		} else {
			a.compressed(id, typ, uint64(v), 1<<64-1)
		}
	}
}

// compressed appends an attribute whose value is a compressed number.
func (a *AttributeList) compressed(id AttributeRef, typ Type, v, undefined uint64) {
	p := a.head(id, typ) // may replace buf
	a.used = putCompressed(a.buf, p, v, undefined)
}

// head makes room for an entry, writes what precedes the value and returns the value's place.
func (a *AttributeList) head(id AttributeRef, typ Type) int {
	if len(a.buf)-a.used < maxEntry {
		a.grow()
	}
	if id < 256 {
		word, bit := &a.seen[id/64], uint64(1)<<(id%64)
		if *word&bit != 0 {
			a.twice(id)
		}
		*word |= bit
	} else {
		a.addLarge(id)
	}
	a.count++
	p := putC32(a.buf, a.used, uint32(id))
	a.buf[p] = byte(typ)
	return p + 1
}

func (a *AttributeList) grow() {
	buf := make([]byte, max(256, 2*len(a.buf)))
	copy(buf, a.buf[:a.used])
	a.buf = buf
}

func (a *AttributeList) addLarge(id AttributeRef) {
	if slices.Contains(a.large, id) {
		a.twice(id)
	}
	a.large = append(a.large, id)
}

func (a *AttributeList) twice(id AttributeRef) {
	if a.err == nil {
		a.err = fmt.Errorf("otf2: attribute %d twice in one list: %w", id, ErrInvalid)
	}
}

// estimate is libotf2's size estimate of the whole record.
func (a *AttributeList) estimate() int {
	size := a.dataEstimate()
	return 1 + lengthSize(size) + size
}

func (a *AttributeList) dataEstimate() int { return 5 + 15*a.count }

// put writes the record at b[p].
func (a *AttributeList) put(b []byte, p int) int {
	b[p] = recordAttributes
	estimate := a.dataEstimate()
	start := p + 1 + lengthSize(estimate)
	p = putC32(b, start, uint32(a.count))
	p += copy(b[p:], a.buf[:a.used])
	putLength(b, start, p, estimate)
	return p
}

// Uint8 appends an UINT8.
func (a *AttributeList) Uint8(id AttributeRef, v uint8) {
	p := a.head(id, TypeUint8)
	a.buf[p] = v
	a.used = p + 1
}

// Uint16 appends an UINT16.
func (a *AttributeList) Uint16(id AttributeRef, v uint16) { a.Add(id, TypeUint16, Value(v)) }

// Uint32 appends an UINT32.
func (a *AttributeList) Uint32(id AttributeRef, v uint32) {
	a.compressed(id, TypeUint32, uint64(v), 1<<32-1)
}

// Uint64 appends an UINT64.
func (a *AttributeList) Uint64(id AttributeRef, v uint64) {
	a.compressed(id, TypeUint64, v, 1<<64-1)
}

// Int8 appends an INT8.
func (a *AttributeList) Int8(id AttributeRef, v int8) { a.Add(id, TypeInt8, Value(v)) }

// Int16 appends an INT16.
func (a *AttributeList) Int16(id AttributeRef, v int16) { a.Add(id, TypeInt16, Value(v)) }

// Int32 appends an INT32.
func (a *AttributeList) Int32(id AttributeRef, v int32) { a.Add(id, TypeInt32, Value(v)) }

// Int64 appends an INT64.
func (a *AttributeList) Int64(id AttributeRef, v int64) {
	p := a.head(id, TypeInt64)
	a.used = putS64(a.buf, p, v)
}

// Float appends a FLOAT.
func (a *AttributeList) Float(id AttributeRef, v float32) { a.Add(id, TypeFloat, FloatValue(v)) }

// Double appends a DOUBLE.
func (a *AttributeList) Double(id AttributeRef, v float64) { a.Add(id, TypeDouble, DoubleValue(v)) }

// String appends a STRING.
func (a *AttributeList) String(id AttributeRef, v StringRef) { a.ref(id, TypeString, uint32(v)) }

// Attribute appends an ATTRIBUTE.
func (a *AttributeList) Attribute(id, v AttributeRef) { a.ref(id, TypeAttribute, uint32(v)) }

// Location appends a LOCATION.
func (a *AttributeList) Location(id AttributeRef, v LocationRef) {
	a.compressed(id, TypeLocation, uint64(v), 1<<64-1)
}

// Region appends a REGION.
func (a *AttributeList) Region(id AttributeRef, v RegionRef) { a.ref(id, TypeRegion, uint32(v)) }

// Group appends a GROUP.
func (a *AttributeList) Group(id AttributeRef, v GroupRef) { a.ref(id, TypeGroup, uint32(v)) }

// Metric appends a METRIC.
func (a *AttributeList) Metric(id AttributeRef, v MetricRef) { a.ref(id, TypeMetric, uint32(v)) }

// Comm appends a COMM.
func (a *AttributeList) Comm(id AttributeRef, v CommRef) { a.ref(id, TypeComm, uint32(v)) }

// Parameter appends a PARAMETER.
func (a *AttributeList) Parameter(id AttributeRef, v ParameterRef) {
	a.ref(id, TypeParameter, uint32(v))
}

// RmaWin appends a RMA_WIN.
func (a *AttributeList) RmaWin(id AttributeRef, v RmaWinRef) { a.ref(id, TypeRmaWin, uint32(v)) }

// SourceCodeLocation appends a SOURCE_CODE_LOCATION.
func (a *AttributeList) SourceCodeLocation(id AttributeRef, v SourceCodeLocationRef) {
	a.ref(id, TypeSourceCodeLocation, uint32(v))
}

// CallingContext appends a CALLING_CONTEXT.
func (a *AttributeList) CallingContext(id AttributeRef, v CallingContextRef) {
	a.ref(id, TypeCallingContext, uint32(v))
}

// InterruptGenerator appends an INTERRUPT_GENERATOR.
func (a *AttributeList) InterruptGenerator(id AttributeRef, v InterruptGeneratorRef) {
	a.ref(id, TypeInterruptGenerator, uint32(v))
}

// IoFile appends an IO_FILE.
func (a *AttributeList) IoFile(id AttributeRef, v IoFileRef) { a.ref(id, TypeIoFile, uint32(v)) }

// IoHandle appends an IO_HANDLE.
func (a *AttributeList) IoHandle(id AttributeRef, v IoHandleRef) { a.ref(id, TypeIoHandle, uint32(v)) }

// LocationGroup appends a LOCATION_GROUP.
func (a *AttributeList) LocationGroup(id AttributeRef, v LocationGroupRef) {
	a.ref(id, TypeLocationGroup, uint32(v))
}

func (a *AttributeList) ref(id AttributeRef, typ Type, v uint32) {
	a.compressed(id, typ, uint64(v), 1<<32-1)
}
