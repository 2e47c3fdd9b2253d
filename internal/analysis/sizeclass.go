// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"encoding/json"

	"github.com/nccl-otf2/nccl-otf2/regions/sizeclass"
)

// SizeClass is one of sizeclass.All.
type SizeClass sizeclass.Class

// SizeClassOf returns the class of a size in bytes.
func SizeClassOf(size uint64) *SizeClass {
	return (*SizeClass)(&sizeclass.All[sizeclass.IndexOf(size)])
}

// String returns the class as text for people.
func (c *SizeClass) String() string { return sizeclass.Class(*c).String() }

// MarshalJSON writes String's text.
func (c *SizeClass) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// Compare orders classes by size. It returns 0 if either is nil.
func (c *SizeClass) Compare(o *SizeClass) int {
	if c == nil || o == nil {
		return 0
	}
	return cmp.Compare(c.From, o.From)
}
