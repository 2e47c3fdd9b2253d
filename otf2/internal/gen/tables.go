// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2/internal/gen/schema"
)

// genTables writes the tables by which records are read and written, and the names of values.
func genTables(s *source) {
	s.line("// The records of each kind of file.")
	s.line("var (")
	genTable(s, "eventTable", schema.Events())
	genTable(s, "globalDefTable", slices.Concat(schema.GlobalOnly(), schema.Definitions()))
	genTable(s, "localDefTable", slices.Concat(schema.LocalOnly(), schema.Definitions()))
	genTable(s, "snapshotTable", schema.Snapshots())
	genTable(s, "markerTable", schema.Markers())
	genTable(s, "thumbnailTable", schema.Thumbnails())
	s.line(")")
	s.line("")
	s.line("var enumerations = []enumInfo{")
	for _, e := range schema.Enums() {
		s.line("{%q, %t, []enumValue{", e.Name, e.Flags)
		for _, v := range e.Values {
			s.line("{%#x, %q},", uint32(v.Value), v.Name)
		}
		s.line("}},")
	}
	s.line("}")
}

func genTable(s *source, name string, records []schema.Record) {
	s.line("%s = recordTable{", name)
	for _, r := range records {
		s.line("%d: {%q, %q, %s, %t, []Field{", r.ID, r.Name, upperName(r.Name), versionOf(r.Since), r.NoLength)
		for _, f := range r.Fields {
			s.line("{%q, %s, %q, %s, %s, %t, %t},", f.Name, encodings[f.Encoding], f.Type, spaceOf(f.Space),
				versionOf(f.Since), f.Repeated, f.Legacy)
		}
		s.line("}},")
	}
	s.line("}")
	s.line("")
}

// encodings are the constants of the words that descriptions have for encodings.
var encodings = map[string]string{"u8": "EncodingU8", "c32": "EncodingC32", "c64": "EncodingC64", "s64": "EncodingS64",
	"f64": "EncodingF64", "dbl": "EncodingDouble", "str": "EncodingString", "val": "EncodingValue",
	"idmap": "EncodingIDMap"}

// versionOf is the number of a version such as "3.1"; of "" it is 0.
func versionOf(text string) string {
	if text == "" {
		return "0"
	}
	var major, minor uint8
	if _, err := fmt.Sscanf(text, "%d.%d", &major, &minor); err != nil {
		panic(fmt.Sprintf("gen: version %q of a record or field: %v", text, err))
	}
	return fmt.Sprintf("%#04x", uint16(major)<<8|uint16(minor))
}

// spaceOf is the constant of the id space that is called so; NoSpace of "".
func spaceOf(name string) string {
	if name == "" {
		return "NoSpace"
	}
	return "Mapping" + goName(name)
}

// upperName turns NameOfRecord into NAME_OF_RECORD, the spelling of otf2-print.
func upperName(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
