// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
)

// Ordinals: the n-th collective of a function on a communicator is the n-th on all its members (docs/architecture.md,
// "Windows"). NCCL's own numbers only check it (docs/nccl-profiler-api.md §4.3).

// sequence numbers the operations of one function on one communicator rank and keeps the running
// hash that lets unify compare the members without reading their events.
type sequence struct {
	experiment.Sequence
	lasting bool // no digests but the last
	blank   bool // operations are missing in it

	reported uint64 // NCCL's number of the collective that is to come; 0 before the first
	graph    bool   // some were of graphs: NCCL counts their replays, or does not
}

// FNV-1a, 64 bits.
const (
	hashStart = 14695981039346656037
	hashPrime = 1099511628211
)

func hash(h uint64, values ...uint64) uint64 {
	for _, v := range values {
		for range 8 {
			h = (h ^ v&0xff) * hashPrime
			v >>= 8
		}
	}
	return h
}

// text is a hash of a name.
func text(name string) uint64 {
	h := uint64(hashStart)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * hashPrime
	}
	return h
}

// mark is a hash of what must be equal in an operation of all members (or both ends of a message): also whether a graph
// was replayed, as NCCL wants that to be the same on all.
func (op *operation) mark() uint32 {
	values := append(make([]uint64, 0, 1+mostShared+1), op.share())
	if !op.p2p {
		values = op.shared(values)
	}
	if op.plan.graph {
		values = append(values, 1)
	}
	h := hash(hashStart, values...)
	return uint32(h ^ h>>32)
}

// next takes the operation that comes next and returns its ordinal.
func (s *sequence) next(mark uint32) uint64 {
	if s.Count == 0 {
		s.Last = hashStart
	}
	s.Count++
	switch full := s.Count%experiment.DigestStep == 0; {
	case s.blank:
		if full && !s.lasting {
			s.Digests = append(s.Digests, 0)
		}
		return s.Count - 1
	case s.lasting:
		s.Last = hash(s.Last, uint64(mark))
	case full:
		s.Last = hash(s.Last, uint64(mark))
		s.Digests, s.Recent = append(s.Digests, s.Last), nil
	default:
		s.Last = hash(s.Last, uint64(mark))
		s.Recent = append(s.Recent, byte(s.Last>>32), byte(s.Last>>40))
	}
	return s.Count - 1
}

// lose leaves the place of the operation that comes next, whose record is lost.
func (s *sequence) lose(mark uint32) {
	at := s.next(mark)
	s.Holes = slices.Clone(s.Holes)
	if last := len(s.Holes) - 1; last >= 0 && s.Holes[last].To == at {
		s.Holes[last].To++
	} else {
		s.Holes = append(s.Holes, experiment.Hole{From: at, To: at + 1})
	}
}

// place takes the operation of an ordinal that the input gives; they ascend. Those between it and the one before are
// holes, and digests cannot be compared from the first hole on.
func (s *sequence) place(ordinal uint64, mark uint32) uint64 {
	s.Numbered = true
	if ordinal > s.Count {
		// what others have of the list stays as it is
		s.Holes = append(s.Holes, experiment.Hole{From: s.Count, To: ordinal})
		s.blank, s.Last, s.Recent, s.Count = true, 0, nil, ordinal
	}
	return s.next(mark)
}

// skip leaves places for operations that were not reported. What they were is not known, so digests are 0 from there
// on.
func (s *sequence) skip(n uint64) {
	s.blank, s.Last, s.Recent = true, 0, nil
	if !s.lasting {
		s.Digests = append(s.Digests, make([]uint64, (s.Count%experiment.DigestStep+n)/experiment.DigestStep)...)
	}
	s.Count += n
}

// untold is how many collectives NCCL has counted, by the number of the one that is to be written, and not reported
// since the last one. From API v7 on (NCCL 2.31) that happens where RAS has changed the activation mask, or where
// events were lost. With graphs, and where the settings left operations out, numbers do not tell.
func (rs *ranks) unreported(c *commRank, s *sequence, op *operation) (n uint64) {
	if !op.task || op.copied || rs.process.APIVersion < 7 {
		return 0
	}
	s.graph = s.graph || op.plan.graph
	if s.reported > 0 && op.seq > s.reported && !s.graph && len(c.Gaps) == 0 {
		n = op.seq - s.reported
	}
	s.reported = max(s.reported, op.seq+1)
	return n
}

func (c *commRank) sequence(key string) *sequence {
	s := c.sequences[key]
	if s == nil {
		s = &sequence{lasting: c.lasting}
		if c.sequences == nil { // it is gone, and its numbers have been reported
			return s
		}
		c.sequences[key] = s
	}
	return s
}
