// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"encoding/json"
	"math"
)

// SizeClass is a range of sizes: From ≤ size < To, in bytes.
type SizeClass struct{ From, To uint64 }

// sizeClasses are those of `report --by class`: what NCCL chooses algorithms and protocols by changes between
// some KiB and some MiB.
var sizeClasses = []SizeClass{
	{0, 1 << 10}, {1 << 10, 16 << 10}, {16 << 10, 256 << 10}, {256 << 10, 4 << 20}, {4 << 20, 64 << 20}, {64 << 20, 1 << 30}, {1 << 30, math.MaxUint64},
}

func sizeClassOf(size uint64) *SizeClass {
	i := 0
	for i < len(sizeClasses)-1 && size >= sizeClasses[i].To {
		i++
	}
	return &sizeClasses[i]
}

func (c *SizeClass) String() string {
	switch {
	case c.To == math.MaxUint64:
		return "≥ " + formatBytes(c.From)
	case c.From == 0:
		return "< " + formatBytes(c.To)
	}
	return formatBytes(c.From) + " – " + formatBytes(c.To)
}

// MarshalJSON writes the class as people read it.
func (c *SizeClass) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

func (c *SizeClass) compare(o *SizeClass) int {
	if c == nil || o == nil {
		return 0
	}
	return cmp.Compare(c.From, o.From)
}

// BySizeClass makes the report's operations one row per class of sizes instead of one per size.
func (r *Report) BySizeClass() { r.Operations = r.operations.table(sizeClassOf) }
