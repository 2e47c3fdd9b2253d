// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"ncclotf2/otf2/internal/schema"
)

// genEventMethods writes one method of EventWriter per event record.
//
// Sizes passed to begin are libotf2's estimates (every field at its maximum), because they decide where a chunk
// ends and which form the length field has.
func genEventMethods(s *source) {
	s.line(`import "fmt"`)
	s.line("")
	for _, r := range schema.Events {
		before, repeated, after := split(r)
		if len(after) > 0 {
			panic("gen: event " + r.Name + " has fields after its repeated part")
		}
		fixed := before
		if len(repeated) > 0 {
			fixed = before[:len(before)-1]
		}
		var params strings.Builder
		for _, f := range fixed {
			fmt.Fprintf(&params, ", %s %s", param(f.Name), goType(f))
		}
		for _, f := range repeated {
			fmt.Fprintf(&params, ", %s []%s", param(f.Name), goType(f))
		}
		comment(s, fmt.Sprintf("%s writes an event that %s. Since OTF2 %s; errors are those of [EventWriter.Write].", r.Name, schema.EventMeanings[r.Name], r.Since))
		s.line("func (w *EventWriter) %s(t Timestamp, a *AttributeList%s) error {", r.Name, params.String())
		if len(repeated) > 0 {
			genRepeatedEvent(s, r, fixed, before[len(before)-1], repeated)
		} else {
			genFixedEvent(s, r, fixed)
		}
		s.line("}")
		s.line("")
	}
}

func genFixedEvent(s *source, r schema.Record, fields []schema.Field) {
	size := 0
	for _, f := range fields {
		size += maxSize(f)
	}
	if r.Name == "Leave" {
		s.line("if w.nesting != nil { if err := w.nesting.checkLeave(t, region); err != nil { return err } }")
	}
	estimate := 1 + size
	if !r.NoLength {
		estimate++
	}
	s.line("if err := w.begin(t, a, %d); err != nil { return err }", estimate)
	s.line("b, p := w.buf, w.pos")
	s.line("b[p] = %d", r.ID)
	switch {
	case r.NoLength:
		s.line("p++")
	case len(fields) == 0:
		s.line("b[p+1] = 0")
		s.line("p += 2")
	default:
		s.line("start := p + 2")
		s.line("p = start")
	}
	for _, f := range fields {
		s.line("%s", putField(f, param(f.Name)))
	}
	if !r.NoLength && len(fields) > 0 {
		s.line("b[start-1] = byte(p - start)")
	}
	switch r.Name {
	case "Enter":
		s.line("if w.nesting != nil { w.nesting.enter(region) }")
	case "Leave":
		s.line("if w.nesting != nil { w.nesting.leave() }")
	}
	s.line("return w.end(p)")
}

func genRepeatedEvent(s *source, r schema.Record, fixed []schema.Field, count schema.Field, repeated []schema.Field) {
	size, each := maxSize(count), 0
	for _, f := range fixed {
		size += maxSize(f)
	}
	for _, f := range repeated {
		each += maxSize(f)
	}
	first := param(repeated[0].Name)
	for _, f := range repeated[1:] {
		s.line("if len(%s) != len(%s) { return fmt.Errorf(\"otf2: %s: %%d %s for %%d %s: %%w\", len(%[1]s), len(%[2]s), ErrInvalid) }",
			param(f.Name), first, r.Name, param(f.Name), first)
	}
	if count.Encoding == "u8" {
		s.line("if len(%s) > 255 { return fmt.Errorf(\"otf2: %s: %%d %[1]s, at most 255: %%w\", len(%[1]s), ErrInvalid) }", first, r.Name)
	}
	s.line("size := %d + %d*len(%s)", size, each, first)
	s.line("if err := w.begin(t, a, 1+lengthSize(size)+size); err != nil { return err }")
	s.line("b, p := w.buf, w.pos")
	s.line("b[p] = %d", r.ID)
	s.line("start := p + 1 + lengthSize(size)")
	s.line("p = start")
	for _, f := range fixed {
		s.line("%s", putField(f, param(f.Name)))
	}
	s.line("%s", putField(count, "len("+first+")"))
	s.line("for i := range %s {", first)
	for _, f := range repeated {
		s.line("%s", putField(f, param(f.Name)+"[i]"))
	}
	s.line("}")
	s.line("putLength(b, start, p, size)")
	s.line("return w.end(p)")
}

// putField is the statement that encodes value at b[p] and moves p.
func putField(f schema.Field, value string) string {
	switch f.Encoding {
	case "u8":
		return fmt.Sprintf("b[p] = byte(%s); p++", value)
	case "c32":
		return fmt.Sprintf("p = putC32(b, p, uint32(%s))", value)
	case "c64":
		return fmt.Sprintf("p = putC64(b, p, uint64(%s))", value)
	case "s64":
		return fmt.Sprintf("p = putS64(b, p, int64(%s))", value)
	case "f64":
		return fmt.Sprintf("p = putF64(b, p, uint64(%s))", value)
	}
	panic("gen: no event field has encoding " + f.Encoding)
}
