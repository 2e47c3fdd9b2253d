// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Start-up: processes begin at different times, and NCCL makes its connections in a communicator's first launch. What
// that takes, and what is waited there, is shown separately. Of one member its first launch on the communicator is
// start-up (Operation.StartUp); of a collective, which all members wait in, the communicator's first one ([StartUps]);
// of messages the first of each pair of ranks.

// IsStartUp tells whether an operation is of start-up. first: it is the first one of its kind that is seen. Where
// recording, or what is looked at, begins later, as its ordinal tells, it is not.
func IsStartUp(first bool, ordinal uint64) bool { return first && ordinal == 0 }

// StartUps are the communicators that have had their first collective.
type StartUps map[otf2.CommRef]bool

// Take takes the next collective of a communicator; of those of a launch the first. It tells whether it is of start-up.
func (s StartUps) Take(comm otf2.CommRef, ordinal uint64) bool {
	first := !s[comm]
	if first {
		s[comm] = true
	}
	return IsStartUp(first, ordinal)
}

// firstLaunch is a row's first launch on a communicator. A row of a communicator's rank has one communicator; those of
// other tools may have several.
type firstLaunch struct {
	comm   otf2.CommRef
	enter  uint64
	known  bool
	others map[otf2.CommRef]uint64
}

// noLaunch is the number of no region.
const noLaunch = NoRegion - 1

// startUp tells whether the operation belongs to the member's first launch on its communicator.
func (row *Row) startUp(o *Operation) bool {
	f := &row.first
	if f.known && f.comm == o.Comm {
		return f.enter == o.Enter
	}
	enter, seen := f.others[o.Comm]
	if seen {
		return enter == o.Enter
	}
	is := IsStartUp(true, o.Ordinal)
	enter = o.Enter
	if !is || enter == NoRegion { // outside of regions each operation is a launch
		enter = noLaunch
	}
	if !f.known {
		f.comm, f.enter, f.known = o.Comm, enter, true
		return is
	}
	if f.others == nil {
		f.others = make(map[otf2.CommRef]uint64)
	}
	f.others[o.Comm] = enter
	return is
}
