// SPDX-License-Identifier: Apache-2.0

package export

import (
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// attribute is one that the archive defines.
type attribute struct {
	id    otf2.AttributeRef
	found bool
}

func (r *rows) attribute(name string) attribute {
	for _, d := range r.defs.Attributes {
		if r.defs.String(d.Name) == name {
			return attribute{d.Self, true}
		}
	}
	return attribute{}
}

// of gives the attribute's value, the last one if there are several.
func (a attribute) of(all []otf2.AttributeValue) (uint64, bool) {
	if a.found {
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].ID == a.id {
				return all[i].Bits, true
			}
		}
	}
	return 0, false
}
