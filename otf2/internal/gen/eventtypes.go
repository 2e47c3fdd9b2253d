// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2/internal/gen/schema"
)

// genEventTypes writes one struct per event record and the method of Event that fills it, by value, so that typed
// reading does not allocate. The members of a repetition stay where they are, behind an accessor of their own.
func genEventTypes(s *source) {
	for _, r := range schema.Events() {
		before, repeated, _ := split(r)
		fixed := before
		if len(repeated) > 0 {
			fixed = before[:len(before)-1]
		}
		comment(s, fmt.Sprintf("%s has the fields of an event that %s.", r.Name, schema.EventMeanings[r.Name]))
		s.line("type %s struct {", r.Name)
		for _, f := range fixed {
			s.line("%s %s", exported(f.Name), goType(f))
		}
		if len(repeated) > 0 {
			s.line("")
			s.line("repeated []uint64 // of the event's Args")
		}
		s.line("}")
		s.line("")
		comment(s, fmt.Sprintf("%s returns the fields of an event of kind Event%[1]s. It panics for other kinds.",
			r.Name))
		s.line("func (e *Event) %s() %[1]s {", r.Name)
		if len(before) > 0 {
			s.line("a := e.fields(Event%s, %d)", r.Name, len(before))
		} else {
			s.line("e.fields(Event%s, 0)", r.Name)
		}
		var values []string
		for i, f := range fixed {
			values = append(values, exported(f.Name)+": "+fromArg(f, fmt.Sprintf("a[%d]", i)))
		}
		if len(repeated) > 0 {
			values = append(values, fmt.Sprintf("repeated: a[%d:]", len(before)))
		}
		s.line("return %s{%s}", r.Name, strings.Join(values, ", "))
		s.line("}")
		s.line("")
		if len(repeated) > 0 {
			genRepeatedAccess(s, r, repeated)
		}
	}
}

func genRepeatedAccess(s *source, r schema.Record, repeated []schema.Field) {
	var names, types, values []string
	for i, f := range repeated {
		names = append(names, f.Name)
		types = append(types, goType(f))
		values = append(values, fromArg(f, fmt.Sprintf("v.repeated[%d*i+%d]", len(repeated), i)))
	}
	s.line("// Len returns the number of %s.", strings.Join(names, " and "))
	s.line("func (v %s) Len() int { return len(v.repeated) / %d }", r.Name, len(repeated))
	s.line("")
	s.line("// At returns number i of %s. It is valid as long as the event.", strings.Join(names, " and "))
	s.line("func (v %s) At(i int) (%s) { return %s }", r.Name, strings.Join(types, ", "), strings.Join(values, ", "))
	s.line("")
}

// fromArg is the expression for a field's value in a typed record.
func fromArg(f schema.Field, arg string) string {
	if typ := goType(f); typ != "uint64" {
		return typ + "(" + arg + ")"
	}
	return arg
}
