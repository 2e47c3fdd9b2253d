// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"encoding/json"
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// SizeClass is one of regions.SizeClasses.
type SizeClass regions.SizeClass

// SizeClassOf is the class of a size in bytes.
func SizeClassOf(size uint64) *SizeClass {
	return (*SizeClass)(&regions.SizeClasses[regions.SizeClassOf(size)])
}

// String is the class as people read it: "< 1 KiB", "1 KiB – 8 KiB".
func (c *SizeClass) String() string {
	switch {
	case c.To == math.MaxUint64:
		return "≥ " + units.Bytes(c.From)
	case c.From == 0:
		return "< " + units.Bytes(c.To)
	}
	return units.Bytes(c.From) + " – " + units.Bytes(c.To)
}

// MarshalJSON writes the class as people read it.
func (c *SizeClass) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// Compare orders classes by size.
func (c *SizeClass) Compare(o *SizeClass) int {
	if c == nil || o == nil {
		return 0
	}
	return cmp.Compare(c.From, o.From)
}
