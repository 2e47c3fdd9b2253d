// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2/internal/gen/schema"
)

// genSnapshotMethods writes one method of SnapshotWriter per record.
func genSnapshotMethods(s *source) {
	s.line(`import "fmt"`)
	s.line("")
	for _, r := range schema.Snapshots() {
		comment(s, snapshotComment(r))
		before, repeated, _ := split(r)
		fixed := before
		if len(repeated) > 0 {
			fixed = before[:len(before)-1]
		}
		s.line("func (s *SnapshotWriter) %s(t Timestamp, a *AttributeList%s) error {", r.Name,
			parameters(fixed, repeated))
		var args []string
		for _, f := range fixed {
			args = append(args, toArg(f, param(f.Name)))
		}
		if len(repeated) == 0 {
			s.line("return s.Write(%s, t, a, []uint64{%s})", snapshotKind(r), strings.Join(args, ", "))
		} else {
			first := param(repeated[0].Name)
			var members []string
			for i, f := range repeated {
				if i > 0 {
					s.line("if len(%s) != len(%s) { return fmt.Errorf(\"otf2: %s: %%d %s for %%d %s: %%w\", "+
						"len(%[1]s), len(%[2]s), ErrInvalid) }",
						param(f.Name), first, r.Name, param(f.Name), first)
				}
				members = append(members, toArg(f, param(f.Name)+"[i]"))
			}
			s.line("args := []uint64{%s, uint64(len(%s))}", strings.Join(args, ", "), first)
			s.line("for i := range %s { args = append(args, %s) }", first, strings.Join(members, ", "))
			s.line("return s.Write(%s, t, a, args)", snapshotKind(r))
		}
		s.line("}")
		s.line("")
	}
}

// snapshotKind is the constant of the record's kind.
func snapshotKind(r schema.Record) string { return "Snapshot" + strings.TrimPrefix(r.Name, "Snapshot") }

func snapshotComment(r schema.Record) string {
	const errors = "Errors are those of [SnapshotWriter.Write]."
	switch r.Name {
	case "SnapshotStart":
		return "SnapshotStart begins the snapshot of time t, which has numberOfRecords records between start and " +
			"end. " + errors
	case "SnapshotEnd":
		return "SnapshotEnd ends the snapshot. contReadPos is the number, counted from 1, of the event with which " +
			"reading goes on. " + errors
	}
	return fmt.Sprintf("%s writes into the snapshot of time t the event of origEventTime that %s. %s", r.Name,
		schema.EventMeanings[r.Name], errors)
}

// toArg is the expression for a value as it stands in Args.
func toArg(f schema.Field, value string) string {
	if goType(f) == "uint64" {
		return value
	}
	return "uint64(" + value + ")"
}
