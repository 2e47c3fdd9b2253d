// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"fmt"
	"strings"
	"sync"
)

// ReferenceError reports a definition or an event that refers to something that is not defined yet. It was refused,
// nothing was written. Only writers of an archive with ArchiveOptions.CheckReferences return it.
type ReferenceError struct {
	Record   string      // the record refused: "Region", "Enter"
	Field    string      // its field, or "attribute" for an attribute's id, "attribute value" for its value
	Type     string      // what the field refers to, as in [Field].Type: "StringRef"
	ID       uint64      // of the missing definition, after mapping
	Location LocationRef // of the event, UndefinedLocation for a definition
	Time     Timestamp   // of the event
}

// Error implements error.
func (e *ReferenceError) Error() string {
	where := "definition"
	if e.Location != UndefinedLocation {
		where = fmt.Sprintf("event of location %d at %d", e.Location, e.Time)
	}
	return fmt.Sprintf("otf2: %s %s: %s %d (%s) is not defined", where, e.Record, e.Field, e.ID, e.Type)
}

// Unwrap makes it an ErrInvalid.
func (e *ReferenceError) Unwrap() error { return ErrInvalid }

// AttributeTypeError reports an event attribute of another type than its definition has. The event was refused. Only
// writers of an archive with ArchiveOptions.CheckReferences return it.
type AttributeTypeError struct {
	Attribute AttributeRef
	Type      Type // of the event's attribute
	Defined   Type // of the definition
	Location  LocationRef
	Time      Timestamp // of the event
}

// Error implements error.
func (e *AttributeTypeError) Error() string {
	return fmt.Sprintf("otf2: event of location %d at %d: attribute %d is %v, defined as %v", e.Location, e.Time,
		e.Attribute, e.Type, e.Defined)
}

// Unwrap makes it an ErrInvalid.
func (e *AttributeTypeError) Unwrap() error { return ErrInvalid }

// references knows what is defined. It may be used by several goroutines.
type references struct {
	mu         sync.RWMutex
	defined    map[reference]struct{}
	attributes map[AttributeRef]Type
}

// reference is a definition's id; the type says of which id space, "StringRef".
type reference struct {
	typ string
	id  uint64
}

func newReferences() *references {
	return &references{defined: map[reference]struct{}{}, attributes: map[AttributeRef]Type{}}
}

// isReference reports whether a field's type names definitions.
func isReference(typ string) bool { return strings.HasSuffix(typ, "Ref") }

// undefinedID is the id that stands for nothing in a field.
func undefinedID(e Encoding) uint64 {
	switch e {
	case EncodingU8:
		return 1<<8 - 1
	case EncodingC32:
		return 1<<32 - 1
	}
	return 1<<64 - 1
}

// typeReferences gives the reference type of values of a Type, "" for numbers.
var typeReferences = [TypeLocationGroup + 1]string{
	TypeString: "StringRef", TypeAttribute: "AttributeRef", TypeLocation: "LocationRef", TypeRegion: "RegionRef",
	TypeGroup: "GroupRef", TypeMetric: "MetricRef", TypeComm: "CommRef", TypeParameter: "ParameterRef",
	TypeRmaWin: "RmaWinRef", TypeSourceCodeLocation: "SourceCodeLocationRef", TypeCallingContext: "CallingContextRef",
	TypeInterruptGenerator: "InterruptGeneratorRef", TypeIoFile: "IoFileRef", TypeIoHandle: "IoHandleRef",
	TypeLocationGroup: "LocationGroupRef",
}

// referenceOf returns what a value of a Type refers to, if it does.
func referenceOf(typ Type, bits uint64) (reference, bool) {
	if int(typ) >= len(typeReferences) || typeReferences[typ] == "" {
		return reference{}, false
	}
	undefined := uint64(1<<32 - 1)
	if typ == TypeLocation {
		undefined = 1<<64 - 1
	}
	return reference{typeReferences[typ], bits}, bits != undefined
}

// groupMembers and scopeReferences give the reference type of ids whose kind stands in another field.
var (
	groupMembers = map[GroupType]string{
		GroupTypeLocations: "LocationRef", GroupTypeCommLocations: "LocationRef", GroupTypeRegions: "RegionRef",
		GroupTypeMetric: "MetricRef",
	}
	scopeReferences = map[MetricScope]string{
		MetricScopeLocation: "LocationRef", MetricScopeLocationGroup: "LocationGroupRef",
		MetricScopeSystemTreeNode: "SystemTreeNodeRef", MetricScopeGroup: "GroupRef",
	}
)

