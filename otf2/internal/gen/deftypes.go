// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2/internal/gen/schema"
)

// structName is the Go type of a definition; two records share their name with an enumeration.
func structName(r schema.Record) string {
	switch r.Name {
	case "Paradigm", "ParadigmProperty":
		return r.Name + "Def"
	}
	return r.Name
}

// sliceName is the field of Definitions that holds the records of a kind.
func sliceName(r schema.Record) string {
	switch n := r.Name; {
	case strings.HasSuffix(n, "y") && n != "Callsite":
		return n[:len(n)-1] + "ies"
	case strings.HasSuffix(n, "ss"):
		return n + "es"
	default:
		return n + "s"
	}
}

// shortNames are the Go names of definition fields where OTF2's name repeats the record's or is unwieldy.
var shortNames = map[string]string{
	"string": "text", "type": "typ",
	"timerResolution": "resolution", "globalOffset": "offset", "traceLength": "length", "realtimeTimestamp": "realtime",
	"paradigmClass": "class", "className": "class", "ioParadigmClass": "class",
	"systemTreeNode": "node", "systemTreeDomain": "domain",
	"locationGroupType": "typ", "creatingLocationGroup": "creator",
	"locationType": "typ", "numberOfEvents": "events",
	"canonicalName": "canonicalName", "regionRole": "role", "regionFlags": "flags", "beginLineNumber": "beginLine",
	"endLineNumber": "endLine",
	"groupType":     "typ", "groupFlags": "flags",
	"metricType": "typ", "metricMode": "mode", "metricMembers": "members", "metricOccurrence": "occurrence",
	"parameterType": "typ", "cartPeriodicity": "periodicity", "interruptGeneratorMode": "mode",
	"ioHandleFlags": "flags", "ioParadigmFlags": "flags", "commonCommunicator": "common",
}

// defParam is the parameter name of a definition's field.
func defParam(r schema.Record, f schema.Field) string {
	if r.Name == "Location" && f.Name == "locationGroup" {
		return "group"
	}
	if s, ok := shortNames[f.Name]; ok {
		return s
	}
	return f.Name
}

// fieldName is the struct field of a definition's field.
func fieldName(r schema.Record, f schema.Field) string {
	name := defParam(r, f)
	if name == "typ" {
		name = "type"
	}
	return exported(name)
}

// genDefTypes writes the typed definitions, the Definitions struct and the decoder of each.
func genDefTypes(s *source) {
	defs := globalDefs()
	for _, r := range defs {
		comment(s, fmt.Sprintf("%s is %s. Since OTF2 %s.", structName(r), schema.DefinitionMeanings[r.Name], r.Since))
		s.line("type %s struct {", structName(r))
		for _, f := range defArguments(r) {
			typ := goType(f)
			if f.Repeated {
				typ = "[]" + typ
			}
			s.line("%s %s", fieldName(r, f), typ)
		}
		s.line("}")
		s.line("")
	}
	s.line("// Definitions holds the global definitions of an archive, each kind in file order. It is not modified " +
		"after")
	s.line("// [Open] and may be read by several goroutines.")
	s.line("type Definitions struct {")
	for _, r := range defs {
		if r.Name == "ClockProperties" {
			s.line("Clock ClockProperties // zero Resolution if the file has none")
			continue
		}
		s.line("%s []%s", sliceName(r), structName(r))
	}
	s.line("")
	s.line("// Other holds the records of kinds this package does not know, in file order.")
	s.line("Other []Record")
	s.line("")
	s.line("// Order gives the kind of every record in file order; the n-th occurrence of a kind is the n-th element " +
		"of")
	s.line("// its slice. Unknown kinds occur with their id and stand in Other.")
	s.line("Order []DefKind")
	s.line("")
	s.line("index definitionIndex")
	s.line("}")
	s.line("")
	s.line("// add decodes one record's fields from d and appends it. It reports whether the kind is known.")
	s.line("func (defs *Definitions) add(kind DefKind, d *fieldDecoder) bool {")
	s.line("switch kind {")
	for _, r := range defs {
		s.line("case Def%s:", r.Name)
		s.line("var v %s", structName(r))
		genDecode(s, r)
		if r.Name == "ClockProperties" {
			s.line("if d.err == nil { defs.Clock = v }")
			continue
		}
		s.line("if d.err == nil { defs.%s = append(defs.%[1]s, v) }", sliceName(r))
	}
	s.line("default:")
	s.line("return false")
	s.line("}")
	s.line("return true")
	s.line("}")
	s.line("")
	genIndex(s, defs)
}

