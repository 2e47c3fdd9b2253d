// SPDX-License-Identifier: Apache-2.0

package effect

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Regions nest in archives written by this project: if a region ends before an inner one, the end of the inner one was
// lost, and it ended with the outer one. On rows of other tools regions may overlap, as kernels on a queue do: Enter A,
// Enter B, Leave A, Leave B. There a Leave ends the region that it names, and the others stay open. NewestOpen and
// facts.IndexOpen are the one home of this rule.

// NewestOpen returns the index of the region that a Leave ends among the open regions of a row (newest last): the
// newest with this id; −1 if none is open.
func NewestOpen[T any](open []T, left otf2.RegionRef, region func(*T) otf2.RegionRef) int {
	for i := len(open) - 1; i >= 0; i-- {
		if region(&open[i]) == left {
			return i
		}
	}
	return -1
}
