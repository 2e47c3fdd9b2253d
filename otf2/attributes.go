// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// AttributeList collects the attributes of the next event. The zero value is an empty list; Reset makes it empty
// again and keeps its memory. One list can be written to several events.
//
// Each id must be defined in the archive with the type under which it is added. A list in which an id stands twice
// is refused by the event methods: readers refuse such lists.
type AttributeList struct {
	list []AttributeValue
}

// Reset empties the list.
func (a *AttributeList) Reset() { a.list = a.list[:0] }

// Len returns the number of attributes.
func (a *AttributeList) Len() int { return len(a.list) }

// Values returns the attributes, of a nil list none. They are valid until the list is changed.
func (a *AttributeList) Values() []AttributeValue {
	if a == nil {
		return nil
	}
	return a.list
}

// Err returns why the list cannot be written, or nil.
func (a *AttributeList) Err() error {
	var seen [4]uint64 // ids below 256
	for i := range a.list {
		id := a.list[i].ID
		twice := false
		if id < 256 {
			word, bit := &seen[id/64], uint64(1)<<(id%64)
			twice = *word&bit != 0
			*word |= bit
		} else {
			twice = slices.ContainsFunc(a.list[:i], func(v AttributeValue) bool { return v.ID == id })
		}
		if twice {
			return fmt.Errorf("otf2: attribute %d twice in one list: %w", id, ErrInvalid)
		}
	}
	return nil
}

// Add appends an attribute of any type. Of v only the bits that the type has are used.
func (a *AttributeList) Add(id AttributeRef, typ Type, v Value) {
	a.list = append(a.list, AttributeValue{id, typ, uint64(v)})
}

// estimate is libotf2's size estimate of the whole record.
func (a *AttributeList) estimate() int {
	size := a.dataEstimate()
	return 1 + lengthSize(size) + size
}

func (a *AttributeList) dataEstimate() int { return 5 + 15*len(a.list) }

// maxEntry is the room for an entry: id, type, value, and what encoders touch behind it.
const maxEntry = 5 + 1 + 9 + 8

// encode writes the record at b[p]. It returns false if an id occurs twice in the list.
func (a *AttributeList) encode(b []byte, p int) (int, bool) {
	b[p] = recordAttributes
	estimate := a.dataEstimate()
	start := p + 1 + lengthSize(estimate)
	p = putC32(b, start, uint32(len(a.list)))
	next := uint32(0)
	ascending := true // then no id can stand twice
	for rest := a.list; ; {
		var n int
		p, next, n = putEntries(b, p, rest, next)
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
		e := &rest[0]
		ascending = ascending && uint32(e.ID) >= next
		next = uint32(e.ID) + 1
		p = putC32(b, p, uint32(e.ID))
		b[p] = byte(e.Type)
		p = len(appendValue(b[:p+1], e.Type, Value(e.Bits))) // fits: begin made room
		rest = rest[1:]
	}
	putLength(b, start, p, estimate)
	return p, ascending || a.Err() == nil
}

// putEntries writes entries at b[p] as long as they are usual ones: ids of one byte at most, next or larger; values
// that are not undefined. Negative numbers take all their bytes by themselves, their highest bit being set. It returns
// the position behind them, the next id and their number.
func putEntries(b []byte, p int, list []AttributeValue, next uint32) (int, uint32, int) {
	for i := range list {
		e := &list[i]
		id, f := uint32(e.ID), &valueForms[e.Type]
		v := e.Bits & f.mask
		if id > 255 || id < next || v == f.undefined {
			return p, next, i
		}
		next = id + 1
		// Id, type and the number's length are one store, the number another. What they write too much is
		// overwritten by what follows.
		entry := (*[maxEntry]byte)(b[p : p+maxEntry])
		head := 1 | id<<8 | uint32(e.Type)<<16
		if f.fixed != 0 {
			if id == 0 {
				head >>= 8
				p--
			}
			binary.LittleEndian.PutUint32(entry[:], head)
			binary.LittleEndian.PutUint64(b[p+3:], v)
			p += 3 + int(f.fixed)
			continue
		}
		n := (bits.Len64(v) + 7) >> 3
		head |= uint32(n) << 24
		if id != 0 {
			binary.LittleEndian.PutUint32(entry[:], head)
			binary.LittleEndian.PutUint64(entry[4:], v)
			p += 4 + n
		} else {
			binary.LittleEndian.PutUint32(entry[:], head>>8)
			binary.LittleEndian.PutUint64(entry[3:], v)
			p += 3 + n
		}
	}
	return p, next, len(list)
}

// Uint8 appends an UINT8.
func (a *AttributeList) Uint8(id AttributeRef, v uint8) { a.Add(id, TypeUint8, Value(v)) }

// Uint16 appends an UINT16.
func (a *AttributeList) Uint16(id AttributeRef, v uint16) { a.Add(id, TypeUint16, Value(v)) }

// Uint32 appends an UINT32.
func (a *AttributeList) Uint32(id AttributeRef, v uint32) { a.Add(id, TypeUint32, Value(v)) }

// Uint64 appends an UINT64.
func (a *AttributeList) Uint64(id AttributeRef, v uint64) { a.Add(id, TypeUint64, Value(v)) }

// Int8 appends an INT8.
func (a *AttributeList) Int8(id AttributeRef, v int8) { a.Add(id, TypeInt8, Value(v)) }

// Int16 appends an INT16.
func (a *AttributeList) Int16(id AttributeRef, v int16) { a.Add(id, TypeInt16, Value(v)) }

// Int32 appends an INT32.
func (a *AttributeList) Int32(id AttributeRef, v int32) { a.Add(id, TypeInt32, Value(v)) }

// Int64 appends an INT64.
func (a *AttributeList) Int64(id AttributeRef, v int64) { a.Add(id, TypeInt64, IntValue(v)) }

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
	a.Add(id, TypeLocation, Value(v))
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

func (a *AttributeList) ref(id AttributeRef, typ Type, v uint32) { a.Add(id, typ, Value(v)) }
