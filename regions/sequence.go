// SPDX-License-Identifier: Apache-2.0

package regions

import "ncclotf2/shard"

// sequence numbers the operations of one function on one communicator rank and keeps the running
// hash that lets unify compare the members without reading their events.
type sequence struct {
	shard.Sequence
	lasting bool // no digests but the last
}

// FNV-1a, 64 bits.
const (
	hashStart = 14695981039346656037
	hashPrime = 1099511628211
)

// next takes the operation that comes next and returns its ordinal. values is what all members
// (or both ends of a message) must have alike.
func (s *sequence) next(values ...uint64) uint64 {
	if s.Count == 0 {
		s.Last = hashStart
	}
	for _, v := range values {
		for range 8 {
			s.Last = (s.Last ^ v&0xff) * hashPrime
			v >>= 8
		}
	}
	s.Count++
	if s.Count%shard.DigestStep == 0 && !s.lasting && len(s.Holes) == 0 {
		s.Digests = append(s.Digests, s.Last)
	}
	return s.Count - 1
}

func (c *commRank) sequence(key string) *sequence {
	s := c.sequences[key]
	if s == nil {
		s = &sequence{lasting: c.lasting}
		c.sequences[key] = s
	}
	return s
}
