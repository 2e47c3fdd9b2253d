// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/otf2/internal/schema"
)

// genEnums writes one type per enumeration, its constants, its table of names and String.
func genEnums(s *source) {
	for _, e := range schema.Enums {
		typed := e.Name != "CollectiveRoot" // ranks share the value space, so there is no type
		typeName := e.Name
		if typed {
			s.line("// %s is OTF2's enumeration of that name, uint%d on disk.", e.Name, e.Bits)
			if e.Flags {
				s.line("// Its values are bits that may be combined.")
			}
			s.line("type %s uint%d", e.Name, e.Bits)
			s.line("")
			s.line("// Values of %s.", e.Name)
		} else {
			s.line("// Values of a root field that are no rank.")
			typeName = fmt.Sprintf("uint%d", e.Bits)
		}
		s.line("const (")
		for _, v := range e.Values {
			since := ""
			if v.Since != "" {
				since = " // since OTF2 " + v.Since
			}
			s.line("%s%s %s = %#x%s", e.Prefix, goName(v.Name), typeName, v.Value, since)
		}
		s.line(")")
		s.line("")
		if typed {
			s.line("// String returns OTF2's short name of the value.")
			s.line("func (v %s) String() string { return enum%s.text(uint32(v)) }", e.Name, e.Name)
			s.line("")
		}
		s.line("var enum%s = &enumInfo{name: %q, flags: %t, values: []enumValue{", e.Name, e.Name, e.Flags)
		for _, v := range e.Values {
			s.line("{%#x, %q, %s},", v.Value, v.Name, version(v.Since))
		}
		s.line("}}")
		s.line("")
	}
	s.line("// enumTable finds an enumeration by the type name that a Field gives.")
	s.line("var enumTable = map[string]*enumInfo{")
	for _, e := range schema.Enums {
		s.line("%q: enum%s,", e.Name, e.Name)
	}
	s.line("}")
}

// version renders "3.1" as the Version constant 0x0301 and an empty one as 0.
func version(text string) string {
	if text == "" {
		return "0"
	}
	var major, minor int
	if _, err := fmt.Sscanf(text, "%d.%d", &major, &minor); err != nil {
		panic(fmt.Sprintf("gen: version %q: %v", text, err))
	}
	return fmt.Sprintf("%#04x", major<<8|minor)
}
