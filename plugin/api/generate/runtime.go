// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// runtime makes the tables of package api, which programs read.
func runtime(s *source) {
	s.line("\npackage api\n")
	s.line("// Layout is the version of the memory that plugin and collector share.\nconst Layout = %d\n",
		Layout)
	s.line("// Kinds of members; from String on they are names.\nconst (\n%s Kind = iota", kindNames[0])
	for _, name := range kindNames[1:] {
		s.line("%s", name)
	}
	s.line(")\n\n// Arguments of states.\nconst (\n%s Argument = iota", argumentNames[0])
	for _, name := range argumentNames[1:] {
		s.line("%s", name)
	}
	s.line(")\n\n// Versions are all versions, from 1 on.\nvar Versions = []Version{")
	for _, v := range Versions {
		s.line("{%d, %q, %d},", v.Number, v.Release, v.Minor())
	}
	s.line("}\n")
	s.line("// Presets are the names of the presets, each of which holds what the ones before it do.")
	s.line("var Presets = %#v", Presets)
	s.line("\nvar presetMasks = map[string]uint32{")
	for i, name := range Presets {
		mask := 0
		for j, e := range Events {
			if slices.Index(Presets, e.Preset) <= i {
				mask |= 1 << j
			}
		}
		s.line("%q: %#x,", name, mask)
	}
	s.line("}\n\n// Names are the names of all event types in the order of their numbers.\nvar Names = [...]string{")
	var names []string
	for _, e := range Events {
		names = append(names, fmt.Sprintf("%q,", e.Name))
	}
	s.wrap("\t", names)
	s.line("}\n\n// Events are the event types in the order of their numbers: their bits in the mask and in a " +
		"descriptor's type.\nvar Events = []Event{")
	for i := range Events {
		e := &Events[i]
		var members verbatim
		for j := range e.Members {
			members += verbatim("\n" + runtimeMember(&e.Members[j]) + ",")
		}
		if members != "" {
			members = "[]Member{" + members + "\n}"
		}
		s.line("%s,", literal("Name", e.Name, "Ranked", e.Ranked, "Depth", e.Depth, "Since", e.Since,
			"Unsure", e.Unsure, "Members", members))
	}
	s.line("}\n\n// States are the states in the order of their numbers.\nvar States = []State{")
	for _, state := range States {
		s.line("{%q, %s},", state.Name, argumentNames[state.Argument])
	}
	s.line("}")
}

// runtimeMember is the literal of a member.
func runtimeMember(m *Member) string {
	return literal("Name", m.Name, "Kind", verbatim(kindNames[m.Kind]), "Go", m.Go, "Flag", m.Flag, "Since", m.Since(),
		"Until", m.until(), "Trusted", m.Trusted, "Inferred", m.Before != "")
}

// verbatim is a value as Go's source has it.
type verbatim string

// GoString returns the source.
func (v verbatim) GoString() string { return string(v) }

// literal is a composite literal of pairs of a field's name and its value, without the fields that are zero.
func literal(pairs ...any) string {
	var fields []string
	for i := 0; i < len(pairs); i += 2 {
		if !reflect.ValueOf(pairs[i+1]).IsZero() {
			fields = append(fields, fmt.Sprintf("%s: %#v", pairs[i], pairs[i+1]))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// recordLayouts makes the table by which plugin/shm decodes and encodes records of kind START.
func recordLayouts(s *source) {
	s.line("\n// starts describes the records of kind START by event type.\nvar starts = [TypeCount]recordLayout{")
	for i := range Events {
		fields, units := Events[i].Record()
		name, _ := RecordName(i)
		if len(fields) == 0 {
			s.line("Event%s: {%q, %d, nil},", Events[i].Name, name, units)
			continue
		}
		s.line("Event%s: {%q, %d, []field{", Events[i].Name, name, units)
		for _, f := range fields {
			width := map[int]string{1: "octet", 4: "word", 8: "wide"}[f.Size]
			if f.Member.Kind.Text() {
				width = "text"
			}
			s.line("{%q, %d, %s, unsafe.Offsetof(rec.%s)},", f.Name, f.Offset, width, f.Go)
		}
		s.line("}},")
	}
	s.line("}")
}
