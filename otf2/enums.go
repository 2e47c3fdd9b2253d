// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:generate go run ./internal/gen

// Version is an OTF2 version, major<<8 | minor; 0 where something was there from the start.
type Version uint16

// String returns the version as "3.1".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v>>8, v&0xff) }

// enumInfo names the values of one enumeration.
type enumInfo struct {
	name   string
	flags  bool // values may be combined
	values []enumValue
}

type enumValue struct {
	value uint32
	name  string
}

// enumTable finds an enumeration by the type name that a Field gives.
var enumTable = sync.OnceValue(func() map[string]*enumInfo {
	all := make(map[string]*enumInfo, len(enumerations))
	for i := range enumerations {
		all[enumerations[i].name] = &enumerations[i]
	}
	return all
})

// lookup returns the name of a single value.
func (e *enumInfo) lookup(v uint32) (string, bool) {
	if int64(v) < int64(len(e.values)) && e.values[v].value == v {
		return e.values[v].name, true // most enumerations count from 0
	}
	for i := range e.values {
		if e.values[i].value == v {
			return e.values[i].name, true
		}
	}
	return "", false
}

// text returns OTF2's name of v, "A|B" for combined flags and "Paradigm(200)" for a value without a name.
func (e *enumInfo) text(v uint32) string {
	if name, ok := e.lookup(v); ok {
		return name
	}
	if e.flags {
		var names []string
		rest := v
		for _, f := range e.values {
			if f.value != 0 && rest&f.value != 0 {
				names = append(names, f.name)
				rest &^= f.value
			}
		}
		if rest == 0 {
			return strings.Join(names, "|")
		}
	}
	return e.name + "(" + strconv.FormatUint(uint64(v), 10) + ")"
}

// EnumName returns OTF2's name of a value of the enumeration that a [Field] names as its Type, and whether
// there is one: EnumName("CollectiveOp", 11) is "ALLREDUCE". It knows single flags, not combinations.
func EnumName(enum string, value uint64) (string, bool) {
	e, ok := enumTable()[enum]
	if !ok || value > 1<<32-1 {
		return "", false
	}
	return e.lookup(uint32(value))
}

// EnumFlags returns the names of all flags set in value, lowest first, and the bits without a name.
func EnumFlags(enum string, value uint64) (names []string, rest uint64) {
	e, ok := enumTable()[enum]
	if !ok || !e.flags {
		return nil, value
	}
	for _, f := range e.values {
		if bit := uint64(f.value); bit != 0 && value&bit != 0 {
			names = append(names, f.name)
			value &^= bit
		}
	}
	return names, value
}

// IsReference reports whether values of this type are ids of definitions (and so mapped when read).
func (v Type) IsReference() bool { return v >= TypeString && v <= TypeLocationGroup }
