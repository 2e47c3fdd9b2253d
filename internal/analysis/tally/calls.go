// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Calls say nothing of memory: what their buffers lay in is known when the operations that came of them are written.
// These name their call, and a call the group that it was made in. So calls are kept until all rows have been read, in
// archives that know memory at all.

// callKey is an event of a process.
type callKey struct {
	process otf2.LocationGroupRef
	event   uint64
}

// ended is a call that has returned.
type ended struct {
	callKey
	parent uint64 // event of the group that it was made in, 0: none
	region otf2.RegionRef
	took   uint64 // ns
}

// joined are calls, and which of them worked on a GPU's memory.
type joined struct {
	calls  map[otf2.RegionRef]string // regions of calls; nil: the archive knows of no memory, and nothing is kept
	of     map[otf2.LocationRef]otf2.LocationGroupRef
	ended  []ended
	device map[callKey]bool // named by operations on a GPU's memory
}

func newJoined(defs *otf2.Definitions, of map[otf2.LocationRef]otf2.LocationGroupRef) *joined {
	j := &joined{of: of, device: make(map[callKey]bool)}
	if slices.ContainsFunc(defs.Strings, func(s otf2.String) bool { return facts.OnGPU(s.Text) }) {
		j.calls = facts.CallRegions(defs)
	}
	return j
}

// works notes an operation on a GPU's memory by the call that it names.
func (j *joined) works(on otf2.LocationRef, call uint64) {
	if call != 0 {
		j.device[callKey{j.of[on], call}] = true
	}
}

// keeps takes a region that has ended, and reports whether it is kept: a call.
func (j *joined) keeps(r *facts.Region) bool {
	if _, call := j.calls[r.Region]; !call || r.Event == 0 {
		return false
	}
	j.ended = append(j.ended, ended{callKey{j.of[r.Location], r.Event}, r.Parent, r.Region, uint64(r.End - r.Begin)})
	return true
}

func (j *joined) absorb(o *joined) {
	j.ended = append(j.ended, o.ended...)
	for k := range o.device {
		j.device[k] = true
	}
}

// settle gives the calls, and which of them worked on a GPU's memory; groups do with any call in them.
func (j *joined) settle(take func(region otf2.RegionRef, device bool, took uint64)) {
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
