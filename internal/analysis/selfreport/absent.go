// SPDX-License-Identifier: Apache-2.0

package selfreport

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// AbsentGroups returns how many location groups represent processes without data. missing is the number of such
// processes in the archive; an archive that does not mark the groups has one for each process.
func AbsentGroups(defs *otf2.Definitions, missing uint64) uint64 {
	if n := len(property.AbsentRanks(defs)); n > 0 {
		return uint64(n)
	}
	return missing
}
