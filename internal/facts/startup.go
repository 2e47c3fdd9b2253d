// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Start-up: processes begin at different times, and NCCL connects in a communicator's first launch. Products show this
// time, and the waiting in it, separately. Start-up is a member's first launch on a communicator (Operation.StartUp),
// the first collective of a communicator ([StartUps]), and the first message of each pair of ranks.

// IsStartUp reports whether an operation is start-up. first: it is the first of its kind that was seen. It is not
// start-up if recording or the selection began later, as its ordinal shows.
func IsStartUp(first bool, ordinal uint64) bool { return first && ordinal == 0 }

// StartUps holds the communicators that have had their first collective.
type StartUps map[otf2.CommRef]bool

// AddCollective takes the next collective of a communicator, the first one of each launch, and reports whether it is
// start-up.
func (s StartUps) AddCollective(comm otf2.CommRef, ordinal uint64) bool {
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

// noLaunch stands for no launch.
const noLaunch = NoRegion - 1

// startUp reports whether the operation belongs to the member's first launch on its communicator.
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
