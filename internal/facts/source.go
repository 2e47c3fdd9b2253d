// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/nccl-otf2/nccl-otf2/regions"

// Source is what the interval of an operation is; later ones say more.
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

// sources is the one table of what times are good for.
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

// LaunchedOnly stands behind the names of operations whose interval is of SourceEnqueue, where it is shown beside
// others'.
const LaunchedOnly = " (launch only)"

// String is the name that TIMING_SOURCE has for it, "call" for SourceCall, "" for SourceUnknown.
func (s Source) String() string { return sources[s].name }

// HasLength tells whether the interval is as long as the operation ran, so that it has a bandwidth.
func (s Source) HasLength() bool { return sources[s].length }

// HasPlace tells whether begin and end say when the operation ran, so that members of one source can be compared. Where
// an archive has no TIMING_SOURCE at all its times are of one unknown kind, and compare.
func (s Source) HasPlace() bool { return sources[s].placed }

// SourceOf finds a source by its name; names that are not known give SourceUnknown.
func SourceOf(name string) Source {
	for i := range sources {
		if sources[i].name == name {
			return Source(i)
		}
	}
	return SourceUnknown
}
