// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// ByRank says who waited for whom at the begin of collectives.
//
// It has the waits of States in collectives, by rank. Clocks of different hosts are compared as they are in the
// archive.
//
// A rank that is late to the first collective of a communicator started up late, often by more than all later waits.
// If more collectives follow, these waits are kept apart in StartUp.
type ByRank struct {
	Collectives uint64 `json:"collectives"` // collectives that were compared
	// LeftOut counts collectives without comparable times of two members, or not ended by all.
	LeftOut uint64               `json:"left_out"`
	Hosts   int                  `json:"hosts"`            // hosts whose clocks are compared
	Clocks  *property.HostClocks `json:"clocks,omitempty"` // how exact they are; nil: clocks are as recorded
	Total   uint64               `json:"total_ns"`         // over all ranks
	Ranks   []Rank               `json:"ranks"`
	StartUp StartUp              `json:"start_up"`
}

// StartUp is the waiting in the first collectives of communicators; it is not part of the other figures.
type StartUp struct {
	Collectives uint64 `json:"collectives"`
	Waited      uint64 `json:"waited_ns"` // over all ranks
	Rank        string `json:"rank"`      // rank that the others waited for most, "" if nobody waited
	Host        string `json:"host"`      // of that rank
	Caused      uint64 `json:"caused_ns"` // waiting for that rank
}

// Rank is one rank's waiting. A rank is a process, or one GPU of a process with several.
type Rank struct {
	Rank        string `json:"rank"`
	Host        string `json:"host"`
	Collectives uint64 `json:"collectives"`
	Time        uint64 `json:"time_ns"`   // in these collectives
	Waited      uint64 `json:"waited_ns"` // part of Time
	Blame

	NoData bool `json:"no_data,omitempty"` // it has no data
}

// Blame is the waiting for a rank, GPU or host.
type Blame struct {
	Caused    uint64 `json:"caused_ns"`
	Last      uint64 `json:"last"` // operations in which the others waited for it
	MaxCaused uint64 `json:"max_caused_ns"`
	// WorstAt is when the operation of MaxCaused began on it, archive time; 0 if it caused no waiting.
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
