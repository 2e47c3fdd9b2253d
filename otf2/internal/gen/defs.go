// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2/internal/gen/schema"
)

// globalDefs returns all records of a global definition file.
func globalDefs() []schema.Record {
	return append(append([]schema.Record(nil), schema.GlobalOnly()...), schema.Definitions()...)
}

// argumentOrder names the records whose writer takes its arguments in libotf2's order, which differs from the
// order on disk.
var argumentOrder = map[string][]string{
	"Region": {"self", "name", "canonicalName", "description", "regionRole", "paradigm", "regionFlags", "sourceFile",
		"beginLineNumber", "endLineNumber"},
	"Group": {"self", "name", "groupType", "paradigm", "groupFlags", "members"},
}

// defArguments returns the fields that a caller gives, in argument order: no legacy field, no count of a
// repeated part.
func defArguments(r schema.Record) []schema.Field {
	before, repeated, _ := split(r)
	count := ""
	if len(repeated) > 0 {
		count = before[len(before)-1].Name
	}
	var fields []schema.Field
	for _, f := range r.Fields {
		if !f.Legacy && f.Name != count {
			fields = append(fields, f)
		}
	}
	order, ok := argumentOrder[r.Name]
	if !ok {
		return fields
	}
	if len(order) != len(fields) {
		panic("gen: argument order of " + r.Name + " does not name its fields")
	}
	byName := map[string]schema.Field{}
	for _, f := range fields {
		byName[f.Name] = f
	}
	fields = fields[:0]
	for _, name := range order {
		f, ok := byName[name]
		if !ok {
			panic("gen: argument order of " + r.Name + ": no field " + name)
		}
		fields = append(fields, f)
	}
	return fields
}

// genDefMethods writes one method of GlobalDefWriter per definition record.
func genDefMethods(s *source) {
	s.line(`import "fmt"`)
	s.line("")
	for _, r := range globalDefs() {
		before, repeated, _ := split(r)
		var params []string
		for _, f := range defArguments(r) {
			typ := goType(f)
			if f.Repeated {
				typ = "[]" + typ
			}
			params = append(params, defParam(r, f)+" "+typ)
		}
		comment(s, fmt.Sprintf("%s defines %s. Since OTF2 %s; errors are those of [GlobalDefWriter.Write].", r.Name,
			schema.DefinitionMeanings[r.Name], r.Since))
		s.line("func (w *GlobalDefWriter) %s(%s) error {", r.Name, strings.Join(params, ", "))
		count := ""
		if len(repeated) > 0 {
			c := before[len(before)-1]
			count = c.Name
			first := defParam(r, repeated[0])
			for _, f := range repeated[1:] {
				s.line("if len(%s) != len(%s) { return fmt.Errorf(\"otf2: %s: %%d %s for %%d %s: %%w\", len(%[1]s), "+
					"len(%[2]s), ErrInvalid) }",
					defParam(r, f), first, r.Name, defParam(r, f), first)
			}
			if c.Encoding == "u8" {
				s.line("if len(%s) > 255 { return fmt.Errorf(\"otf2: %s: %%d %[1]s, at most 255: %%w\", len(%[1]s), "+
					"ErrInvalid) }", first, r.Name)
			}
		}
		s.line("b := w.start()")
		if hasValue(r) {
			s.line("slack := 0 // libotf2 counts each value as 9 bytes")
		}
		typeParam := ""
		looping := false
		for _, f := range r.Fields {
			if f.Repeated && !looping {
				s.line("for i := range %s {", defParam(r, f))
				looping = true
			}
			if !f.Repeated && looping {
				s.line("}")
				looping = false
			}
			value := defParam(r, f)
			if f.Repeated {
				value += "[i]"
			}
			switch {
			case f.Legacy:
				value = legacyValue(r, f)
			case f.Name == count:
				value = "len(" + defParam(r, repeated[0]) + ")"
			case f.Type == "Type" && (f.Name == "type" || f.Name == "types"):
				typeParam = value
			}
			if f.Encoding == "val" {
				s.line("{")
				s.line("before := len(b)")
				s.line("b = appendValue(b, %s, %s)", typeParam, value)
				s.line("slack += 9 - (len(b) - before)")
				s.line("}")
				continue
			}
			if f.Encoding == "str" {
				s.line("if err := checkText(%s); err != nil { return err }", value)
			}
			s.line("%s", appendField(f, value))
		}
		if looping {
			s.line("}")
		}
		slack := "0"
		if hasValue(r) {
			slack = "slack"
		}
		s.line("return w.emit(%d, b, %s)", r.ID, slack)
		s.line("}")
		s.line("")
	}
}

// legacyValue is the expression for a superseded field.
func legacyValue(r schema.Record, f schema.Field) string {
	switch f.Name {
	case "stringValue":
		return "legacyString(typ, value)"
	case "groupTypePre12":
		return "legacyGroupType(typ, paradigm, flags)"
	case "regionType":
		return "legacyRegionType(role, paradigm, flags)"
	}
	panic("gen: no legacy value for " + r.Name + "." + f.Name)
}

func hasValue(r schema.Record) bool {
	return slices.ContainsFunc(r.Fields, func(f schema.Field) bool { return f.Encoding == "val" })
}

func appendField(f schema.Field, value string) string {
	switch f.Encoding {
	case "u8":
		return fmt.Sprintf("b = append(b, byte(%s))", value)
	case "c32":
		return fmt.Sprintf("b = appendC32(b, uint32(%s))", value)
	case "c64":
		return fmt.Sprintf("b = appendC64(b, uint64(%s))", value)
	case "s64":
		return fmt.Sprintf("b = appendS64(b, int64(%s))", value)
	case "str":
		return fmt.Sprintf("b = append(append(b, %s...), 0)", value)
	}
	panic("gen: no definition field has encoding " + f.Encoding)
}
