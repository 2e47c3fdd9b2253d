// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
)

// Members of a communicator call the same collectives in one order, whatever their functions. The sequences of the
// functions do not show an exchange of two of them.

// CompareOrder returns one Difference, with First and Last counting the collectives of all functions and Function "",
// for each communicator whose members may have called other collectives, or in another order: package deviation reads
// which. It leaves out communicators with a member whose record has gaps, and those of running jobs in which all
// members have begun an operation since until.
func CompareOrder(instances []*Communicator, until uint64) (all []Difference) {
	for _, in := range instances {
		if in.Nranks < 2 || in.Unsized || in.Parted != nil {
			continue
		}
		d := Difference{Comm: in.Ref, Name: in.Name, World: in.World, Common: math.MaxUint64}
		var tracks []track // one of each side
		runs, waits, gaps := false, false, false
		for m := range in.Present() {
			c := m.Comm()
			t := track{rank: in.world(c.Rank), member: m}
			if gaps = !t.isComplete() || len(c.Gaps) > 0 || !t.ordered(); gaps {
				break
			}
			runs, waits = runs || m.Process.State == Running, waits || c.Begun > 0 && m.Process.At(c.Begun) < until
			for _, p := range m.collectivesUnderWay() {
				waits = waits || m.Process.At(p.Since) < until
				if p.Ordinal >= c.Sequences[p.Function].Count && len(c.Held) == 0 {
					t.tail = append(t.tail, p)
				}
			}
			s := Side{Ranks: []int{t.rank}, Member: m, Count: t.of.Count + uint64(len(t.tail)), Tail: t.tail}
			d.Common = min(d.Common, s.Count)
			at := slices.IndexFunc(tracks, func(o track) bool {
				return o.of.Count == t.of.Count && o.of.Last == t.of.Last && sameCalls(o.tail, t.tail)
			})
			if at < 0 {
				d.Sides, tracks = append(d.Sides, s), append(tracks, t)
			} else {
				d.Sides[at].Ranks = append(d.Sides[at].Ranks, t.rank)
			}
		}
		if gaps || len(d.Sides) < 2 || d.Common == 0 || runs && !waits {
			continue
		}
		fewest, windows := uint64(math.MaxUint64), math.MaxInt
		for i := range tracks {
			slices.Sort(d.Sides[i].Ranks)
			fewest, windows = min(fewest, tracks[i].of.Count), min(windows, len(tracks[i].of.Digests))
		}
		if bad, found := firstDigest(tracks); found {
			windows = bad
		} else if same, known := equalPart(tracks, fewest); known && same == fewest && fewest == d.Common {
			continue
		}
		d.First, d.Last = uint64(windows)*experiment.DigestStep, d.Common-1
		all = append(all, d)
	}
	return all
}

// ordered sets the order of the member's collectives. It fails where that is not known: the input of an import, or
// graphs, gave some of them.
func (t *track) ordered() bool {
	c, n := t.member.Comm(), uint64(0)
	for key, s := range c.Sequences {
		if experiment.FunctionOf(key) == key {
			n += s.Count
		}
	}
	if c.Order != nil {
		t.of = *c.Order
	}
	return n == t.of.Count
}

// collectivesUnderWay lists the member's collectives that have begun and not ended, in the order of their calls.
func (m *Rank) collectivesUnderWay() (all []experiment.Pending) {
	for _, p := range m.Process.Shard.Pending {
		if f := experiment.FunctionOf(p.Function); p.Comm == m.Index && f != "Send" && f != "Recv" {
			all = append(all, p)
		}
	}
	return all
}

func sameCalls(a, b []experiment.Pending) bool {
	return slices.EqualFunc(a, b, func(p, q experiment.Pending) bool {
		return p.Function == q.Function && p.Ordinal == q.Ordinal && p.Count == q.Count && p.Datatype == q.Datatype &&
			p.Root == q.Root
	})
}
