// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2/internal/gen/schema"
)

// genEventMethods writes one method of EventWriter per event record.
//
// Sizes passed to begin are libotf2's estimates (every field at its maximum), because they decide where a chunk
// ends and which form the length field has.
func genEventMethods(s *source) {
	s.line(`import "fmt"`)
	s.line("")
	for _, r := range schema.Events() {
		comment(s, fmt.Sprintf("%s writes an event that %s. Since OTF2 %s; errors are those of [EventWriter.Write].",
			r.Name, schema.EventMeanings[r.Name], r.Since))
		genEventMethod(s, r)
	}
}

// genEventMethod writes the method for one event record.
func genEventMethod(s *source, r schema.Record) {
	before, repeated, after := split(r)
	if len(after) > 0 {
		panic("gen: event " + r.Name + " has fields after its repeated part")
	}
	fixed := before
	if len(repeated) > 0 {
		fixed = before[:len(before)-1]
	}
	s.line("func (w *EventWriter) %s(t Timestamp, a *AttributeList%s) error {", r.Name, parameters(fixed, repeated))
	if len(repeated) > 0 {
		genRepeatedEvent(s, r, fixed, before[len(before)-1], repeated)
	} else {
		genFixedEvent(s, r, fixed)
	}
	s.line("}")
	s.line("")
}

// parameters lists the parameters for a record's fields; repeated ones are slices.
func parameters(fixed, repeated []schema.Field) string {
	var b strings.Builder
	for _, f := range fixed {
		fmt.Fprintf(&b, ", %s %s", param(f.Name), goType(f))
	}
	for _, f := range repeated {
		fmt.Fprintf(&b, ", %s []%s", param(f.Name), goType(f))
	}
	return b.String()
}

// frequent are the events of which traces have many: their methods encode the fields themselves. Those of the others
// pass them to the writer that goes by the table, which takes about three times as long (some 50 ns).
var frequent = []string{
	"Enter", "Leave", "MpiCollectiveBegin", "MpiCollectiveEnd", "NonBlockingCollectiveRequest",
	"NonBlockingCollectiveComplete",
	"MpiIsend", "MpiIsendComplete", "MpiIrecvRequest", "MpiIrecv", "MpiSend", "MpiRecv", "RmaPut",
	"RmaOpCompleteNonBlocking",
}

// genByTable writes the body of a method that passes its fields to EventWriter.write.
func genByTable(s *source, r schema.Record, fields []schema.Field) {
	args := make([]string, len(fields))
	for i, f := range fields {
		args[i] = "uint64(" + param(f.Name) + ")"
		if goType(f) == "uint64" {
			args[i] = param(f.Name)
		}
	}
	list := "nil"
	if len(args) > 0 {
		list = "[]uint64{" + strings.Join(args, ", ") + "}"
	}
	s.line("return w.write(&eventTable[Event%s], uint8(Event%[1]s), t, a, %s)", r.Name, list)
}

func genFixedEvent(s *source, r schema.Record, fields []schema.Field) {
	if !slices.Contains(frequent, r.Name) {
		genByTable(s, r, fields)
		return
	}
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
	s.line("p := w.pos")
	s.line("if a == nil && t > w.last && p < w.high-%d {", estimate+stampSize)
	s.line("p = w.stamp(p, t)")
	s.line("} else {")
	s.line("var err error")
	s.line("if p, err = w.beginRecord(t, a, %d); err != nil { return err }", estimate)
	s.line("}")
	s.line("b := w.buf[p:p+%d]", estimate+wordSize)
	s.line("b[0] = %d", r.ID)
	next := "2"
	switch {
	case r.NoLength:
		next = "1"
	case len(fields) == 0:
		s.line("b[1] = 0")
	}
	for i, f := range fields {
		s.line("%s", putField(f, param(f.Name), i == 0, next))
		next = "n"
	}
	if !r.NoLength && len(fields) > 0 {
		s.line("b[1] = byte(n - 2)")
	}
	switch r.Name {
	case "Enter":
		s.line("if w.nesting != nil { return w.endEnter(p+n, region) }")
	case "Leave":
		s.line("if w.nesting != nil { return w.endLeave(p+n) }")
	}
	s.line("return w.endRecord(p + %s)", next)
}

// Sizes of a time stamp record, and of the word that encoders write for a shorter number.
const (
	stampSize = 9
	wordSize  = 8
)

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
		s.line("if len(%s) != len(%s) { return fmt.Errorf(\"otf2: %s: %%d %s for %%d %s: %%w\", len(%[1]s), "+
			"len(%[2]s), ErrInvalid) }",
			param(f.Name), first, r.Name, param(f.Name), first)
	}
	if count.Encoding == "u8" {
		s.line("if len(%s) > 255 { return fmt.Errorf(\"otf2: %s: %%d %[1]s, at most 255: %%w\", len(%[1]s), "+
			"ErrInvalid) }", first, r.Name)
	}
	s.line("size := %d + %d*len(%s)", size, each, first)
	s.line("p, err := w.beginRecord(t, a, 1+lengthSize(size)+size)")
	s.line("if err != nil { return err }")
	s.line("b := w.buf[p:]")
	s.line("b[0] = %d", r.ID)
	s.line("start := 1 + lengthSize(size)")
	s.line("n := start")
	for _, f := range fixed {
		s.line("%s", putField(f, param(f.Name), false, "n"))
	}
	s.line("%s", putField(count, "len("+first+")", false, "n"))
	s.line("for i := range %s {", first)
	for _, f := range repeated {
		s.line("%s", putField(f, param(f.Name)+"[i]", false, "n"))
	}
	s.line("}")
	s.line("putLength(b, start, n, size)")
	s.line("return w.endRecord(p + n)")
}

// putField is the statement that encodes value at b[at] and sets n to the position behind it; first says that n is
// to be declared.
func putField(f schema.Field, value string, first bool, at string) string {
	assign := "="
	if first {
		assign = ":="
	}
	put, typ := "", ""
	switch f.Encoding {
	case "u8":
		if !first {
			return fmt.Sprintf("b[%s] = byte(%s); n++", at, value)
		}
		return fmt.Sprintf("b[%s] = byte(%s); n := %s + 1", at, value, at)
	case "c32":
		put, typ = "putC32", "uint32"
	case "c64":
		put, typ = "putC64", "uint64"
	case "s64":
		put, typ = "putS64", "int64"
	case "f64":
		put, typ = "putF64", "uint64"
	default:
		panic("gen: no event field has encoding " + f.Encoding)
	}
	if typ != goType(f) || strings.HasPrefix(value, "len(") {
		value = typ + "(" + value + ")"
	}
	return fmt.Sprintf("n %s %s(b, %s, %s)", assign, put, at, value)
}
