// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/nccl-otf2/nccl-otf2/otf2/internal/schema"
)

// genRecords writes the kinds of events and definitions and one table per file kind.
func genRecords(s *source) {
	s.line("// Kinds of events, with the fields they carry. The number is the record's id on disk.")
	s.line("const (")
	for _, r := range schema.Events {
		s.line("Event%s EventKind = %d // %s", r.Name, r.ID, describe(r))
	}
	s.line(")")
	s.line("")
	s.line("// Kinds of snapshot records, with the fields they carry. The number is the record's id on disk.")
	s.line("const (")
	for _, r := range schema.Snapshots {
		s.line("%s SnapshotKind = %d // %s", snapshotKind(r), r.ID, describe(r))
	}
	s.line(")")
	s.line("")
	s.line("// Kinds of definitions, with the fields they carry. The number is the record's id in a global definition file.")
	s.line("// Local ones have two records of their own, see WriteLocalDefs.")
	s.line("const (")
	for _, r := range schema.GlobalOnly {
		s.line("Def%s DefKind = %d // %s", r.Name, r.ID, describe(r))
	}
	for _, r := range schema.Definitions {
		s.line("Def%s DefKind = %d // %s", r.Name, r.ID, describe(r))
	}
	s.line(")")
	s.line("")
	table := func(name, doc string, lists ...[]schema.Record) {
		s.line("// %s %s", name, doc)
		s.line("var %s = recordTable{", name)
		for _, list := range lists {
			for _, r := range list {
				s.line("%d: {Name: %q, Upper: %q, Since: %s, NoLength: %t, Fields: []Field{", r.ID, r.Name, upperName(r.Name), version(r.Since), r.NoLength)
				for _, f := range r.Fields {
					s.line("{Name: %q, Encoding: %s, Type: %q, Space: %s, Since: %s, Repeated: %t, Legacy: %t},",
						f.Name, encoding(f.Encoding), f.Type, space(f.Space), version(f.Since), f.Repeated, f.Legacy)
				}
				s.line("}},")
			}
		}
		s.line("}")
		s.line("")
	}
	table("eventTable", "describes the records of event files.", schema.Events)
	table("globalDefTable", "describes the records of the global definition file.", schema.GlobalOnly, schema.Definitions)
	table("localDefTable", "describes the records of local definition files.", schema.LocalOnly, schema.Definitions)
	table("snapshotTable", "describes the records of snapshot files.", schema.Snapshots)
	table("markerTable", "describes the records of the marker file.", schema.Markers)
	table("thumbnailTable", "describes the records of thumbnail files.", schema.Thumbnails)
}

func encoding(name string) string {
	return "Encoding" + map[string]string{"u8": "U8", "c32": "C32", "c64": "C64", "s64": "S64", "f64": "F64",
		"dbl": "Double", "str": "String", "val": "Value", "idmap": "IDMap"}[name]
}

func space(name string) string {
	if name == "" {
		return "NoSpace"
	}
	return "Mapping" + goName(name)
}
