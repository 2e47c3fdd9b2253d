// SPDX-License-Identifier: Apache-2.0

package view

import "fmt"

// Result says what a view holds and what it lacks.
type Result struct {
	Archive       string `json:"archive"`   // path of the anchor
	Rows          int    `json:"processes"` // that scout must be started with
	Ranks         int    `json:"ranks"`
	Hosts         int    `json:"hosts"`
	Communicators int    `json:"communicators"`
	Collectives   uint64 `json:"collectives"`
	Messages      uint64 `json:"messages"`
	Events        uint64 `json:"events"`

	// What ranks waited for each other, as scout counts it, of all.
	Waits Waits `json:"waits"`
	// Operations that are shown with their time but without wait states.
	Untimed Untimed `json:"without_wait_states"`
	// What it cost to show overlapping operations one after the other.
	Clipped Clipped `json:"clipped"`
	// Operations that are not shown, by reason: collectives once, messages once, messages that lack an end once an end.
	Dropped map[Reason]uint64 `json:"dropped"`
	// Members of communicators that left no data. The others' operations are shown without them.
	MembersWithoutData int `json:"members_without_data"`
	// Parts of operations whose bytes are not known; they are shown with one byte per rank.
	UnknownSizes uint64 `json:"unknown_sizes"`
	// Problems, one line each: files that could not be read to their end.
	Problems []string `json:"problems,omitempty"`
}

// Waits are sums of wait states over all ranks, ns.
type Waits struct {
	Recorded uint64 `json:"recorded_ns"` // of what all members recorded, in times that can be compared
	Shown    uint64 `json:"shown_ns"`    // of that, in the view
	// How much longer senders in the view waited for receivers than a receive of the same launch for its sender: where
	// it waits, scout does not look for them.
	Masked uint64 `json:"masked_ns"`
}

// Untimed counts operations without wait states by what keeps them from having any.
type Untimed struct {
	// collectives: some member has no such times, and no place among the others
	NoTimes uint64 `json:"no_comparable_times"`
	// collectives launched together with others, of which another one has the time
	Fused    uint64 `json:"fused"`
	Moved    uint64 `json:"moved"`    // collectives that begin later on some member, to make room
	Messages uint64 `json:"messages"` // that begin later, to make room
	// Sends that wait for their receiver by times that contradict those of other operations. Waiting for the sender is
	// shown.
	Receivers uint64 `json:"receivers"`
}

// Clipped counts, on all ranks, what is shorter than recorded.
type Clipped struct {
	Operations uint64 `json:"operations"`
	ToNothing  uint64 `json:"to_nothing"` // of them, those left without length
	Moved      uint64 `json:"moved"`      // begin later than recorded
	Time       uint64 `json:"time_ns"`
}

func (r *Result) drop(why Reason, n uint64) {
	if n > 0 {
		r.Dropped[why] += n
	}
}

// Lost is the number of operations that are not in the view.
func (r *Result) Lost() (n uint64) {
	for _, k := range r.Dropped {
		n += k
	}
	return n
}

func (r *Result) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}
