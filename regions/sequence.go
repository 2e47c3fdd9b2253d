// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
)

// Ordinals: the n-th collective of a function on a communicator is the n-th on all its members (docs/internals.md,
// "Windows"). NCCL's own numbers only check it (docs/nccl-profiler-api.md §4.3).

// numbering numbers the operations of one function on one communicator rank and keeps the running hash by which unify
// compares the members without reading their events.
type numbering struct {
	sequence.Sequence
	lasting bool // keeps only the last digest
	blank   bool // operations are missing in it

	reported uint64 // NCCL's number of the next collective; 0 before the first
	graph    bool   // some were of graphs, whose replays NCCL may or may not count
}

// ordinals are the sequences of a communicator rank by their keys, see description.Comm.
type ordinals struct {
	sequences map[string]*numbering // nil: the rank is gone, and its numbers have been reported
	order     numbering             // see description.Comm.Order
	lasting   bool                  // Options.Lasting
}

// FNV-1a, 64 bits.
const (
	hashStart = 14695981039346656037
	hashPrime = 1099511628211
)

func hashValues(h uint64, values ...uint64) uint64 {
	for _, v := range values {
		for range 8 {
			h = (h ^ v&0xff) * hashPrime
			v >>= 8
		}
	}
	return h
}

// hashText returns a hash of a name.
func hashText(name string) uint64 {
	h := uint64(hashStart)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * hashPrime
	}
	return h
}

// agreementHash returns a hash of what must be equal in an operation of all members (or both ends of a message),
// including whether a graph was replayed, which NCCL requires to be the same on all.
func (op *operation) agreementHash() uint32 {
	values := append(make([]uint64, 0, 1+mostShared+1), op.shareBytes())
	if !op.p2p {
		values = op.appendShared(values)
	}
	if op.plan.graph {
		values = append(values, 1)
	}
	h := hashValues(hashStart, values...)
	return uint32(h ^ h>>32)
}

// addOperation takes the next operation and returns its ordinal.
func (s *numbering) addOperation(mark uint32) uint64 {
	if s.Count == 0 {
		s.Last = hashStart
	}
	s.Count++
	switch full := s.Count%sequence.DigestStep == 0; {
	case s.blank:
		if full && !s.lasting {
			s.Digests = append(s.Digests, 0)
		}
		return s.Count - 1
	case s.lasting:
		s.Last = hashValues(s.Last, uint64(mark))
	case full:
		s.Last = hashValues(s.Last, uint64(mark))
		s.Digests, s.Recent = append(s.Digests, s.Last), nil
	default:
		s.Last = hashValues(s.Last, uint64(mark))
		s.Recent = append(s.Recent, byte(s.Last>>32), byte(s.Last>>40))
	}
	return s.Count - 1
}

// skipLost skips the next operation, whose record is lost.
func (s *numbering) skipLost(mark uint32) {
	at := s.addOperation(mark)
	s.Holes = slices.Clone(s.Holes)
	if last := len(s.Holes) - 1; last >= 0 && s.Holes[last].To == at {
		s.Holes[last].To++
	} else {
		s.Holes = append(s.Holes, sequence.Hole{From: at, To: at + 1})
	}
}

// addNumbered takes an operation with a given ordinal; ordinals ascend. Ordinals between it and the previous one are
// holes, and digests cannot be compared after the first hole.
func (s *numbering) addNumbered(ordinal uint64, mark uint32) uint64 {
	s.Numbered = true
	if ordinal > s.Count {
		// other users of the list keep its present content
		s.Holes = append(s.Holes, sequence.Hole{From: s.Count, To: ordinal})
		s.blank, s.Last, s.Recent, s.Count = true, 0, nil, ordinal
	}
	return s.addOperation(mark)
}

// skipOperations skips operations that were not reported. Their marks are unknown, so digests are 0 from there on.
func (s *numbering) skipOperations(n uint64) {
	s.blank, s.Last, s.Recent = true, 0, nil
	if !s.lasting {
		s.Digests = append(s.Digests, make([]uint64, (s.Count%sequence.DigestStep+n)/sequence.DigestStep)...)
	}
	s.Count += n
}

// countUnreported returns how many collectives NCCL has counted but not reported since the previous one, by the number
// of the one that is to be written. Since API v7 (NCCL 2.31) that happens after RAS has changed the activation mask, or
// after a loss of events. With graphs, and if the settings leave operations out, the numbers are no evidence.
func (rs *ranks) countUnreported(c *commRank, s *numbering, op *operation) (n uint64) {
	if !op.task || op.copies.byEngines || rs.process.APIVersion < 7 {
		return 0
	}
	s.graph = s.graph || op.plan.graph
	if s.reported > 0 && op.seq > s.reported && !s.graph && len(c.Gaps) == 0 {
		n = op.seq - s.reported
	}
	s.reported = max(s.reported, op.seq+1)
	return n
}

// sequenceOf finds or adds the sequence of a key.
func (o *ordinals) sequenceOf(key string) *numbering {
	s := o.sequences[key]
	if s == nil {
		s = &numbering{lasting: o.lasting}
		if o.sequences == nil {
			return s
		}
		o.sequences[key] = s
	}
	return s
}
