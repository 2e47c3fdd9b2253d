// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Regions of a row nest in the archives that are made here: where one is left before another that began in it, the end
// of that is lost, and it ended with the one around it. On rows that other tools record, regions overlap, as kernels on
// a queue do: Enter A, Enter B, Leave A, Leave B. There a Leave ends the region that it names, and others that are open
// stay so. Here is the one rule for which that is.

// NewestOpen gives the place, among the open regions of a row, the newest last, of the one that a Leave ends: the
// newest of that region. It is −1 where none is open.
func NewestOpen[T any](open []T, left otf2.RegionRef, region func(*T) otf2.RegionRef) int {
	for i := len(open) - 1; i >= 0; i-- {
		if region(&open[i]) == left {
			return i
		}
	}
	return -1
}

// IndexOpen gives the place of a region that ends among what somebody keeps of the open ones, the newest last; −1 where
// it is not among them. entered gives Region.Entered of each.
func IndexOpen[T any](open []T, ended *Region, entered func(*T) uint64) int {
	for i := len(open) - 1; i >= 0; i-- {
		if entered(&open[i]) == ended.Entered {
			return i
		}
	}
	return -1
}
