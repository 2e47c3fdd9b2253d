// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"ncclotf2/otf2"
	"ncclotf2/regions"
)

// shares lists the bytes per rank that fit a member's sizes in a collective: none if the sizes are not those of such
// an operation, two if it may have been in place or not.
func shares(c *regions.Collective, sent, received, ranks uint64, root bool) []uint64 {
	share := sent
	switch c.Role {
	case otf2.RegionRoleCollOne2All:
		share = received
	case otf2.RegionRoleCollAll2All:
		share = sent / ranks
	}
	var fits []uint64
	if s, r := c.Bytes(share, ranks, root); s == sent && r == received {
		fits = append(fits, share)
	}
	if others := ranks - 1; c.InPlace && others > 0 && sent == received && sent%others == 0 && (sent > 0 || len(fits) == 0) {
		fits = append(fits, sent/others)
	}
	return fits
}

// functionName names an operation as NCCL does, others as OTF2 does.
func functionName(op otf2.CollectiveOp) string {
	if c := regions.CollectiveOf(op); c != nil {
		return c.Name
	}
	return op.String()
}
