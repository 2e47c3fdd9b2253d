// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"cmp"
	"strconv"
)

// EventKind is the kind of an event, its record id in event files. The constants list the kinds with their
// fields; [EventKind.Fields] gives the fields with their types.
type EventKind uint8

// String returns libotf2's name of the record, "MpiCollectiveEnd", or "Unknown(93)" for a kind this package
// does not know.
func (k EventKind) String() string { return eventTable.name(uint8(k)) }

// UpperName returns the name in the spelling of otf2-print, "MPI_COLLECTIVE_END", or "UNKNOWN".
func (k EventKind) UpperName() string { return eventTable.upper(uint8(k)) }

// Known reports whether this package knows the kind.
func (k EventKind) Known() bool { return eventTable[k].Name != "" }

// Since returns the OTF2 version that introduced the kind.
func (k EventKind) Since() Version { return eventTable[k].Since }

// Fields returns the fields in the order of [Event].Args. The slice must not be modified.
func (k EventKind) Fields() []Field { return eventTable[k].Fields }

// DefKind is the kind of a global definition, its record id in the global definition file.
type DefKind uint8

// String returns libotf2's name of the record, "LocationGroup".
func (k DefKind) String() string { return globalDefTable.name(uint8(k)) }

// UpperName returns the name in the spelling of otf2-print, "LOCATION_GROUP".
func (k DefKind) UpperName() string { return globalDefTable.upper(uint8(k)) }

// Known reports whether this package knows the kind.
func (k DefKind) Known() bool { return globalDefTable[k].Name != "" }

// Since returns the OTF2 version that introduced the kind.
func (k DefKind) Since() Version { return globalDefTable[k].Since }

// Fields returns the fields in on-disk order, superseded ones included. The slice must not be modified.
func (k DefKind) Fields() []Field { return globalDefTable[k].Fields }

// Encoding is the form of a field on disk.
type Encoding uint8

// Encodings of fields.
const (
	EncodingU8     Encoding = iota // one byte
	EncodingC32                    // compressed unsigned, at most 4 bytes after the length byte
	EncodingC64                    // compressed unsigned, at most 8 bytes after the length byte
	EncodingS64                    // compressed signed; negative numbers take all 8 bytes
	EncodingF64                    // unsigned in 8 bytes
	EncodingDouble                 // IEEE 754 in 8 bytes
	EncodingString                 // bytes and a NUL
	EncodingValue                  // attribute value, form given by the Type before it
	EncodingIDMap                  // number of pairs, mode, values
)

// NoSpace is the Space of a field that is not mapped.
const NoSpace MappingType = 255

// Field describes one field of a record.
type Field struct {
	Name     string      // libotf2's name: collectiveOp
	Encoding Encoding    // form on disk
	Type     string      // type in this package, "CommRef", "CollectiveOp"; empty for a plain number or text
	Space    MappingType // id space through which it is mapped when read, or NoSpace
	Since    Version     // version that appended the field, 0 if it was there from the start
	Repeated bool        // part of the repetition counted by the last field before it that is not repeated
	Legacy   bool        // superseded by later fields
}

// Text returns the value as OTF2's name if the field is an enumeration, else as a decimal number (signed where
// the field is).
func (f *Field) Text(value uint64) string {
	if e, ok := enumTable()[f.Type]; ok {
		if f.Type == "CollectiveRoot" {
			if name, ok := e.lookup(uint32(value)); ok {
				return name
			}
			return strconv.FormatUint(value, 10)
		}
		return e.text(uint32(value))
	}
	if f.Encoding == EncodingS64 {
		return strconv.FormatInt(int64(value), 10)
	}
	return strconv.FormatUint(value, 10)
}

// recordSpec describes one record.
type recordSpec struct {
	Name     string
	Upper    string
	Since    Version
	NoLength bool // no length field; such records never get further fields
	Fields   []Field
}

// recordTable describes the records of one file kind, by record id. Name is empty for ids without a record.
type recordTable [256]recordSpec

// spaceOf finds the id space that is called so; NoSpace of "".
func spaceOf(name string) MappingType {
	for _, v := range enumTable()["MappingType"].values {
		if v.name == name {
			return MappingType(v.value)
		}
	}
	return NoSpace
}

func (t *recordTable) name(id uint8) string {
	if n := t[id].Name; n != "" {
		return n
	}
	return "Unknown(" + strconv.Itoa(int(id)) + ")"
}

func (t *recordTable) upper(id uint8) string {
	return cmp.Or(t[id].Upper, "UNKNOWN")
}
