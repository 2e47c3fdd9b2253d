// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Oddities: what should not occur, or what a reader must know. Each is counted, and some are marked on the timeline.
// tests/hazards.md describes their causes in NCCL.

// oddity is a kind of event or condition that should not occur, for example the stop of an event that is not open.
type oddity int

const (
	oddStrayStop           oddity = iota // stop of an event that is not open
	oddStrayState                        // state of an event that is not open
	oddLateChild                         // KernelCh whose operation was written already or is not known
	oddForeign                           // event whose context is not a communicator's
	oddUnfinishedCall                    // GroupApi or CeColl without stop
	oddIncompleteOperation               // operation written before all its children had ended
	oddImplausible                       // plan with impossible GPU times
	oddDroppedMessage                    // P2pApi without P2p: NCCL dropped a message to oneself
	oddUnknownFunction                   // operation of a function not known here
	oddLateRecord                        // record that came after later ones had been taken
	oddAfterFinalize                     // event of a communicator rank that was finalized: not drawn
	// operation drawn without its communicator: its size was never reported (API v1 … v3)
	oddUnknownCommSize
	// plan that NCCL reported at its capture and will not report at its replays: not drawn
	oddCaptureOnly
	oddForgottenCall // captured call dropped: too many were kept for replays
	// ProxyStep started again before it was posted; the earlier start does not count
	oddRepeatedStep
	oddUnstoppedStep  // ProxyStep that NCCL went past without stopping it
	oddForgottenEvent // ProxyOp, ProxyStep, KernelCh or NetPlugin dropped: too many were open
	// transfer, message or collective whose peer or root is not a known rank of the communicator: no record of it
	oddUnplacedTransfer
	oddUnsizedTransfer    // transfer whose size NCCL did not report: no RmaPut
	oddNetStop            // NetPlugin stopped that is not open: InfiniBand requests are stopped twice
	oddUnknownNet         // NetPlugin with a descriptor of a kind not known
	oddImplausibleChannel // KernelCh interval left out of its channel's row, with its plan's
	oddStrayPhaseEnd      // end of an application phase where none is open
	oddUnfinishedPhase    // application phase that was not ended
	// application phase that began or ended inside an NCCL group only: moved to the group's end
	oddCrossingPhase
	oddDeepPhase   // application phase inside too many others: not drawn
	oddTimesDiffer // plan whose kernel ran at other times by NCCL's stamps than by CUPTI
	oddMaskChanged // change of NCCL's activation mask by RAS, not by the plugin
	// operation written before its GPU's clock was known well: too many waited
	oddShortHold
	oddNoRow // event that needed one row more than maxRows
	numOddities
)

// OddityCaptureOnly counts plans that NCCL reported at their capture in a CUDA graph, and whose replays it does not
// report.
const OddityCaptureOnly = "CAPTURE_ONLY_PLANS"

// oddityNames are the keys of description.Counts.Oddities and the last parts of the archive's properties.
var oddityNames = [numOddities]string{
	"STRAY_STOPS", "STRAY_STATES", "LATE_CHILDREN", "FOREIGN_CONTEXTS", "UNFINISHED_CALLS",
	"INCOMPLETE_OPERATIONS", "IMPLAUSIBLE_GPU_TIMES", "DROPPED_MESSAGES", "UNKNOWN_FUNCTIONS", "LATE_RECORDS",
	"AFTER_FINALIZE", "UNKNOWN_COMM_SIZE", OddityCaptureOnly, "FORGOTTEN_CALLS",
	"REPEATED_STEPS", "UNSTOPPED_STEPS", "FORGOTTEN_EVENTS", "UNPLACED_TRANSFERS", "UNSIZED_TRANSFERS",
	"REPEATED_NET_STOPS", "UNKNOWN_NET_EVENTS", "IMPLAUSIBLE_CHANNEL_TIMES",
	"STRAY_PHASE_ENDS", "UNFINISHED_PHASES", "CROSSING_PHASES", "DEEP_PHASES",
	"GPU_TIMES_DIFFER", "MASK_CHANGED_BY_RAS", "SHORT_HOLDS", "NO_ROW",
}

// nonZero maps names to the counts that are not 0.
func nonZero(counts []uint64, names []string) map[string]uint64 {
	out := make(map[string]uint64)
	for i, n := range counts {
		if n > 0 {
			out[names[i]] = n
		}
	}
	return out
}

// ledger counts records and oddities, and keeps the markers.
type ledger struct {
	*setup
	first, last   uint64 // times of records
	starts, stops [shm.TypeCount]uint64
	states        [stateCount]uint64
	oddities      [numOddities]uint64
	undrawn       [shm.TypeCount]uint64 // see loss.Undrawn
	sources       map[string]uint64     // operations by timing source
	early         uint64                // operations whose end stamps are those of a part of the kernel
	changes       uint64                // see Model.Changes
	markers       int                   // of NCCL's side
	points        int                   // of the application's
}

func newLedger(s *setup) *ledger { return &ledger{setup: s, sources: make(map[string]uint64)} }

// extendTime extends the recorded time to t.
func (l *ledger) extendTime(t uint64) {
	if l.first == 0 || t < l.first {
		l.first = t
	}
}

func (l *ledger) countOddity(o oddity) { l.oddities[o]++ }

// loseUndrawn counts an event that cannot be drawn as lost, by type.
func (l *ledger) loseUndrawn(t shm.EventType) { l.undrawn[t]++ }

// loseSpans counts the calls among undrawable regions as lost.
func (l *ledger) loseSpans(spans []span) {
	for _, s := range spans {
		if c, ok := s.by.(*call); ok {
			l.loseUndrawn(c.eventType())
		}
	}
}

// Late counts a record that came after later ones had been taken.
func (m *Model) Late() { m.countOddity(oddLateRecord) }

// Severities of markers.
const (
	severityNone = otf2.MarkerSeverityNone
	SeverityLow  = otf2.MarkerSeverityLow
	SeverityHigh = otf2.MarkerSeverityHigh
)

// maxMarkers bounds the markers of NCCL's side, and by itself those of the application. Counts continue beyond it, and
// so do the regions of the application's points.
const maxMarkers = 1000

func (l *ledger) addMarker(loc *location, t uint64, s otf2.MarkerSeverity, category, text string) {
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
		description.Marker{Time: t, Severity: s, Category: category, Text: text, Location: number})
}
