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
