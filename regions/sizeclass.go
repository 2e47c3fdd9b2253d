// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"math"
)

// Classes of sizes that operations are summed up in.

// SizeClass is a range of sizes: From ≤ size < To, in bytes.
type SizeClass struct{ From, To uint64 }

// SizeClasses are those that operations are summed up in: what NCCL chooses algorithms and protocols by changes between
// some KiB and some MiB.
var SizeClasses = []SizeClass{
	{0, 1 << 10}, {1 << 10, 16 << 10}, {16 << 10, 256 << 10}, {256 << 10, 4 << 20}, {4 << 20, 64 << 20}, {64 << 20, 1 << 30}, {1 << 30, math.MaxUint64},
}

// SizeClassOf is the index of the class of a size.
func SizeClassOf(size uint64) int {
	i := 0
	for i < len(SizeClasses)-1 && size >= SizeClasses[i].To {
		i++
	}
	return i
}
