// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// What should not be, or a reader must know: counts and markers. docs/hazards.md says what NCCL does that leads to
// them.

// oddity is something that should not be, or that a reader of the archive must know: counted by kind.
type oddity int

const (
	oddStrayStop           oddity = iota // stop of an event that is not open
	oddStrayState                        // state of an event that is not open
	oddLateChild                         // KernelCh whose operation was written already or is not known
	oddForeign                           // event with a context that is no communicator's
	oddUnfinishedCall                    // GroupApi or CeColl without stop
	oddIncompleteOperation               // operation written before all its children had ended
	oddImplausible                       // plan whose GPU times cannot be true
	oddDroppedMessage                    // P2pApi without P2p: NCCL dropped a message to oneself
	oddUnknownFunction                   // operation of a function not known here
	oddLateRecord                        // record that came after later ones had been taken
	oddAfterFinalize                     // event of a communicator rank that was finalized: not drawn
	// operation drawn without its communicator: its size was never reported (API v1 … v3)
	oddUnknownCommSize
	// plan that NCCL reported when it was captured, and will not at its replays: not drawn
	oddCaptureOnly
	oddForgottenCall // captured call forgotten: there were too many to keep for replays
	// ProxyStep started again before it was posted; the earlier start does not count
	oddRepeatedStep
	oddUnstoppedStep  // ProxyStep that NCCL went past without stopping it
	oddForgottenEvent // ProxyOp, ProxyStep, KernelCh or NetPlugin forgotten: too many were open
	// transfer, message or collective with a peer or root that is no rank of the communicator, or not known: no record
	// of it
	oddUnplacedTransfer
	oddUnsizedTransfer    // transfer whose size NCCL did not tell: no RmaPut
	oddNetStop            // NetPlugin stopped that is not open: InfiniBand requests are stopped twice
	oddUnknownNet         // NetPlugin with a descriptor of a kind not known
	oddImplausibleChannel // KernelCh interval left out of its channel's row, with its plan's
	oddStrayPhaseEnd      // end of an application phase where none is open
	oddUnfinishedPhase    // application phase that was not ended
	// application phase that began or ended inside an NCCL group only: moved to the group's end
	oddCrossingPhase
	oddDeepPhase   // application phase inside too many others: not drawn
	oddTimesDiffer // plan whose kernel ran at other times by NCCL's stamps than by CUPTI
	oddMaskChanged // change of NCCL's activation mask by somebody else than the plugin: RAS
	// operation written before its GPU's clock could be known as well as else: too many waited
	oddShortHold
	oddNoRow // thing to draw that would have needed one row more than there may be
	numOddities
)

// OddityCaptureOnly counts plans that NCCL reported when they were captured in a CUDA graph, and whose replays it does
// not report.
const OddityCaptureOnly = "CAPTURE_ONLY_PLANS"

// oddityNames are the keys of experiment.Counts.Oddities and the last parts of the archive's properties.
var oddityNames = [numOddities]string{
	"STRAY_STOPS", "STRAY_STATES", "LATE_CHILDREN", "FOREIGN_CONTEXTS", "UNFINISHED_CALLS",
	"INCOMPLETE_OPERATIONS", "IMPLAUSIBLE_GPU_TIMES", "DROPPED_MESSAGES", "UNKNOWN_FUNCTIONS", "LATE_RECORDS",
	"AFTER_FINALIZE", "UNKNOWN_COMM_SIZE", OddityCaptureOnly, "FORGOTTEN_CALLS",
	"REPEATED_STEPS", "UNSTOPPED_STEPS", "FORGOTTEN_EVENTS", "UNPLACED_TRANSFERS", "UNSIZED_TRANSFERS",
	"REPEATED_NET_STOPS", "UNKNOWN_NET_EVENTS", "IMPLAUSIBLE_CHANNEL_TIMES",
	"STRAY_PHASE_ENDS", "UNFINISHED_PHASES", "CROSSING_PHASES", "DEEP_PHASES",
	"GPU_TIMES_DIFFER", "MASK_CHANGED_BY_RAS", "SHORT_HOLDS", "NO_ROW",
}

// named gives counts their names, without those that are 0.
func named(counts []uint64, names []string) map[string]uint64 {
	out := make(map[string]uint64)
	for i, n := range counts {
		if n > 0 {
			out[names[i]] = n
		}
	}
	return out
}

// ledger counts what came and what is odd about it, and keeps the markers.
type ledger struct {
	*setup
	first, last   uint64 // times of records
	starts, stops [shm.TypeCount]uint64
	states        [stateCount]uint64
	oddities      [numOddities]uint64
	undrawn       [shm.TypeCount]uint64 // see experiment.LostUndrawn
	sources       map[string]uint64     // operations by timing source
	early         uint64                // operations whose end stamps are those of parts
	changes       uint64                // see Model.Changes
	markers       int                   // of NCCL's side
	points        int                   // of the application's
}

func newLedger(s *setup) *ledger { return &ledger{setup: s, sources: make(map[string]uint64)} }

// begins notes that something was at a time.
func (l *ledger) begins(t uint64) {
	if l.first == 0 || t < l.first {
		l.first = t
	}
}

func (l *ledger) oddity(o oddity) { l.oddities[o]++ }

// loseUndrawn counts an event of a type that cannot be drawn as lost.
func (l *ledger) loseUndrawn(t shm.EventType) { l.undrawn[t]++ }

// loseSpans counts the calls among regions that cannot be drawn as lost.
func (l *ledger) loseSpans(spans []span) {
	for _, s := range spans {
		if c, ok := s.by.(*call); ok {
			l.loseUndrawn(c.eventType())
		}
	}
}

// Late counts a record that came after later ones had been given.
func (m *Model) Late() { m.oddity(oddLateRecord) }

// Severities of markers.
const (
	severityNone = otf2.MarkerSeverityNone
	SeverityLow  = otf2.MarkerSeverityLow
	SeverityHigh = otf2.MarkerSeverityHigh
)

// maxMarkers bounds what a sick run writes, and by itself what a talkative application does; the counts
// and, of the application's points, the regions go on.
const maxMarkers = 1000

func (l *ledger) mark(loc *location, t uint64, s otf2.MarkerSeverity, category, text string) {
	n := &l.markers
	if category == categoryApplication {
		n = &l.points
	}
	if *n++; *n > maxMarkers {
		return
	}
	number := -1
	if loc != nil && !loc.over {
		number = int(loc.Number)
	}
	l.process.Markers = append(l.process.Markers,
		experiment.Marker{Time: t, Severity: s, Category: category, Text: text, Location: number})
}
