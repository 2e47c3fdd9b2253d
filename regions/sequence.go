// SPDX-License-Identifier: Apache-2.0

package regions

import "github.com/nccl-otf2/nccl-otf2/experiment"

// Ordinals: the n-th collective of a function on a communicator is the n-th on all its members (docs/architecture.md, "Windows"). NCCL's
// own numbers only check it (docs/nccl-profiler-api.md §4.3).

// sequence numbers the operations of one function on one communicator rank and keeps the running
// hash that lets unify compare the members without reading their events.
type sequence struct {
	experiment.Sequence
	lasting bool // no digests but the last
	blank   bool // operations are missing in it

	told  uint64 // NCCL's number of the collective that is to come; 0 before the first
	graph bool   // some were of graphs: NCCL counts their replays, or does not
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
	if s.blank {
		values = nil
	}
	for _, v := range values {
		for range 8 {
			s.Last = (s.Last ^ v&0xff) * hashPrime
			v >>= 8
		}
	}
	s.Count++
	if s.Count%experiment.DigestStep == 0 && !s.lasting && len(s.Holes) == 0 {
		s.Digests = append(s.Digests, s.Last)
	}
	return s.Count - 1
}

// skip leaves places for operations that were not told. What they were is not known, so digests are 0 from there on.
func (s *sequence) skip(n uint64) {
	s.blank, s.Last = true, 0
	if !s.lasting {
		s.Digests = append(s.Digests, make([]uint64, (s.Count%experiment.DigestStep+n)/experiment.DigestStep)...)
	}
	s.Count += n
}

// untold is how many collectives NCCL has counted, by the number of the one that is to be written, and not told since the
// last one. From API v7 on (NCCL 2.31) that happens where RAS has changed the activation mask, or where events were lost. With graphs, and where the
// settings left operations out, numbers do not tell.
func (rs *ranks) untold(c *commRank, s *sequence, op *operation) (n uint64) {
	if !op.task || op.copied || rs.process.APIVersion < 7 {
		return 0
	}
	s.graph = s.graph || op.plan.graph
	if s.told > 0 && op.seq > s.told && !s.graph && len(c.Gaps) == 0 {
		n = op.seq - s.told
	}
	s.told = max(s.told, op.seq+1)
	return n
}

func (c *commRank) sequence(key string) *sequence {
	s := c.sequences[key]
	if s == nil {
		s = &sequence{lasting: c.lasting}
		if c.sequences == nil { // it is gone, and its numbers have been told
			return s
		}
		c.sequences[key] = s
	}
	return s
}
