// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"ncclotf2/otf2"
	"ncclotf2/shard"
)

// oddity is something that should not be, or that a reader of the archive must know: counted by kind.
type oddity int

const (
	OddStrayStop           oddity = iota // stop of an event that is not open
	OddStrayState                        // state of an event that is not open
	OddLateChild                         // KernelCh whose operation was written already or is not known
	OddForeign                           // event with a context that is not this process's
	OddUnfinishedCall                    // GroupApi without stop
	OddIncompleteOperation               // operation written before all its children had ended
	OddImplausible                       // plan whose GPU times cannot be true
	OddDroppedMessage                    // P2pApi without P2p: NCCL dropped a message to oneself
	OddUnknownFunction                   // operation of a function not known here
	OddLateRecord                        // record that came after later ones had been taken
	numOddities
)

// oddityNames are the keys of shard.Counts.Oddities and the last parts of the archive's properties.
var oddityNames = [numOddities]string{
	"STRAY_STOPS", "STRAY_STATES", "LATE_CHILDREN", "FOREIGN_CONTEXTS", "UNFINISHED_CALLS",
	"INCOMPLETE_OPERATIONS", "IMPLAUSIBLE_GPU_TIMES", "DROPPED_MESSAGES", "UNKNOWN_FUNCTIONS", "LATE_RECORDS",
}

func (m *Model) oddity(o oddity) { m.oddities[o]++ }

// Late counts a record that came after later ones had been given.
func (m *Model) Late() { m.oddity(OddLateRecord) }

// Severities of markers.
const (
	SeverityLow  = otf2.MarkerSeverityLow
	SeverityHigh = otf2.MarkerSeverityHigh
)

// maxMarkers bounds what a sick run writes; the counts go on.
const maxMarkers = 1000

func (m *Model) mark(c *commRank, t uint64, s otf2.MarkerSeverity, category, text string) {
	m.markers++
	if m.markers > maxMarkers {
		return
	}
	loc := -1
	if c.loc != nil {
		loc = int(c.loc.Number)
	}
	m.process.Markers = append(m.process.Markers, shard.Marker{Time: t, Severity: s, Category: category, Text: text, Location: loc})
}
