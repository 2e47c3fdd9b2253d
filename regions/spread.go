// SPDX-License-Identifier: Apache-2.0

package regions

import "math/bits"

// spread counts values by size, eight classes to each doubling.
type spread struct {
	n      uint64
	most   uint64
	counts map[int]uint64
}

// class is the place of a value among classes of equal relative width.
func class(v uint64) int {
	if v < 8 {
		return int(v)
	}
	e := bits.Len64(v) - 4
	return e<<3 + int(v>>e)
}

// classEnd is the greatest value of a class.
func classEnd(c int) uint64 {
	if c < 16 {
		return uint64(c)
	}
	e := c>>3 - 1
	return uint64(c&7+8+1)<<e - 1
}

func (s *spread) add(v uint64) {
	if s.counts == nil {
		s.counts = make(map[int]uint64)
	}
	s.n++
	s.most = max(s.most, v)
	s.counts[class(v)]++
}
