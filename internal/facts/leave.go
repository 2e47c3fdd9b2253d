// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Regions nest in archives written by this project: if a region ends before an inner one, the end of the inner one was
// lost, and it ended with the outer one. On rows of other tools regions may overlap, as kernels on a queue do: Enter A,
// Enter B, Leave A, Leave B. There a Leave ends the region that it names, and the others stay open. NewestOpen and
// IndexOpen are the one home of this rule.

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

// IndexOpen returns the index of a region that ends in a caller's list of open ones (newest last), −1 if it is not
// there. entered returns the Region.Entered of an element.
func IndexOpen[T any](open []T, ended *Region, entered func(*T) uint64) int {
	for i := len(open) - 1; i >= 0; i-- {
		if entered(&open[i]) == ended.Entered {
			return i
		}
	}
	return -1
}
