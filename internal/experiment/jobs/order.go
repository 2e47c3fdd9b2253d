// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
)

// Members of a communicator call the same collectives in one order, whatever their functions. The sequences of the
// functions do not show an exchange of two of them.

// CompareOrder returns one Difference, with First and Last counting the collectives of all functions and Function "",
// for each communicator whose members may have called other collectives, or in another order: package deviation reads
// which. It leaves out communicators with a member whose record has gaps, and those of running jobs in which all
// members have begun an operation since until.
func CompareOrder(instances []*Communicator, until uint64) (all []Difference) {
	for _, in := range instances {
		var tracks []track
		fewest, windows := uint64(math.MaxUint64), math.MaxInt
		runs, waits, known := false, false, in.Nranks > 1 && !in.Unsized
		for m := range in.Present() {
			t, ok := in.callTrack(m)
			known = known && ok
			tracks = append(tracks, t)
			fewest, windows = min(fewest, t.of.Count), min(windows, len(t.of.Digests))
			begun := m.Process.At(m.Comm().Begun)
			for _, p := range t.tail {
				begun = m.Process.At(p.Since)
			}
			runs, waits = runs || t.unfinished, waits || begun > 0 && begun < until
		}
		d := Difference{Comm: in.Ref, Name: in.Name}
		if known {
			d.keepSides(in, tracks)
		}
		if len(d.Sides) < 2 || d.Common == 0 || runs && !waits {
			continue
		}
		if bad, found := firstDigest(tracks); found {
			windows = bad
		} else if same, known := equalPart(tracks, fewest); known && same == fewest && fewest == d.Common {
			continue
		}
		d.First, d.Last = uint64(windows)*sequence.DigestStep, d.Common-1
		all = append(all, d)
	}
	return all
}

// callTrack is a member's sequence of all collectives. It fails where their order is not known: operations were left
// out, or the input of an import, or graphs, gave some of them.
func (in *Communicator) callTrack(m *Rank) (t track, ok bool) {
	c, n := m.Comm(), uint64(0)
	t = track{rank: in.world(c.Rank), member: m, unfinished: m.Process.State == Running}
	for key, s := range c.Sequences {
		if sequence.FunctionOf(key) == key {
			n += s.Count
		}
	}
	if c.Order != nil {
		t.of = *c.Order
	}
	for _, p := range m.Process.Shard.Pending {
		if f := sequence.FunctionOf(p.Function); p.Comm == m.Index && f != "Send" && f != "Recv" &&
			p.Ordinal >= c.Sequences[f].Count && len(c.Held) == 0 {
			t.tail = append(t.tail, p)
		}
	}
	t.settled = t.of.Count + uint64(len(t.tail))
	return t, n == t.of.Count && len(c.Gaps) == 0
}
