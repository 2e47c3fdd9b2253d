// SPDX-License-Identifier: Apache-2.0

// Package schema holds the one description of OTF2's records and enumerations. The generator derives tables of records,
// writer methods, typed definitions and constants of package otf2 from it.
//
// Source of the facts: the trace format as libotf2 3.0 writes it (trace format 2, anchor format 3) and the
// records that 3.1 and 3.2 added.
package schema

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Record describes one record of a file kind.
type Record struct {
	ID       uint8
	Name     string // libotf2's name: MpiCollectiveEnd
	Since    string // version that introduced it: "3.0"
	NoLength bool   // the record has no length field
	Text     string // its fields in the notation described at Events
	Fields   []Field
}

// Field describes one field of a record in on-disk order.
type Field struct {
	Name     string // libotf2's name: collectiveOp
	Encoding string // u8 c32 c64 s64 f64 dbl str val idmap
	Type     string // Go type in package otf2; empty for a plain number or text
	Space    string // id space it is mapped through when read: COMM; empty for none
	Since    string // version that appended the field; empty: there from the start
	Repeated bool   // part of the repetition counted by the last field before it that is not repeated
	Legacy   bool   // superseded by later fields; writers derive it, readers of newer files skip it
}

// Enum describes one enumeration.
type Enum struct {
	Name   string
	Bits   int
	Flags  bool // values may be combined
	Prefix string
	Text   string
	Values []EnumValue
}

// EnumValue is one named value of an enumeration.
type EnumValue struct {
	Name  string
	Value uint64
	Since string
}

// records are descriptions with the fields of their texts, made when they are asked for.
func records(described func() []Record) func() []Record {
	return sync.OnceValue(func() []Record {
		rs := described()
		for i := range rs {
			for _, text := range strings.Fields(rs[i].Text) {
				rs[i].Fields = append(rs[i].Fields, parseField(rs[i].Name, text))
			}
		}
		return rs
	})
}

func parseField(record, text string) Field {
	var f Field
	text, f.Repeated = strings.CutPrefix(text, "*")
	text, f.Since, _ = strings.Cut(text, "+")
	text, f.Legacy = strings.CutSuffix(text, "!legacy")
	text, f.Space, _ = strings.Cut(text, "@")
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		panic(fmt.Sprintf("schema: record %s: field %q has no encoding", record, text))
	}
	f.Name, f.Encoding = parts[0], parts[1]
	if len(parts) == 3 {
		f.Type = parts[2]
	}
	return f
}

func enums(described func() []Enum) func() []Enum {
	return sync.OnceValue(func() []Enum {
		es := described()
		for i := range es {
			for _, text := range strings.Fields(es[i].Text) {
				text, since, _ := strings.Cut(text, "@")
				name, number, _ := strings.Cut(text, "=")
				value, err := strconv.ParseUint(number, 0, 64)
				if err != nil {
					panic(fmt.Sprintf("schema: enumeration %s: value %q: %v", es[i].Name, text, err))
				}
				es[i].Values = append(es[i].Values, EnumValue{name, value, since})
			}
		}
		return es
	})
}
