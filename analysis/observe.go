// SPDX-License-Identifier: Apache-2.0

package analysis

import "ncclotf2/otf2"

// Observer is shown what Observe reads, in the same pass over the events.
type Observer struct {
	// Lane, if set, is called for each part of the archive's processes; what it returns is given every event of them,
	// those of a location in order, on a goroutine of the part. Events are valid during the call.
	Lane func() func(*otf2.Event)
	// Waited, if set, is given the waits that are in the report's WaitStates, on the caller's goroutine.
	Waited func(*Wait)
}

// Wait is time that a member of an operation waited.
type Wait struct {
	WaitPlace
	Kind    string // as in WaitStates.Kinds
	StartUp bool   // in the first of several collectives of a communicator: only in WaitStates.StartUp
	Time    uint64 // ns, not 0
}

// WaitPlace is the operation, or the launch of several, in which was waited.
type WaitPlace struct {
	Location             otf2.LocationRef
	Region               otf2.RegionRef // of the launch
	Grouped              bool           // launched together with others: they have one time
	Source               string         // of the times: "gpu", "network" or "" if that is not told
	Function             string
	Algo, Proto, Variant otf2.StringRef // undefined if not told
	Size                 uint64         // as nccl-tests counts it
}

func placeOf(o *operation) WaitPlace {
	return WaitPlace{
		Location: o.location, Region: o.region, Grouped: o.grouped, Source: o.source.String(), Function: o.function,
		Algo: o.algo, Proto: o.proto, Variant: o.variant, Size: o.size,
	}
}

// tell shows the waits of some members to the observer.
func (w *waitCounter) tell(parts []part, kind waitKind, startUp bool) {
	if w.see == nil {
		return
	}
	for i := range parts {
		if p := &parts[i]; p.waits > 0 {
			w.see(&Wait{WaitPlace: p.place, Kind: waitKindNames[kind], StartUp: startUp, Time: p.waits})
		}
	}
}
