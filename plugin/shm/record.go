// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// EventType is an event type of NCCL's profiler API: the number of its bit in the activation mask
// (ncclProfileGroup = 1<<EventGroup, and so on).
type EventType uint8

// EventNames are NCCL's names of the event types without the prefix ncclProfile, indexed by type.
var EventNames = api.Names

// ByName maps the numbers that are not zero to the names of their types.
func ByName(n *[TypeCount]uint64) map[string]uint64 {
	out := make(map[string]uint64)
	for t, n := range n {
		if n > 0 {
			out[EventType(t).String()] = n
		}
	}
	return out
}

// String is the type's name as NCCL has it.
func (t EventType) String() string {
	if int(t) < len(EventNames) {
		return EventNames[t]
	}
	return fmt.Sprintf("EventType(%d)", uint8(t))
}

// KnownTypes returns the event types (bits) that a version of NCCL's profiler API has. Others must not be
// asked for: in another vendor's v6, bit 15 is something else.
func KnownTypes(apiVersion int) uint32 { return api.Known(apiVersion) }

// RecordKind says what a record is about.
type RecordKind uint8

var recordKindNames = [...]string{"", "Thread", "Start", "Stop", "State", "Init", "Finalize", "Mark", "Edge", "Before",
	"Cupti", "CuptiClock", "ScorepThread", "Mask"}

// Mark is what a RecordMark says.
type Mark uint8

// String is the kind in a word.
func (k RecordKind) String() string {
	if k >= RecordThread && int(k) < len(recordKindNames) {
		return recordKindNames[k]
	}
	return fmt.Sprintf("RecordKind(%d)", uint8(k))
}

// RecordFlags are bits of a record; each is defined for the types named.
type RecordFlags uint8

// FlagsByName are the flags that stand for members of descriptors, by the names that plugin/api has for them.
var FlagsByName = map[string]RecordFlags{"GRAPH": FlagGraph, "SYM": FlagSym, "SEND": FlagSend, "COMPLETE": FlagComplete}

// StateName names a state value of recordEventState, such as "ProxyStepSendWait".
func StateName(state uint32) string { return api.StateName(state) }

// Tag is the process tag in a handle or context.
func Tag(handle uint64) uint16 { return uint16(handle >> TagShift) }

// TypeOf is the event type in a handle; of a value that is none, also contexts, it is any.
func TypeOf(handle uint64) EventType { return EventType(min(handle>>TypeShift&TypeMask, TypeCount-1)) }

// width says how a field lies in a record.
type width uint8

const (
	wide   width = iota // 8 bytes
	word                // 4 bytes
	octet               // 1 byte
	text                // 4 bytes: string id
	inline              // 16 bytes, NUL-padded
)

// field is one payload field: where it lies in the C record and in Record.
type field struct {
	name string // in the C struct
	from uintptr
	w    width
	to   uintptr
}

// recordLayout is one row of the table that drives decoding.
type recordLayout struct {
	name   string // of the C struct, "record" for a bare head
	units  uint8
	fields []field
}

// rec gives the offsets of Record's fields.
var rec Record

// others describes the records of the other kinds.
var others = [...]recordLayout{
	RecordThread: {"thread_record", 2, []field{
		{"head.aux", 12, word, unsafe.Offsetof(rec.TID)},
		{"name", 32, inline, unsafe.Offsetof(rec.ThreadName)},
	}},
	RecordStart:    {},
	RecordStop:     {"record", 1, nil},
	RecordState:    {"record", 1, nil},
	RecordInit:     {"record", 1, nil},
	RecordFinalize: {"record", 1, nil},
	RecordMark: {"record", 1, []field{
		{"aux", 12, text, unsafe.Offsetof(rec.MarkText)},
		{"type", 9, octet, unsafe.Offsetof(rec.Mark)},
	}},
	RecordEdge:   {"record", 1, nil},
	RecordBefore: {"record", 1, nil},
	RecordCupti: {"cupti", 1, []field{
		{"head.aux", 12, text, unsafe.Offsetof(rec.ActivityName)},
	}},
	RecordCuptiClock: {"cupti_clock", 2, []field{
		{"real", 32, wide, unsafe.Offsetof(rec.Real)},
	}},
	RecordScorepThread: {"record", 1, nil},
	RecordMask:         {"record", 1, nil},
}

// proxyOpStates is the number of ProxyOp's own states of API v1 … v3: their Aux holds the steps, too.
const proxyOpStates = 8

// layoutOf finds the row for a record; nil if there is none.
func layoutOf(kind RecordKind, typ EventType) *recordLayout {
	typed := kind == RecordStart || kind == RecordStop || kind == RecordState
	switch {
	case typed && int(typ) >= TypeCount:
		return nil
	case kind == RecordStart:
		return &starts[typ]
	case kind >= RecordThread && int(kind) < len(others):
		return &others[kind]
	}
	return nil
}

