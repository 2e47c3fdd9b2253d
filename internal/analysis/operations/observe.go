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

// Observer receives what Observe reads, in the same pass over the events.
type Observer struct {
	// Selection limits the report, and what all functions below except Lane receive; nil: everything.
	Selection *selection.Selection
	// Lane, if set, is called for each part of the archive's processes. The function it returns receives every event
	// of that part, in order for each location, on the part's goroutine. Events are valid during the call.
	Lane func() func(*otf2.Event)
	// Part, if set, receives each part of an operation, for each location in the order of their ends, on the caller's
	// goroutine. The part is valid during the call.
	Part func(*Part)
	// Operation, if set, receives the same parts in the form of package analysis, before Part.
	Operation func(*analysis.Operation)
	// Waited, if set, receives the waits counted in the report's WaitStates, on the caller's goroutine.
	Waited func(*waits.Wait)
	// Charged, if set, receives what a rank of the world is charged for waits between two times, on the caller's
	// goroutine; ns is the sum over all ranks that waited, and of is one of causes.OwnKinds. The windows of
	// WaitStates.OverTime are sums of these charges. The charges for one operation come in direct succession.
	Charged func(rank int, of causes.Kind, begin, end otf2.Timestamp, ns float64)
	// Path, if set, keeps the steps of critical paths; the report's CriticalPath then has a Trace.
	Path criticalpath.Tracer
	// Phase, if set, receives the phases that have ended, as from phases.Each, in order for each location. It is
	// called on the goroutines of several parts of the archive concurrently.
	Phase func(*phases.Occurrence)
}
