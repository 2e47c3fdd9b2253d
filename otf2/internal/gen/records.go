// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/nccl-otf2/nccl-otf2/otf2/internal/gen/schema"

// genRecords writes the kinds of events, snapshot records and definitions.
func genRecords(s *source) {
	s.line("// Kinds of events, with the fields they carry. The number is the record's id on disk.")
	s.line("const (")
	for _, r := range schema.Events() {
		s.line("Event%s EventKind = %d // %s", r.Name, r.ID, describe(r))
	}
	s.line(")")
	s.line("")
	s.line("// Kinds of snapshot records, with the fields they carry. The number is the record's id on disk.")
	s.line("const (")
	for _, r := range schema.Snapshots() {
		s.line("%s SnapshotKind = %d // %s", snapshotKind(r), r.ID, describe(r))
	}
	s.line(")")
	s.line("")
	s.line("// Kinds of definitions, with the fields they carry. The number is the record's id in a global " +
		"definition file.")
	s.line("// Local ones have two records of their own, see WriteLocalDefs.")
	s.line("const (")
	for _, r := range schema.GlobalOnly() {
		s.line("Def%s DefKind = %d // %s", r.Name, r.ID, describe(r))
	}
	for _, r := range schema.Definitions() {
		s.line("Def%s DefKind = %d // %s", r.Name, r.ID, describe(r))
	}
	s.line(")")
}
