// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Difference is a stretch of operations of one function that the members of a communicator did not
// record equally: something was lost, recording was paused at different points, or the program called
// NCCL differently. Analyses leave these operations out.
type Difference struct {
	Comm     otf2.CommRef `json:"comm"`
	Name     string       `json:"name"`     // of the communicator
	Function string       `json:"function"` // "AllReduce", or "Send 0>3" for the messages from rank 0 to 3
	First    uint64       `json:"first"`    // ordinals, inclusive
	Last     uint64       `json:"last"`
	Detail   string       `json:"detail"` // which ranks recorded what
	// lost with the collector of one rank; all others have them, as far as is known
	Died bool `json:"died,omitempty"`

	// Deviants are the ranks of the world that asked for something else than the majority; empty without a known
	// majority.
	Deviants []int `json:"deviants,omitempty"`
	// Among are all ranks of the world that were compared, if they contradict each other; else nil.
	Among []int `json:"-"`
	// Reordered: they called different functions in one place; Exchanged: and the others' ones in another place.
	Reordered, Exchanged bool `json:"-"`

	// Sides are the groups of members that recorded the same, if their event files are complete, so that operations can
	// be compared one by one (package deviation); else nil.
	Sides []Side `json:"-"`
	World []int  `json:"-"` // ranks of the world by those of the communicator, see Communicator.World
	// Common is the number of operations of all sides whose order is certain; Running: more may follow.
	Common  uint64 `json:"-"`
	Running bool   `json:"-"`
}

// Side is a group of members of a communicator whose sequences of a function are equal, or one end of a message.
type Side struct {
	Ranks  []int // of the world
	Member *Rank // one of them
	Key    string
	Count  uint64 // operations that each has
	// Tail are those of them that are in no event file yet, see CompareOrder.
	Tail []description.Pending
}

// At returns the part of a difference from one ordinal to another.
func (d *Difference) At(first, last uint64) Difference {
	return Difference{Comm: d.Comm, Name: d.Name, Function: d.Function, First: first, Last: last, Detail: d.Detail}
}

// String is the form of the archive's properties:
//
//	comm 3 AllReduce 64-127 "world": rank 2 has 126 operations, ranks 0-1,3 have 128
func (d Difference) String() string {
	return fmt.Sprintf("comm %d %s %d-%d %q: %s", d.Comm, d.Function, d.First, d.Last, d.Name, d.Detail)
}

// CompareSequences compares, per communicator and function, the digests that its members left, and
// those of the two ends of messages.
func CompareSequences(instances []*Communicator) []Difference {
	var all []Difference
	for _, in := range instances {
		all = append(all, in.holes()...)
		for _, f := range in.functions() {
			var tracks []track
			for m := range in.Present() {
				tracks = append(tracks, in.track(m, f))
			}
			all = append(all, in.lacking(f, tracks)...)
			first, last, detail, differ := compareTracks(tracks)
			if in.Parted != nil {
				first, last, detail, differ = afterParting(in, tracks, in.shifted(f), first, last, detail, differ)
			}
			if differ {
				d := Difference{Comm: in.Ref, Name: in.Name, Function: f, First: first, Last: last, Detail: detail}
				d.keepSides(in, tracks)
				all = append(all, d)
			}
		}
		for _, pair := range in.pairs() {
			src, dst := in.Members[pair.From], in.Members[pair.To]
			tracks := []track{in.track(src, pair.SendKey()), in.track(dst, pair.RecvKey())}
			first, last, detail, differ := compareTracks(tracks)
			if in.Parted != nil { // messages are chosen by the collectives around them
				first, last, detail, differ = afterParting(in, tracks, 0, first, last, detail, differ)
			}
			if text, some := unpaired(tracks); some {
				first, last, detail, differ = 0, max(tracks[0].of.Count, tracks[1].of.Count)-1, text, true
			}
			if differ {
				d := Difference{
					Comm: in.Ref, Name: in.Name, Function: pair.Name(),
					First: first, Last: last, Detail: detail,
				}
				d.keepSides(in, tracks)
				all = append(all, d)
			}
		}
	}
	return all
}

// afterParting widens a difference to all operations since the members paused at different ones: digests cannot show it
// if the operations have one size.
func afterParting(in *Communicator, tracks []track, shifted, first, last uint64, detail string, differ bool) (
	uint64, uint64, string, bool) {
	most := uint64(0)
	for _, t := range tracks {
		most = max(most, t.of.Count)
	}
	if shifted >= most || differ && first <= shifted {
		return first, last, detail, differ
	}
	return shifted, most - 1, in.Parted.Detail, true
}

