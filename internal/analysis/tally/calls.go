// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Calls carry no information about memory: where their buffers lie is known only when the resulting operations are
// written. Operations name their call, and calls name the group that they were made in. So, in archives with
// information about memory, calls are kept until all rows have been read.

// callKey identifies an event of a process.
type callKey struct {
	process otf2.LocationGroupRef
	event   uint64
}

// ended is a call that has returned.
type ended struct {
	callKey
	parent uint64 // event of the group that the call was made in; 0: none
	region otf2.RegionRef
	took   uint64 // ns
}

// joined collects calls, and which of them worked on a GPU's memory.
type joined struct {
	calls  map[otf2.RegionRef]string // regions of calls; nil: the archive does not describe memory, so none are kept
	of     map[otf2.LocationRef]otf2.LocationGroupRef
	ended  []ended
	device map[callKey]bool // calls that are named by operations on a GPU's memory
}

func newJoined(defs *otf2.Definitions, of map[otf2.LocationRef]otf2.LocationGroupRef) *joined {
	j := &joined{of: of, device: make(map[callKey]bool)}
	if slices.ContainsFunc(defs.Strings, func(s otf2.String) bool { return facts.OnGPU(s.Text) }) {
		j.calls = naming.CallRegions(defs)
	}
	return j
}

// works marks the call that an operation on a GPU's memory names.
func (j *joined) works(on otf2.LocationRef, call uint64) {
	if call != 0 {
		j.device[callKey{j.of[on], call}] = true
	}
}

// keeps takes a region that has ended. It reports whether the region is a call, and so is kept until settle.
func (j *joined) keeps(r *facts.Region) bool {
	if _, call := j.calls[r.Region]; !call || r.Event == 0 {
		return false
	}
	j.ended = append(j.ended, ended{callKey{j.of[r.Location], r.Event}, r.Parent, r.Region, uint64(r.End - r.Begin)})
	return true
}

func (j *joined) addLane(o *joined) {
	j.ended = append(j.ended, o.ended...)
	maps.Copy(j.device, o.device)
}

// passCalls passes all kept calls to take, with whether they worked on a GPU's memory. A group did if any of its calls
// did.
func (j *joined) passCalls(take func(region otf2.RegionRef, device bool, took uint64)) {
	for i := range j.ended {
		if c := &j.ended[i]; c.parent != 0 && j.device[c.callKey] {
			j.device[callKey{c.process, c.parent}] = true
		}
	}
	for i := range j.ended {
		take(j.ended[i].region, j.device[j.ended[i].callKey], j.ended[i].took)
	}
	j.ended = nil
}