// genIndex writes the lookups by id.
func genIndex(s *source, defs []schema.Record) {
	key := func(r schema.Record) (schema.Field, bool) {
		f := r.Fields[0]
		return f, f.Name == "self" || r.Name == "Paradigm"
	}
	s.line("// definitionIndex finds definitions whose ids are not simply 0, 1, 2, ….")
	s.line("type definitionIndex struct {")
	for _, r := range defs {
		if f, ok := key(r); ok {
			s.line("%s map[%s]int", r.Name, f.Type)
		}
	}
	s.line("}")
	s.line("")
	s.line("// finish builds the index.")
	s.line("func (defs *Definitions) finish() {")
	for _, r := range defs {
		if f, ok := key(r); ok {
			s.line("defs.index.%s = indexOf(len(defs.%s), func(i int) %s { return defs.%[2]s[i].%[4]s })", r.Name,
				sliceName(r), f.Type, fieldName(r, f))
		}
	}
	s.line("}")
	s.line("")
	for _, r := range defs {
		f, ok := key(r)
		if !ok {
			continue
		}
		method := structName(r)
		if method == "String" {
			method = "StringDef" // String returns the text
		}
		s.line("// %s returns the definition named ref, nil if there is none.", method)
		s.line("func (defs *Definitions) %s(ref %s) *%s {", method, f.Type, structName(r))
		s.line("if i, ok := find(defs.index.%s, ref, len(defs.%s)); ok { return &defs.%[2]s[i] }", r.Name, sliceName(r))
		s.line("return nil")
		s.line("}")
		s.line("")
	}
}

// appended are the values of trailing fields that a file from an older version lacks, where that is not zero.
var appended = map[string]string{
	"ClockProperties.realtimeTimestamp":   "1<<64 - 1",
	"Attribute.description":               "UndefinedString",
	"LocationGroup.creatingLocationGroup": "UndefinedLocationGroup",
	"RmaWin.flags":                        "RmaWinFlagCreateDestroyEvents",
	"Region.canonicalName":                "v.Name",
	"Region.regionRole":                   "roleOfLegacyRegion(legacyRegionType)",
	"Region.paradigm":                     "paradigmOfLegacyRegion(legacyRegionType)",
	"Region.regionFlags":                  "flagsOfLegacyRegion(legacyRegionType)",
	"Group.groupType":                     "typeOfLegacyGroup(legacyGroupTypePre12)",
	"Group.paradigm":                      "paradigmOfLegacyGroup(legacyGroupTypePre12)",
	"SystemTreeNodeProperty.type":         "TypeString",
	"LocationGroupProperty.type":          "TypeString",
	"LocationProperty.type":               "TypeString",
	"SystemTreeNodeProperty.value":        "Value(legacyStringValue)",
	"LocationGroupProperty.value":         "Value(legacyStringValue)",
	"LocationProperty.value":              "Value(legacyStringValue)",
}

func genDecode(s *source, r schema.Record) {
	before, repeated, _ := split(r)
	count := ""
	if len(repeated) > 0 {
		count = before[len(before)-1].Name
	}
	open := 0
	typeField := ""
	done := false
	legacies := map[string]bool{}
	for _, f := range r.Fields {
		if f.Legacy {
			legacies[f.Name] = true
		}
	}
	for _, f := range r.Fields {
		switch {
		case f.Name == count:
			s.line("n := count(d, %s, %d)", readField(f, ""), minSize(repeated))
			for _, g := range repeated {
				s.line("v.%s = make([]%s, n)", fieldName(r, g), goType(g))
			}
			continue
		case f.Repeated && !done:
			done = true
			s.line("for i := range n {")
			for _, g := range repeated {
				if g.Type == "Type" {
					typeField = "v." + fieldName(r, g) + "[i]"
				}
				s.line("v.%s[i] = %s", fieldName(r, g), readField(g, typeField))
			}
			s.line("}")
			continue
		case f.Repeated:
			continue
		case f.Legacy:
			s.line("legacy%s := %s", exported(f.Name), readField(f, ""))
			continue
		}
		if f.Name == "type" {
			typeField = "v." + fieldName(r, f)
		}
		if f.Since != "" {
			def := appended[r.Name+"."+f.Name]
			if def != "" {
				s.line("v.%s = %s", fieldName(r, f), def)
			}
			s.line("if d.hasField() {")
			open++
		}
		s.line("v.%s = %s", fieldName(r, f), readField(f, typeField))
		if f.Since != "" {
			s.line("}")
			open--
		}
	}
}

// minSize is the least number of bytes of one repetition, the bound for a count read from a file.
func minSize(fields []schema.Field) int { return len(fields) }

// readField is the expression that decodes a field.
func readField(f schema.Field, typeField string) string {
	conv := func(call string) string {
		if f.Type != "" && f.Type != "CollectiveRoot" && !f.Legacy {
			return f.Type + "(" + call + ")"
		}
		return call
	}
	switch f.Encoding {
	case "u8":
		return conv("d.u8()")
	case "c32":
		return conv("d.c32()")
	case "c64":
		return conv("d.c64()")
	case "s64":
		return conv("d.s64()")
	case "str":
		return "d.str()"
	case "val":
		return "d.value(" + typeField + ")"
	}
	panic("gen: no definition field has encoding " + f.Encoding)
}