// functions lists the collectives that any member recorded.
func (in *Communicator) functions() []string {
	seen := make(map[string]bool)
	for m := range in.Present() {
		for f := range m.Comm().Sequences {
			if !strings.ContainsAny(f, "<>") {
				seen[f] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// pairs lists the directions in which either end recorded messages and both ends left data.
func (in *Communicator) pairs() []sequence.Pair {
	seen := make(map[sequence.Pair]bool)
	for m := range in.Present() {
		for key := range m.Comm().Sequences {
			if p, ok := sequence.PairOf(key, m.Comm().Rank); ok && in.hasRank(p.From) && in.hasRank(p.To) {
				seen[p] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b sequence.Pair) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}

func (in *Communicator) hasRank(rank int) bool {
	return rank >= 0 && rank < len(in.Members) && in.Members[rank] != nil
}

// track is one rank's sequence.
type track struct {
	rank       int // in the world
	member     *Rank
	key        string
	of         sequence.Sequence
	tail       []description.Pending // collectives behind them, in CompareOrder
	unfinished bool                  // more may follow
	// died is set if more would have followed. settled is how many operations had been completed in order: the order of
	// the last ones of a process that died is not certain.
	died    bool
	settled uint64
}

// keepSides keeps the sides that can be compared operation by operation.
func (d *Difference) keepSides(in *Communicator, tracks []track) {
	if in.Parted != nil || slices.ContainsFunc(tracks, func(t track) bool { return !t.isComplete() }) {
		return
	}
	d.Common, d.World = math.MaxUint64, in.World
	var of []*track
	for i := range tracks {
		t := &tracks[i]
		d.Common, d.Running = min(d.Common, t.settled), d.Running || t.unfinished
		at := slices.IndexFunc(of, func(o *track) bool {
			return o.key == t.key && o.of.Count == t.of.Count && o.of.Last == t.of.Last &&
				slices.Equal(o.of.Digests, t.of.Digests) && slices.EqualFunc(o.tail, t.tail, sameCall)
		})
		if at < 0 {
			at, of = len(of), append(of, t)
			d.Sides = append(d.Sides, Side{Member: t.member, Key: t.key, Count: t.of.Count + uint64(len(t.tail)),
				Tail: t.tail})
		}
		d.Sides[at].Ranks = append(d.Sides[at].Ranks, t.rank)
	}
	for i := range d.Sides {
		slices.Sort(d.Sides[i].Ranks)
	}
}

// sameCall reports whether two collectives under way are the same for members, as far as is known.
func sameCall(a, b description.Pending) bool {
	return a.Function == b.Function && a.Ordinal == b.Ordinal && a.Count == b.Count && a.Datatype == b.Datatype &&
		a.Root == b.Root
}

// isComplete reports whether the event files have all operations of the sequence, numbered as they were called.
func (t *track) isComplete() bool {
	p := t.member.Process
	return p.Pieces == nil && !p.Shard.Lossy() && !p.Shard.IsSnapshot() &&
		t.member.Comm().Unreported == 0 && len(t.of.Holes) == 0
}

// track is a member's sequence of a key.
func (in *Communicator) track(m *Rank, key string) track {
	t := track{rank: in.world(m.Comm().Rank), member: m, key: key, of: m.Comm().Sequences[key],
		unfinished: m.Process.State == Running}
	t.settled = t.of.Count
	if p := m.Process.Shard; p.End.Died() {
		t.died = m.Process.Pieces == nil && len(p.Counts.Lost) == 0
		for _, o := range p.Pending {
			if o.Comm == m.Index && (o.Function == key || o.Function == sequence.FunctionOf(key)) {
				t.settled = min(t.settled, o.Ordinal)
			}
		}
	}
	return t
}

// compareTracks finds the ordinals from which on the sequences may differ.
//
// Digests are running hashes: the first that differs convicts the operations since the one before,
// and all later ones, because a lost operation shifts the rest. Where the counts differ, the
// operations after the last common digest cannot be compared and count as different, too; not so
// for a process that is still running, whose tail is simply not there yet; and where
// one has died only from where it, or another, had not completed them.
func compareTracks(tracks []track) (first, last uint64, detail string, differ bool) {
	if len(tracks) < 2 {
		return 0, 0, "", false
	}
	fewest, most := uint64(math.MaxUint64), uint64(0)
	settled, died, running := uint64(math.MaxUint64), false, false
	for _, t := range tracks {
		fewest, most = min(fewest, t.of.Count), max(most, t.of.Count)
		settled, died, running = min(settled, t.settled), died || t.died, running || t.unfinished
	}
	if most == 0 {
		return 0, 0, "", false
	}
	bad, found := firstDigest(tracks)
	switch {
	case found:
		return uint64(bad) * sequence.DigestStep, most - 1, describeTracks(tracks, bad), true
	case fewest == most:
		if _, differ := firstLast(tracks); !differ {
			return 0, 0, "", false
		}
		return most / sequence.DigestStep * sequence.DigestStep, most - 1, describeTracks(tracks, -1), true
	case givenOrdinals(tracks):
		return 0, 0, "", false
	case running:
		// The last digests of equally long sequences can be compared, too.
		count, differ := firstLast(tracks)
		if n, _ := equalPart(tracks, fewest); n < fewest {
			count, differ = min(count, n), true
		}
		if !differ {
			return 0, 0, "", false
		}
		return count / sequence.DigestStep * sequence.DigestStep, most - 1, describeTracks(tracks, -1), true
	case died:
		n, known := equalPart(tracks, fewest)
		if !known {
			n = fewest / sequence.DigestStep * sequence.DigestStep
		}
		return min(settled, n), most - 1, describeTracks(tracks, -1), true
	}
	return fewest / sequence.DigestStep * sequence.DigestStep, most - 1, describeTracks(tracks, -1), true
}

// equalPart returns in how many of the first n operations all tracks are equal; known: they cover all of these. The
// application's calls and a graph's replays, from another thread, may be ordered differently on members.
func equalPart(tracks []track, n uint64) (same uint64, known bool) {
	known = true
	for i := n / sequence.DigestStep * sequence.DigestStep; i < n; i++ {
		var one []byte
		known = true
		for _, t := range tracks {
			switch of := t.of.After(i + 1); {
			case of == nil:
				known = false
			case one == nil:
				one = of
			case !bytes.Equal(one, of):
				return i, true
			}
		}
	}
	return n, known
}

// firstLast returns the smallest number of operations that two tracks have without having done the same.
func firstLast(tracks []track) (count uint64, differ bool) {
	count = math.MaxUint64
	first := make(map[uint64]*sequence.Sequence)
	for i := range tracks {
		t := &tracks[i].of
		if t.Last == 0 {
			continue // some of its operations are unknown
		}
		if f := first[t.Count]; f == nil {
			first[t.Count] = t
		} else if t.Count < count && t.Last != f.Last {
			count, differ = t.Count, true
		}
	}
	return count, differ
}

// firstDigest returns the index of the first digest in which two tracks differ.
func firstDigest(tracks []track) (index int, found bool) {
	for i := 0; ; i++ {
		var digest uint64
		have := 0
		for _, t := range tracks {
			if i >= len(t.of.Digests) || t.of.Digests[i] == 0 {
				continue
			}
			if have > 0 && t.of.Digests[i] != digest {
				return i, true
			}
			digest = t.of.Digests[i]
			have++
		}
		if have < 2 {
			return 0, false
		}
	}
}

// describeTracks groups the ranks by what they recorded: by number of operations, or if those are
// equal by what the operations were (their digest at index, or the last one).
func describeTracks(tracks []track, index int) string {
	type kind struct {
		count  uint64
		digest uint64
	}
	groups := make(map[kind][]int)
	var order []kind
	counts := make(map[uint64]bool)
	for _, t := range tracks {
		counts[t.of.Count] = true
	}
	for _, t := range tracks {
		k := kind{count: t.of.Count}
		if len(counts) == 1 {
			k.digest = t.of.Last
			if index >= 0 && index < len(t.of.Digests) {
				k.digest = t.of.Digests[index]
			}
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], t.rank)
	}
	slices.SortStableFunc(order, func(a, b kind) int { return cmp.Compare(len(groups[a]), len(groups[b])) })
	var parts []string
	for _, k := range order {
		ranks := groups[k]
		if len(counts) > 1 {
			verb := "have"
			if len(ranks) == 1 {
				verb = "has"
			}
			parts = append(parts, fmt.Sprintf("%s %s %s", units.RankWords(ranks), verb,
				units.Plural(k.count, "operation")))
		} else {
			parts = append(parts, units.RankWords(ranks))
		}
	}
	if len(counts) > 1 {
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s, but of other sizes on %s", units.Plural(tracks[0].of.Count, "operation"),
		strings.Join(parts, " than on "))
}
