// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Operations that some members lack and others have, although their ordinals are known.

// holes lists what is missing of a communicator's operations because collectors died, by the keys of its functions and
// pairs.
func (in *Communicator) holes() (all []Difference) {
	for m := range in.Present() {
		name := in.nameOf(m)
		for _, key := range slices.Sorted(maps.Keys(m.Comm().Sequences)) {
			s := m.Comm().Sequences[key]
			if s.Numbered {
				continue
			}
			function := key
			if pair, ok := sequence.PairOf(key, m.Comm().Rank); ok {
				function = pair.Name()
			}
			for _, h := range s.Holes {
				all = append(all, Difference{Comm: in.Ref, Name: in.Name, Function: function, First: h.From,
					Last: h.To - 1, Died: true,
					Detail: name + " lacks them: they were in the memory of a collector that died"})
			}
		}
	}
	return all
}

func (in *Communicator) nameOf(m *Rank) string {
	return cmp.Or(m.Process.Name, fmt.Sprintf("rank %d", m.Comm().Rank))
}

// mostDescribed is how many stretches of a function say which ranks lack them; further ones say how many.
const mostDescribed = 256

// border is where a member begins to lack operations, or has them again.
type border struct {
	at    uint64
	track int
	step  int // 1: it begins to; −1: it has them again
}

// givenOrdinals reports whether the input of an import gives the ordinals of a function's operations.
func givenOrdinals(tracks []track) bool {
	return slices.ContainsFunc(tracks, func(t track) bool { return t.of.Numbered })
}

// lacking lists the operations of a function that some members have and others lack, if the input gives ordinals: in
// its holes, and after its last one. What no member has cannot be listed.
func (in *Communicator) lacking(function string, tracks []track) (all []Difference) {
	if !givenOrdinals(tracks) {
		return nil
	}
	most := uint64(0)
	for _, t := range tracks {
		most = max(most, t.of.Count)
	}
	var borders []border
	for i, t := range tracks {
		for _, h := range append(slices.Clip(t.of.Holes), sequence.Hole{From: t.of.Count, To: most}) {
			if h.From < h.To {
				borders = append(borders, border{h.From, i, 1}, border{h.To, i, -1})
			}
		}
	}
	slices.SortFunc(borders, func(a, b border) int { // of one track, a hole ends before the next one begins
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step))
	})
	lacks, n := make([]bool, len(tracks)), 0
	for i, b := range borders {
		lacks[b.track], n = b.step > 0, n+b.step
		if i+1 == len(borders) || borders[i+1].at == b.at || n == 0 || n == len(tracks) {
			continue
		}
		d := Difference{Comm: in.Ref, Name: in.Name, Function: function, First: b.at, Last: borders[i+1].at - 1}
		if d.Detail = fmt.Sprintf("lacking in %s", units.Plural(uint64(n), "rank")); len(all) < mostDescribed {
			d.Detail = describeLacking(tracks, lacks)
		}
		all = append(all, d)
	}
	return all
}

func describeLacking(tracks []track, lacks []bool) string {
	var ranks []int
	for i, t := range tracks {
		if lacks[i] {
			ranks = append(ranks, t.rank)
		}
	}
	verb := "lack"
	if len(ranks) == 1 {
		verb = "lacks"
	}
	return fmt.Sprintf("%s %s them", units.RankWords(ranks), verb)
}

// unpaired describes the messages of a pair of which an end of an import lacks, or may lack, unknown ones: then none
// can be matched.
func unpaired(ends []track) (detail string, some bool) {
	partial := false
	for _, t := range ends {
		p := t.member.Process.Shard
		partial = partial || p.Import != nil && p.Import.Partial
	}
	switch a, b := ends[0].of.Count, ends[1].of.Count; {
	case !partial:
		return "", false
	case a > 0 && (ends[0].member.Comm().Unpaired || ends[1].member.Comm().Unpaired):
		detail = fmt.Sprintf("which message of rank %d is which of rank %d is not known", ends[0].rank, ends[1].rank)
		return detail, true
	case a != b:
		have := "messages have"
		if max(a, b)-min(a, b) == 1 {
			have = "message has"
		}
		return fmt.Sprintf("%s: %d %s no partner", describeTracks(ends, -1), max(a, b)-min(a, b), have), true
	}
	a, b := ends[0].member.Comm().LostMessages, ends[1].member.Comm().LostMessages
	if a == 0 || b == 0 || ends[0].of.Count == 0 {
		return "", false // equally many are there, so nothing is missing
	}
	return fmt.Sprintf("rank %d lacks %s and rank %d %d of all that they exchanged, and which is not known",
		ends[0].rank, units.Plural(a, "message"), ends[1].rank, b), true
}
