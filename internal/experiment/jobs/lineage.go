// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/commid"
)

// unseenChildren is how many of a parent's children in a row may be missing in the recording.
const unseenChildren = 1024

// Bounds of a search for parents.
const (
	maxRelatives = 256     // communicators of a GPU that may be parents of the next one
	maxTrials    = 1 << 28 // pairs of a parent and a count
)

// FindParents returns which of the communicators come from others, by their ids: those of splits and of shrinks are
// made of the parent's id. A parent has the GPUs of all members of its children, and was alive when they were made.
// Where a communicator was made in another way, or by a release of NCCL that makes ids in another way, there is none;
// nor where several have the parent's id, as two shrinks of one communicator do.
//
// The communicators are in the order of their begin.
func FindParents(all []*Communicator) {
	s := search{relatives: make(map[Device][]membership), counts: make(map[uint64]uint32), left: maxTrials}
	for _, in := range all {
		if in.ID == 0 || in.Unsized {
			continue
		}
		s.find(in)
		for m := range in.Present() {
			s.addParent(in, m)
		}
	}
}

// search is a search for parents.
type search struct {
	relatives map[Device][]membership
	counts    map[uint64]uint32 // the greatest one of a parent's children, by its id
	left      int               // trials
}

// membership is a communicator of a GPU.
type membership struct {
	of *Communicator
	as *Rank
}

// addParent makes a communicator available as a parent for later ones of the GPU. Of too many, the oldest without
// children is dropped.
func (s *search) addParent(in *Communicator, m *Rank) {
	d := Device{m.Process, m.Comm().GPU}
	all := append(s.relatives[d], membership{in, m})
	if len(all) > maxRelatives {
		gone := slices.IndexFunc(all, func(o membership) bool { return s.counts[o.of.ID] == 0 })
		all = slices.Delete(all, max(gone, 0), max(gone, 0)+1)
	}
	s.relatives[d] = all
}

func (s *search) find(in *Communicator) {
	older := s.olderRelatives(in)
	slices.SortStableFunc(older, func(a, b *Communicator) int { // parents of others first
		return cmp.Compare(min(s.counts[b.ID], 1), min(s.counts[a.ID], 1))
	})
	have := make(map[uint64]int) // of older ones with an id
	for _, p := range older {
		have[p.ID]++
	}
	for _, p := range older {
		if have[p.ID] != 1 {
			continue // which of them it is cannot be known
		}
		most := s.counts[p.ID] + unseenChildren
		if s.left -= int(most); s.left < 0 {
			return
		}
		if b, ok := commid.Find(p.ID, in.ID, 1, most); ok {
			in.Parent, in.Birth = p, b
			s.counts[p.ID] = max(s.counts[p.ID], b.Count)
			return
		}
	}
}

// olderRelatives returns the communicators that all members had when they joined this one, the latest first.
func (s *search) olderRelatives(in *Communicator) (older []*Communicator) {
	first := true
	for m := range in.Present() {
		d, born := Device{m.Process, m.Comm().GPU}, m.Comm().InitTime
		s.relatives[d] = slices.DeleteFunc(s.relatives[d], func(o membership) bool {
			final := o.as.Comm().FinalTime
			return final != 0 && final < born
		})
		had := make(map[*Communicator]bool)
		for _, o := range s.relatives[d] {
			if o.as.Comm().InitTime < born && o.of.Nranks >= in.Nranks {
				had[o.of] = true
				if first {
					older = append(older, o.of)
				}
			}
		}
		if older = slices.DeleteFunc(older, func(c *Communicator) bool { return !had[c] }); len(older) == 0 {
			return nil
		}
		first = false
	}
	slices.Reverse(older)
	return older
}

// ParentsFirst orders communicators so that each parent in the list precedes its children; otherwise the order stays.
func ParentsFirst(all []*Communicator) []*Communicator {
	ordered := make([]*Communicator, 0, len(all))
	among, done := make(map[*Communicator]bool, len(all)), make(map[*Communicator]bool, len(all))
	for _, in := range all {
		among[in] = true
	}
	var add func(in *Communicator)
	add = func(in *Communicator) {
		if in == nil || done[in] || !among[in] {
			return
		}
		done[in] = true
		add(in.Parent)
		ordered = append(ordered, in)
	}
	for _, in := range all {
		add(in)
	}
	return ordered
}
