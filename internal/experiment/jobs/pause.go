// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Pause is a run of a communicator's operations that its members did not record, on request or because they could not
// be written.
type Pause struct {
	In         *Communicator
	replays    bool   // of replayed graphs
	lost       bool   // not on request
	from, To   uint64 // NCCL's operations from ≤ ordinal < to; to 0: up to the end
	Begin, End uint64 // archive time, from the first member that paused to the last that went on; end 0: never
}

// String is the pause as properties of an archive name it.
func (p *Pause) String() string {
	how := ""
	if p.lost {
		how = "lost "
	}
	return fmt.Sprintf("comm %d %s%s %q", p.In.Ref, how, p.Operations(), p.In.Name)
}

// Operations names what was not recorded: "10-19", "replayed 10-19".
func (p *Pause) Operations() string {
	if p.replays {
		return "replayed " + pauseRange(p.from, p.To)
	}
	return pauseRange(p.from, p.To)
}

// gaps are the member's gaps among its calls, or among its replays.
func (m *Rank) gaps(replays bool) []description.Gap {
	return slices.DeleteFunc(slices.Clone(m.Comm().Gaps), func(g description.Gap) bool { return g.Replays != replays })
}

func pauseRange(from, to uint64) string {
	if to == 0 {
		return fmt.Sprintf("%d-", from)
	}
	return fmt.Sprintf("%d-%d", from, to-1)
}

// FindPauses combines the members' gaps and records in each instance where they differ.
//
// A member may lack a gap, or its end, that others have: its process still runs or died, or it made no call that would
// have shown it. The gap is a different one if the member has recorded more operations than lie before.
func FindPauses(instances []*Communicator) []Pause {
	var all []Pause
	for _, in := range instances {
		for _, replays := range []bool{false, true} {
			all = append(all, in.findPauses(replays)...)
		}
	}
	return all
}

func (in *Communicator) findPauses(replays bool) (all []Pause) {
	// If replays were recorded, the members' counts do not show how many calls they recorded.
	mixed := false
	for m := range in.Present() {
		mixed = mixed || len(m.gaps(true)) > 0
	}
	skipped := uint64(0)
	for i := 0; ; i++ {
		p := Pause{In: in, replays: replays, Begin: math.MaxUint64}
		have := 0
		equal := true
		for m := range in.Present() {
			gaps := m.gaps(replays)
			if i >= len(gaps) {
				continue
			}
			g := gaps[i]
			equal = equal && (have == 0 || g.From == p.from && (g.To == p.To || g.To == 0 || p.To == 0))
			if have == 0 {
				p.from = g.From
			}
			have++
			p.lost = p.lost || g.Lost
			p.To = max(p.To, g.To)
			p.Begin, p.End = min(p.Begin, m.Process.At(g.FromTime)), max(p.End, m.Process.At(g.ToTime))
		}
		if have == 0 {
			break
		}
		for m := range in.Present() {
			if !mixed && i >= len(m.gaps(replays)) && m.Process.State == Finished &&
				m.recorded() > p.from-min(skipped, p.from) {
				equal = false
			}
		}
		if !equal {
			in.Parted = &parting{after: in.agreedBefore(i, replays), Detail: in.describeGaps(i, replays)}
			break
		}
		all = append(all, p)
		skipped += p.To - min(p.from, p.To)
	}
	return all
}

// parting describes that the members of a communicator paused at different operations.
type parting struct {
	after  uint64 // recorded operations before the first difference
	Detail string
}

// agreedBefore returns the number of recorded operations before the first gap that differs, of index i.
func (in *Communicator) agreedBefore(i int, replays bool) uint64 {
	first := uint64(math.MaxUint64)
	for m := range in.Present() {
		skipped := uint64(0)
		for k, g := range m.gaps(replays) {
			if k == i {
				first = min(first, g.From-min(skipped, g.From))
				break
			}
			skipped += g.To - min(g.From, g.To)
		}
	}
	return first
}

// recorded returns how many collectives the member has recorded.
func (m *Rank) recorded() (n uint64) {
	for f, s := range m.Comm().Sequences {
		if !strings.ContainsAny(f, "<>") {
			n += s.Count
		}
	}
	return n
}

// describeGaps groups the members by their gap of index i: "ranks 0-1 did not record 10-19, rank 2 11-19".
func (in *Communicator) describeGaps(i int, replays bool) string {
	type kind struct {
		lacks bool
		gap   description.Gap
	}
	groups := make(map[kind][]int)
	var order []kind
	for m := range in.Present() {
		k := kind{lacks: true}
		if gaps := m.gaps(replays); i < len(gaps) {
			k = kind{gap: description.Gap{Lost: gaps[i].Lost, From: gaps[i].From, To: gaps[i].To}}
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], m.Comm().Rank)
	}
	slices.SortStableFunc(order, func(a, b kind) int { return cmp.Compare(len(groups[a]), len(groups[b])) })
	parts := make([]string, len(order))
	for j, k := range order {
		if k.lacks {
			parts[j] = units.RankWords(groups[k]) + " did not pause"
		} else if k.gap.Lost {
			parts[j] = fmt.Sprintf("%s lost %s", units.RankWords(groups[k]), pauseRange(k.gap.From, k.gap.To))
		} else {
			parts[j] = fmt.Sprintf("%s paused at %s", units.RankWords(groups[k]), pauseRange(k.gap.From, k.gap.To))
		}
	}
	return "recording was paused differently: " + strings.Join(parts, ", ")
}

// shifted returns the first operation of a function that may be a different one on another member, because they paused
// at different operations: the operations recorded before may all be of other functions.
func (in *Communicator) shifted(function string) uint64 {
	others := make(map[string]uint64)
	for m := range in.Present() {
		for f, s := range m.Comm().Sequences {
			if f != function && !strings.ContainsAny(f, "<>") {
				others[f] = max(others[f], s.Count)
			}
		}
	}
	first := in.Parted.after
	for _, n := range others {
		first -= min(first, n)
	}
	return first
}
