// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"math"

	"ncclotf2/otf2"
)

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

// DatatypeSize is the size in bytes of an element of NCCL's datatype; 0 if the name is not known.
func DatatypeSize(name string) uint64 { return datatypeSize(name) }

// CollectiveSize gives what nccl-tests calls the size of a collective to which each of n ranks contributes (or in which each
// gets) perRank bytes, and its bytes on the bus: size times the factor of doc/PERFORMANCE.md of nccl-tests. ok is false
// for other functions.
func CollectiveSize(name string, perRank uint64, n int) (size uint64, bus float64, ok bool) {
	f := functions[name]
	if f == nil {
		return 0, 0, false
	}
	size = perRank
	if f.totalSize {
		size *= uint64(n)
	}
	return size, float64(size) * f.busFactor(float64(n)), true
}

// CollectiveName is NCCL's name of a collective, "" for operations that NCCL does not have.
func CollectiveName(op otf2.CollectiveOp) string {
	for name, f := range functions {
		if f.op == op {
			return name
		}
	}
	return ""
}
