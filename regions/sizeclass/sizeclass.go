// SPDX-License-Identifier: Apache-2.0

// Package sizeclass groups operations by size: in which class of sizes is an operation?
package sizeclass

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Classes of sizes that operations are summed up in.

// Class is a range of sizes: From ≤ size < To, in bytes.
type Class struct{ From, To uint64 }

// String returns the class as all products name it, in ASCII, as CUBE's tools expect it: "below 1 KiB", "1 KiB to 16
// KiB", "1 GiB and more".
func (c Class) String() string {
	switch {
	case c.To == math.MaxUint64:
		return units.Bytes(c.From) + " and more"
	case c.From == 0:
		return "below " + units.Bytes(c.To)
	}
	return units.Bytes(c.From) + " to " + units.Bytes(c.To)
}

// All are the classes that operations are summed up in. NCCL's choice of algorithms and protocols changes
// between some KiB and some MiB.
var All = []Class{
	{0, 1 << 10}, {1 << 10, 16 << 10}, {16 << 10, 256 << 10}, {256 << 10, 4 << 20}, {4 << 20, 64 << 20},
	{64 << 20, 1 << 30}, {1 << 30, math.MaxUint64},
}

// IndexOf returns the index of the class of a size.
func IndexOf(size uint64) int {
	i := 0
	for i < len(All)-1 && size >= All[i].To {
		i++
	}
	return i
}
