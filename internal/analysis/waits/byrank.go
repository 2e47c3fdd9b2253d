// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// ByRank tells who waited for whom at the beginning of collectives.
//
// These are the waits of WaitStates in collectives, by rank. Clocks of different hosts are compared as they are in the
// archive.
//
// Who comes late to the first collective of a communicator was late with starting up, often by more than
// by everything that follows. These waits are kept apart, in StartUp, wherever more collectives follow.
type ByRank struct {
	Collectives uint64 `json:"collectives"` // that were looked at
	// without times of two members that can be compared, or not ended by all
	LeftOut uint64            `json:"left_out"`
	Hosts   int               `json:"hosts"`            // whose clocks are compared
	Clocks  *facts.HostClocks `json:"clocks,omitempty"` // how well they are known; nil: they are as recorded
	Total   uint64            `json:"total_ns"`         // of all ranks
	Ranks   []Rank            `json:"ranks"`
	StartUp StartUp           `json:"start_up"`
}

// StartUp is the waiting in the first collectives of communicators; it is not part of the other figures.
type StartUp struct {
	Collectives uint64 `json:"collectives"`
	Waited      uint64 `json:"waited_ns"` // of all ranks
	Rank        string `json:"rank"`      // that the others waited for most, "" if nobody waited
	Host        string `json:"host"`      // of that rank
	Caused      uint64 `json:"caused_ns"` // what others waited for it
}

// Rank is one rank's waiting. A rank is a process, or one GPU of a process that has several.
type Rank struct {
	Rank        string `json:"rank"`
	Host        string `json:"host"`
	Collectives uint64 `json:"collectives"`
	Time        uint64 `json:"time_ns"`   // in these collectives
	Waited      uint64 `json:"waited_ns"` // of that
	Blame

	NoData bool `json:"no_data,omitempty"` // nothing was recorded of it
}

// Blame is what others waited for a rank, GPU or host.
type Blame struct {
	Caused    uint64 `json:"caused_ns"`
	Last      uint64 `json:"last"` // operations in which it was waited for
	MaxCaused uint64 `json:"max_caused_ns"`
	// when the operation of MaxCaused began on it, archive time; 0 if it caused none
	WorstAt otf2.Timestamp `json:"worst_at"`
}

func (b *Blame) blame(caused uint64, at otf2.Timestamp) { b.merge(&Blame{caused, 1, caused, at}) }

func (b *Blame) merge(o *Blame) {
	b.Caused += o.Caused
	b.Last += o.Last
	if o.MaxCaused > b.MaxCaused {
		b.MaxCaused, b.WorstAt = o.MaxCaused, o.WorstAt
	}
}

// startUpOf sums up the first collectives of communicators.
func startUpOf(ranks []Rank, first []Arrival) StartUp {
	s := StartUp{Collectives: uint64(len(first))}
	caused := make([]uint64, len(ranks))
	for i := range first {
		a := &first[i]
		s.Waited += a.caused
		if a.caused > 0 {
			caused[a.Culprit] += a.caused
		}
	}
	for i, c := range caused {
		if c > s.Caused {
			s.Rank, s.Host, s.Caused = ranks[i].Rank, ranks[i].Host, c
		}
	}
	return s
}
