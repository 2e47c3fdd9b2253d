// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/otf2/internal/gen/schema"
)

// genEnums writes one type per enumeration, its constants and String.
func genEnums(s *source) {
	for _, e := range schema.Enums() {
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
			s.line("func (v %s) String() string { return enumTable()[%q].text(uint32(v)) }", e.Name, e.Name)
			s.line("")
		}
	}
}
