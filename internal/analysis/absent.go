// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// AbsentGroups is how many location groups stand for processes without data, of which the archive says how many there
// are. Archives that do not mark them have a group for each.
func AbsentGroups(defs *otf2.Definitions, missing uint64) uint64 {
	if n := len(facts.AbsentRanks(defs)); n > 0 {
		return uint64(n)
	}
	return missing
}
