// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/nccl-otf2/nccl-otf2/regions"

// Source states what the interval of an operation means; later values state more.
type Source uint8

// Sources of times, as TIMING_SOURCE names them.
const (
	SourceUnknown  Source = iota // the archive does not say
	SourceDuration               // how long it ran, not when: of imported data
	SourceEnqueue                // when it was enqueued, not how long it ran
	SourceCall                   // when a thread was in the call that is the operation: MPI's, as Score-P records them
	SourceNetwork                // when its network traffic was
	SourceGPU                    // when it ran on the GPU
	NumSources
)

// sources states for each source what its times can be used for.
var sources = [NumSources]struct {
	name   string
	length bool // the interval is as long as the operation ran
	placed bool // begin and end can be compared with other members'
}{
	SourceUnknown:  {"", true, false},
	SourceDuration: {regions.TimingDuration, true, false},
	SourceEnqueue:  {regions.TimingEnqueue, false, false},
	SourceCall:     {"call", true, true},
	SourceNetwork:  {regions.TimingNetwork, true, true},
	SourceGPU:      {regions.TimingGPU, true, true},
}

// LaunchedOnly follows the names of operations with SourceEnqueue where they are shown beside others.
const LaunchedOnly = " (launch only)"

// String returns the value of TIMING_SOURCE, "call" for SourceCall, "" for SourceUnknown.
func (s Source) String() string { return sources[s].name }

// HasLength reports whether the interval is as long as the operation ran, so that it has a bandwidth.
func (s Source) HasLength() bool { return sources[s].length }

// HasPlace reports whether begin and end state when the operation ran, so that members of one source can be compared.
// In an archive without TIMING_SOURCE all times are of one unknown kind and can be compared.
func (s Source) HasPlace() bool { return sources[s].placed }

// SourceOf returns the source with a name, SourceUnknown for an unknown one.
func SourceOf(name string) Source {
	for i := range sources {
		if sources[i].name == name {
			return Source(i)
		}
	}
	return SourceUnknown
}
