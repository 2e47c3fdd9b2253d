// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"encoding/json"
	"math"

	"github.com/nccl-otf2/nccl-otf2/regions"
)

// SizeClass is one of regions.SizeClasses.
type SizeClass regions.SizeClass

func sizeClassOf(size uint64) *SizeClass {
	return (*SizeClass)(&regions.SizeClasses[regions.SizeClassOf(size)])
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
