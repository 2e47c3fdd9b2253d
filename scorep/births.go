// SPDX-License-Identifier: Apache-2.0

package scorep

import "github.com/nccl-otf2/nccl-otf2/internal/facts/property"

// maxBirths limits how many births are listed in properties. Definitions of communicators name all parents.
const maxBirths = 4096

// describeBirths adds properties that state from which parent, and how, each communicator was created.
func (r *roster) describeBirths(ps *properties) {
	births := uint64(0)
	for _, in := range r.instances {
		if in.Parent == nil {
			continue
		}
		if births < maxBirths {
			b := property.Birth{Comm: in.Ref, Parent: in.Parent.Ref, Split: in.Birth.Count, Color: in.Birth.Color}
			ps.add(property.Parents.Nth(int(births)), b.String())
		}
		births++
	}
	ps.positive(property.Parents, births)
}
