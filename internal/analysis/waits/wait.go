// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Wait is one member's waiting for another at the begin of an operation, as defined in States. The messages of one
// launch are one wait, that of the message that waited longest.
type Wait struct {
	Kind         string // "collective", "late broadcast", "early reduce", "late sender", "late receiver"
	Comm         otf2.CommRef
	Communicator string
	Function     string
	Ordinal      uint64
	Rank         int // in the communicator
	Peer         int // rank at the other end of a message, otherwise −1
	World        int // the rank that waited, an index into WorldRanks
	For          int // the rank that was waited for, also an index into WorldRanks
	Begin        otf2.Timestamp
	// Since is when the first member began the operation, which decides whether it is selected; not after Begin.
	Since       otf2.Timestamp
	Time        uint64 // time of the member in the operation, ns
	Waited      uint64 // part of Time, ns
	Uncertainty uint64 // of Waited
	Stated      bool   // Uncertainty is known
	Source      string // source of the compared times: "gpu", "network", "recorded"
	StartUp     bool   // the first of several collectives on a communicator: not in the report's sums
	Skew        uint64 // ns from the first to the last begin of a collective
	Place       Place
}

// Place identifies the operation, or launch of several, in which a member waited.
type Place struct {
	Location             otf2.LocationRef
	Enter                uint64         // as in Part
	Region               otf2.RegionRef // of the launch
	Grouped              bool           // launched together with others: they have one time
	Source               string         // of the times: "gpu", "network", or "" if unknown
	Function             string
	Algo, Proto, Variant otf2.StringRef // undefined if unknown
	Size                 uint64         // as nccl-tests counts it
}

func placeOf(o *analysis.Operation) Place {
	return Place{
		Location: o.Location, Enter: o.Enter, Region: o.Region, Grouped: o.Grouped, Source: o.Source.String(),
		Function: o.Function,
		Algo:     o.Algo, Proto: o.Proto, Variant: o.Variant, Size: o.Size,
	}
}

// reportWaits passes on the waits in a collective.
func (w *Counter) reportWaits(a *Arrival, startUp bool) {
	if w.See == nil {
		return
	}
	for i := range a.Parts {
		if p := &a.Parts[i]; p.Waits > 0 {
			w.See(a.wait(p, startUp))
		}
	}
}

func (a *Arrival) wait(p *part, startUp bool) *Wait {
	return &Wait{
		Kind: waitKindName(a.kind), Comm: a.comm.Ref, Communicator: a.comm.Name, Function: a.function,
		Ordinal: a.ordinal,
		Rank:    p.member, Peer: -1, World: p.Rank, For: a.Culprit, Begin: p.Begin, Since: a.since, Time: p.Time,
		Waited:      p.Waits,
		Uncertainty: p.uncertainty, Stated: p.stated, Source: timesName(a.source), StartUp: startUp, Skew: a.skew,
		Place: p.place,
	}
}

func (p *messagePlan) wait() *Wait {
	return &Wait{
		Kind: waitKindName(p.kind), Comm: p.Comm.Ref, Communicator: p.Comm.Name, Function: p.function,
		Ordinal: p.ordinal,
		Rank:    p.member, Peer: p.peer, World: p.part.Rank, For: p.culprit, Begin: p.Begin,
		Since: min(p.since, p.Begin),
		Time:  p.Time, Waited: p.Waits,
		Uncertainty: p.uncertainty, Stated: p.stated, Source: timesName(p.source), Place: p.place,
	}
}

// named returns a function's name in tables. Functions that are not NCCL's have their paradigm added.
func named(c *membership.Communicator, function string) string {
	if c.Calls {
		return function + " (" + c.Paradigm() + ")"
	}
	return function
}
