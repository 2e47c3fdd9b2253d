// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/phases"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Observer is shown what Observe reads, in the same pass over the events.
type Observer struct {
	// Selection is what is looked at: what follows is given what belongs to it, but for Lane, and the report is of it.
	// nil: everything.
	Selection *selection.Selection
	// Lane, if set, is called for each part of the archive's processes; what it returns is given every event of them,
	// those of a location in order, on a goroutine of the part. Events are valid during the call.
	Lane func() func(*otf2.Event)
	// Part, if set, is given each part of an operation, those of a location in the order of their ends, on the caller's
	// goroutine. It is valid during the call.
	Part func(*Part)
	// Operation, if set, is given each of these parts as package analysis has it, before Part.
	Operation func(*analysis.Operation)
	// Waited, if set, is given the waits that are in the report's WaitStates, on the caller's goroutine.
	Waited func(*waits.Wait)
	// Charged, if set, is given what goes back to a rank of the world of the waits between two times, ns of all that
	// waited, on the caller's goroutine: what the windows of WaitStates.OverTime are sums of; of is one of
	// causes.OwnKinds. What is charged for one operation follows each other.
	Charged func(rank int, of causes.Kind, begin, end otf2.Timestamp, ns float64)
	// Path, if set, keeps the steps of critical paths; the report's CriticalPath then has a Trace.
	Path criticalpath.Tracer
	// Phase, if set, is given the phases that have ended, as phases.Each has them, those of a location in order, on the
	// goroutines of the archive's parts: several at a time.
	Phase func(*phases.Occurrence)
}