// ErrRecord is wrapped by Decode's errors.
var ErrRecord = errors.New("not a record")

// Decode reads the record at the start of b into r and returns its length in bytes. Strings are
// looked up in s (an unknown id gives "", and is counted there). Bytes that are no record give an error
// that wraps ErrRecord; who takes a record may rely on its kind, on the type of a start, stop or state, and on nothing
// else. It allocates only for strings not seen before and for activity records.
func Decode(b []byte, s *Strings, r *Record) (int, error) {
	if len(b) < Unit {
		return 0, fmt.Errorf("%w: %d bytes", ErrRecord, len(b))
	}
	kind, typ := RecordKind(b[8]), EventType(b[9])
	l := layoutOf(kind, typ)
	if l == nil {
		return 0, fmt.Errorf("%w: kind %d, type %d", ErrRecord, kind, typ)
	}
	size := int(b[10]) * Unit
	if b[10] < l.units || size > len(b) {
		return 0, fmt.Errorf("%w: %s %s of %d units, %d bytes left", ErrRecord, typ, kind, b[10], len(b))
	}
	*r = Record{
		Ticks:  binary.NativeEndian.Uint64(b),
		Kind:   kind,
		Type:   typ,
		Flags:  RecordFlags(b[11]),
		Aux:    binary.NativeEndian.Uint32(b[12:]),
		Handle: binary.NativeEndian.Uint64(b[16:]),
		Arg:    binary.NativeEndian.Uint64(b[24:]),
	}
	b = b[:size]
	for i := range l.fields {
		f := &l.fields[i]
		// The offset comes from unsafe.Offsetof of a field of r's type with this width; a test holds
		// the table to that.
		to := unsafe.Add(unsafe.Pointer(r), f.to)
		switch f.w {
		case wide:
			*(*uint64)(to) = binary.NativeEndian.Uint64(b[f.from:])
		case word:
			*(*uint32)(to) = binary.NativeEndian.Uint32(b[f.from:])
		case octet:
			*(*uint8)(to) = b[f.from]
		case text:
			*(*string)(to) = s.Lookup(binary.NativeEndian.Uint32(b[f.from:]))
		case inline:
			*(*string)(to) = s.intern(b[f.from : f.from+16])
		}
	}
	switch kind {
	case RecordState:
		if r.Aux&0xff < proxyOpStates {
			r.Aux, r.Steps = r.Aux&0xff, int32(r.Aux>>8)
		}
	case RecordMark:
		r.Aux, r.Type = 0, 0
	case RecordCupti:
		if r.Handle > uint64(size-Unit) {
			return 0, fmt.Errorf("%w: %s with %d bytes in %d units", ErrRecord, kind, r.Handle, b[10])
		}
		r.Activity = bytes.Clone(b[Unit : Unit+r.Handle])
		r.Aux, r.Handle = 0, 0
	}
	return size, nil
}

// AppendRecord encodes r behind b: the inverse of Decode, for programs that make recordings. id gives
// the ids of strings.
func AppendRecord(b []byte, r *Record, id func(string) uint32) []byte {
	l := layoutOf(r.Kind, r.Type)
	if l == nil {
		panic(fmt.Sprintf("shm: no record of kind %d, type %d", r.Kind, r.Type))
	}
	start := len(b)
	units := int(l.units) + (len(r.Activity)+Unit-1)/Unit
	b = append(b, make([]byte, units*Unit)...)
	out := b[start:]
	binary.NativeEndian.PutUint64(out, r.Ticks)
	out[8], out[9], out[10], out[11] = uint8(r.Kind), uint8(r.Type), uint8(units), uint8(r.Flags)
	binary.NativeEndian.PutUint32(out[12:], r.Aux)
	binary.NativeEndian.PutUint64(out[16:], r.Handle)
	binary.NativeEndian.PutUint64(out[24:], r.Arg)
	if r.Kind == RecordState && r.Aux < proxyOpStates {
		binary.NativeEndian.PutUint32(out[12:], r.Aux|uint32(r.Steps)<<8)
	}
	if r.Kind == RecordCupti {
		binary.NativeEndian.PutUint64(out[16:], uint64(len(r.Activity)))
		copy(out[Unit:], r.Activity)
	}
	for _, f := range l.fields {
		from := unsafe.Add(unsafe.Pointer(r), f.to)
		switch f.w {
		case wide:
			binary.NativeEndian.PutUint64(out[f.from:], *(*uint64)(from))
		case word:
			binary.NativeEndian.PutUint32(out[f.from:], *(*uint32)(from))
		case octet:
			out[f.from] = *(*uint8)(from)
		case text:
			binary.NativeEndian.PutUint32(out[f.from:], id(*(*string)(from)))
		case inline:
			copy(out[f.from:f.from+15], *(*string)(from))
		}
	}
	return b
}
