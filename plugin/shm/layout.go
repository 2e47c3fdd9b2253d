// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// Version is the layout's version: plugin/api/generate/table.go has its number.
const Version = api.Layout

// ClockSource says what a process's ticks are.
type ClockSource uint32

// String gives the name that provenance.Clock.Source uses.
func (s ClockSource) String() string {
	switch s {
	case ClockMonotonic:
		return "monotonic"
	case ClockTSC:
		return "tsc"
	case ClockCNTVCT:
		return "cntvct"
	case ClockHost:
		return "host"
	}
	return "unknown"
}

// LossReason says why the plugin did not record something.
type LossReason int

// String gives the key that description.Counts.Lost uses.
func (r LossReason) String() string {
	return [LossReasons]string{"memory", "stop-memory", "ring", "comm", "fork", "disk"}[r]
}

// Library is the library that called the plugin.
type Library uint32

// String gives the library's usual name, "" if it is unknown.
func (l Library) String() string {
	switch l {
	case LibraryNCCL:
		return "NCCL"
	case LibraryRCCL:
		return "RCCL"
	}
	return ""
}

// MemoryKind says where a process's memory lies.
type MemoryKind uint32

// Callback is one of the plugin's functions whose cost is measured.
type Callback int

// String is the callback's name.
func (c Callback) String() string { return [Callbacks]string{"start", "stop", "state"}[c] }

// Window says which operations of a communicator rank are recorded: those with First ≤ ordinal < Last.
// Ordinals count from 0 on each communicator, the same on all its members: collectives as the application
// calls them, apart from them those that replayed graphs bring. Messages go with the next collective; on
// communicators without any they count themselves. It holds while RecordInWindow is set.
type Window struct{ First, Last uint64 }

// CollectorState is what the plugin waits for at its start.
type CollectorState uint32

// CuptiState is what became of CUPTI in the process.
type CuptiState uint32

var cuptiStateNames = [...]string{"off", "on", "no library", "busy", "failed", "ended"}

// String is the state in a word or two.
func (s CuptiState) String() string {
	if int(s) < len(cuptiStateNames) {
		return cuptiStateNames[s]
	}
	return fmt.Sprintf("CuptiState(%d)", uint32(s))
}

// WithheldWhy is the reason why Header.Withheld was not requested.
type WithheldWhy uint32

// ScorepState reports whether NCCL's calls are forwarded to a Score-P measurement in the process.
type ScorepState uint32

var scorepStateNames = [...]string{"off", "on", "absent", "unusable", "no calls"}

// String is the state in a word or two.
func (s ScorepState) String() string {
	if int(s) < len(scorepStateNames) {
		return scorepStateNames[s]
	}
	return fmt.Sprintf("ScorepState(%d)", uint32(s))
}

// ScorepModel is how Score-P sees the threads of the process.
type ScorepModel uint32

// As Score-P names them.
var scorepModelNames = [...]string{"unknown", "none", "omp", "pthread"}

// String is the model as Score-P names it.
func (m ScorepModel) String() string {
	if int(m) < len(scorepModelNames) {
		return scorepModelNames[m]
	}
	return fmt.Sprintf("ScorepModel(%d)", uint32(m))
}

// ScorepForwarded is what shards call the number of calls that were forwarded, ScorepOtherThreads that of
// ScorepKeptThread.
const (
	ScorepForwarded    = "FORWARDED"
	ScorepOtherThreads = "OTHER_THREADS"
)

// scorepKeptNames are the reasons as shards name them.
var scorepKeptNames = [ScorepKeptReasons]string{ScorepOtherThreads, "OUTSIDE", "PAUSED", "UNDEFINED", "MEMORY"}

// Sizes of structs; a test compares them with C.
const (
	HeaderSize = 2 * PageSize // of Header

	ringSize      = 1152
	commSize      = 192
	frameHeadSize = 32
	chunkPayload  = ChunkSize - ChunkHead
)