// definition checks a global definition and takes it over.
func (r *references) definition(id uint8, fields []byte) error {
	spec := &globalDefTable()[id]
	var self reference
	var attributeType Type
	var uses []reference // what it refers to, and the fields
	var names []string
	var typ Type
	members, memberType := []uint64(nil), ""
	d := fieldDecoder{buf: fields}
	err := readFields(spec, &d, func(f *Field, v uint64) {
		use := func(typ string) {
			uses = append(uses, reference{typ, v})
			names = append(names, f.Name)
		}
		switch {
		case f.Name == "self":
			self = reference{f.Type, v}
		case f.Type == "Type":
			typ = Type(v)
			attributeType = typ
		case f.Encoding == EncodingValue:
			if ref, ok := referenceOf(typ, v); ok {
				use(ref.typ)
			}
		case isReference(f.Type) && v != undefinedID(f.Encoding):
			use(f.Type)
		case DefKind(id) == DefGroup && f.Name == "members":
			members = append(members, v)
		case f.Type == "GroupType":
			memberType = groupMembers[GroupType(v)]
		case f.Type == "MetricScope":
			memberType = scopeReferences[MetricScope(v)]
		case f.Name == "scope" && v != 1<<64-1:
			use(memberType)
		}
	})
	if err != nil {
		return fmt.Errorf("otf2: definition to be checked cannot be read: %v: %w", err, ErrInvalid)
	}
	if memberType != "" {
		for _, m := range members {
			uses = append(uses, reference{memberType, m})
			names = append(names, "members")
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, ref := range uses {
		if _, ok := r.defined[ref]; !ok {
			return &ReferenceError{Record: spec.Name, Field: names[i], Type: ref.typ, ID: ref.id,
				Location: UndefinedLocation}
		}
	}
	if self.typ != "" {
		r.defined[self] = struct{}{}
		if DefKind(id) == DefAttribute {
			r.attributes[AttributeRef(self.id)] = attributeType
		}
	}
	return nil
}

// referenceCheck checks the events of one location as they are written, by reading them back.
type referenceCheck struct {
	known  *references
	reader *eventReader
	last   Timestamp // of the last event that was not refused
}

func newReferenceCheck(known *references, loc LocationRef) *referenceCheck {
	r := newEventReader(nil, 0, 0)
	r.event.Location = loc
	return &referenceCheck{known: known, reader: r}
}

// event checks the event that stands, with its stamp and attributes, in buf[from:to].
func (c *referenceCheck) event(buf []byte, from, to int) error {
	r := c.reader
	*r.win = window{buf: buf[:to], r: from, n: to, chunkEnd: int64(to), ended: true}
	if ok, err := r.step(); !ok || err != nil {
		return fmt.Errorf("otf2: event to be checked cannot be read: %v: %w", err, ErrInvalid)
	}
	e := &r.event
	c.known.mu.RLock()
	defer c.known.mu.RUnlock()
	missing := func(field string, ref reference) error {
		return &ReferenceError{Record: e.Kind.String(), Field: field, Type: ref.typ, ID: ref.id, Location: e.Location,
			Time: e.Time}
	}
	has := func(ref reference) bool {
		_, ok := c.known.defined[ref]
		return ok
	}
	fields := e.Kind.Fields()
	each, k := 0, 0
	for _, f := range fields {
		if f.Repeated {
			each++
		}
	}
	for i, v := range e.Args {
		f := &fields[k]
		if k++; k == len(fields) {
			k -= each // members of a repetition take turns
		}
		if !isReference(f.Type) || v == undefinedID(f.Encoding) {
			continue
		}
		if ref := (reference{f.Type, v}); !has(ref) {
			name := f.Name
			if f.Repeated {
				name = fmt.Sprintf("%s[%d]", name, (i-len(fields)+each)/each)
			}
			return missing(name, ref)
		}
	}
	for _, a := range e.Attributes {
		defined, ok := c.known.attributes[a.ID]
		if !ok {
			return missing("attribute", reference{"AttributeRef", uint64(a.ID)})
		}
		if defined != a.Type {
			return &AttributeTypeError{Attribute: a.ID, Type: a.Type, Defined: defined, Location: e.Location,
				Time: e.Time}
		}
		if ref, ok := referenceOf(a.Type, a.Bits); ok && !has(ref) {
			return missing("attribute value", ref)
		}
	}
	return nil
}
