// SPDX-License-Identifier: Apache-2.0

package scorep

import "github.com/nccl-otf2/nccl-otf2/internal/facts"

// maxBirths bounds the list of them in properties; the parents themselves are in the definitions of communicators.
const maxBirths = 4096

// describeBirths returns how communicators came from their parents.
func (r *roster) describeBirths(ps *properties) {
	births := uint64(0)
	for _, in := range r.instances {
		if in.Parent == nil {
			continue
		}
		if births < maxBirths {
			b := facts.Birth{Comm: in.Ref, Parent: in.Parent.Ref, Split: in.Birth.Count, Color: in.Birth.Color}
			ps.add(facts.PropParents.Nth(int(births)), b.String())
		}
		births++
	}
	ps.positive(facts.PropParents, births)
}
