// SPDX-License-Identifier: Apache-2.0

// Package loss has the reasons for which data are missing, as shards and archives state them.
package loss

// WithCollector is the reason, in Counts.Lost, of operations in the memory of a collector that died; by function
// instead of event type.
const WithCollector = "collector died"

// Undrawn is the reason, in Counts.Lost, of recorded calls and operations that could not be drawn, by event type:
// there was no row for them, their communicator was gone or not known, or their end was not seen.
const Undrawn = "not drawn"

// Reasons, in Counts.Lost, of operations that an import lacks: counted by their writer; or only missing in the
// numbering, so that it is unknown whether the writer dropped them, left them out for their size, or wrote them
// elsewhere.
const (
	ByWriter  = "dropped by profiler"
	FromInput = "not in input"
)

// FromDisk is the reason, in Counts.Lost, of records of event files that were written and are not there any more,
// as far as they can be counted; by Records instead of event type.
const (
	FromDisk = "not on disk"
	Records  = "EventRecords"
)

// Keys of Counts.Oddities that the plugin counts from the beginning of the process, whoever collects.
const (
	LostMarks               = "LOST_MARKS"
	ForeignHandles          = "FOREIGN_HANDLES"
	UnknownStrings          = "UNKNOWN_STRINGS"
	BrokenRings             = "BROKEN_RINGS" // threads whose records could not be read to their end
	MissingBytes            = "MISSING_BYTES"
	CuptiLost               = "CUPTI_LOST"
	CuptiDropped            = "CUPTI_DROPPED"
	CuptiUnknown            = "CUPTI_UNKNOWN"
	CuptiBuffersOut         = "CUPTI_BUFFERS_OUT"
	CuptiBuffersStrange     = "CUPTI_BUFFERS_STRANGE"
	CuptiBuffersOverwritten = "CUPTI_BUFFERS_OVERWRITTEN"
	Unanswered              = "UNANSWERED"
)

// PluginOddities are these keys.
var PluginOddities = []string{
	LostMarks, ForeignHandles, UnknownStrings, BrokenRings, MissingBytes, CuptiLost, CuptiDropped, CuptiUnknown,
	CuptiBuffersOut, CuptiBuffersStrange, CuptiBuffersOverwritten, Unanswered,
}
