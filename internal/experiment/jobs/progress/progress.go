// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
)

// Progress of communicators' members, from the numbers of operations that ranks have begun and ended, and those under
// way.

// Sequence is a sequence of operations that its members number in the same way: the operations of a function on a
// communicator, or the messages of a pair, for which each end has its own key.
type Sequence struct {
	// Name is "AllReduce"; "Send 0>3" for messages of a pair, by ranks of the communicator; "Send" where messages have
	// only been called, and the other end is not known.
	Name string
	Pair *sequence.Pair // of messages whose ends are known, else nil
	Rank int            // of messages that have only been called: the caller, else −1

	comm *Communicator
}

// Sequences lists the sequences that members of a communicator have begun, in the order of their names.
func (c *Communicator) Sequences() (all []Sequence) {
	seen := make(map[string]bool)
	for rank, r := range c.Ranks {
		if r == nil {
			continue
		}
		for key := range r.Reached {
			s := Sequence{Name: key, Rank: -1, comm: c}
			switch pair, ok := sequence.PairOf(key, rank); {
			case ok && (max(pair.From, pair.To) >= c.Size || pair.From == pair.To):
				continue
			case ok:
				s.Name, s.Pair = pair.Name(), &pair
			case key == "Send" || key == "Recv":
				s.Rank = rank
			case sequence.FunctionOf(key) != key: // names no rank
				continue
			}
			if s.Rank < 0 && seen[s.Name] {
				continue
			}
			seen[s.Name] = true
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Sequence) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Rank, b.Rank))
	})
	return all
}

// Members iterates over the ranks that number the sequence, and their keys for it; of messages the sender first.
func (s *Sequence) Members(yield func(rank int, key string) bool) {
	switch {
	case s.Pair != nil:
		_ = yield(s.Pair.From, s.Pair.SendKey()) && yield(s.Pair.To, s.Pair.RecvKey())
	case s.Rank >= 0:
		yield(s.Rank, s.Name)
	default:
		for rank := range s.comm.Size {
			if !yield(rank, s.Name) {
				return
			}
		}
	}
}

// Incomplete lists the ordinals of operations that may be incomplete, ascending: those that a member has under way, and
// the first that not all members have begun, among members for which that is known; not in snapshots, where functions
// share numbers.
func (s *Sequence) Incomplete() (all []uint64) {
	least, most, known := uint64(0), uint64(0), false
	for rank, key := range s.Members {
		r := s.comm.Ranks[rank]
		if r == nil {
			continue
		}
		n := r.Reached[key]
		if most = max(most, n); !r.Process.Lossy && !r.Process.Snapshot && (!known || n < least) {
			least, known = n, true
		}
		for _, p := range r.Pending {
			if p.Function == key {
				all = append(all, p.Ordinal)
			}
		}
	}
	if known && least < most {
		all = append(all, least)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Standing is the progress of a member with an operation.
type Standing int

// Standings.
const (
	// nothing was recorded of the member, or not everything: it may have called the operation
	StandingUnknown Standing = iota
	NotBegun
	UnderWay // see [description.Pending]
	Ended
	Begun // its end is not recorded
)

// Standing returns the progress of a rank with an operation of a sequence, by its key there, and the state of one under
// way.
func (r *Rank) Standing(key string, ordinal uint64) (Standing, *description.Pending) {
	if r == nil {
		return StandingUnknown, nil
	}
	if p := r.UnderWay(key, ordinal); p != nil {
		return UnderWay, p
	}
	_, message := sequence.PairOf(key, 0)
	switch {
	case r.Process.Snapshot && !message && r.calls(ordinal): // another function in its place
		return NotBegun, nil
	case ordinal >= r.Reached[key] && r.Process.Lossy, r.Process.Snapshot && (r.Unseen || message):
		return StandingUnknown, nil
	case ordinal >= r.Reached[key]:
		return NotBegun, nil
	case r.Process.Ends:
		return Ended, nil
	}
	return Begun, nil
}

// calls reports whether a rank has a collective of any function with a number under way.
func (r *Rank) calls(number uint64) bool {
	return slices.ContainsFunc(r.Pending, func(p description.Pending) bool {
		return p.Ordinal == number && sequence.FunctionOf(p.Function) == p.Function
	})
}

// UnderWay returns the state of an operation that a rank has under way, nil if it has not.
func (r *Rank) UnderWay(key string, ordinal uint64) *description.Pending {
	for i := range r.Pending {
		if p := &r.Pending[i]; p.Function == key && p.Ordinal == ordinal {
			return p
		}
	}
	return nil
}

// GPU is the index of the rank's GPU among its process's, −1 if it is not known.
func (r *Rank) GPU() int {
	if len(r.Parts) == 0 {
		return -1
	}
	last := r.Parts[len(r.Parts)-1]
	return last.Shard.Comms[last.Comm].GPU
}

// Shard is the description of the rank's process by its latest collector.
func (r *Rank) Shard() *description.Process { return r.Parts[len(r.Parts)-1].Shard }

// SameGPU reports whether two communicator ranks of a process are on one GPU.
func (r *Rank) SameGPU(o *Rank) bool { return r.GPU() == o.GPU() }
