// SPDX-License-Identifier: Apache-2.0

package view

import "fmt"

// Result is what a Scalasca view holds and lacks.
type Result struct {
	Archive       string `json:"archive"`   // path of the anchor
	Rows          int    `json:"processes"` // to start scout with
	Ranks         int    `json:"ranks"`
	Hosts         int    `json:"hosts"`
	Communicators int    `json:"communicators"`
	Collectives   uint64 `json:"collectives"`
	Messages      uint64 `json:"messages"`
	Events        uint64 `json:"events"`

	// Waiting of all ranks for each other, as scout counts it.
	Waits Waits `json:"waits"`
	// Operations shown with their time but without wait states.
	Untimed Untimed `json:"without_wait_states"`
	// What showing overlapping operations one after the other changed.
	Clipped Clipped `json:"clipped"`
	// Operations not shown, by reason. A collective counts once, a message once, a message with one end once.
	Dropped map[Reason]uint64 `json:"dropped"`
	// Members of communicators that left no data. The others' operations are shown without them.
	MembersWithoutData int `json:"members_without_data"`
	// Parts of operations of unknown size; they are shown with one byte per rank.
	UnknownSizes uint64 `json:"unknown_sizes"`
	// Problems, one line each: files that could not be read to their end.
	Problems []string `json:"problems,omitempty"`
}

// Waits are sums of wait states over all ranks, ns.
type Waits struct {
	Recorded uint64 `json:"recorded_ns"` // in operations that all members recorded with comparable times
	Shown    uint64 `json:"shown_ns"`    // part of Recorded that the view shows
	// How much longer sends waited for receivers than receives of the same launch waited for senders, which hides the
	// former from scout.
	Masked uint64 `json:"masked_ns"`
}

// Untimed counts operations without wait states by cause.
type Untimed struct {
	// collectives: a member has no such times and cannot be placed among the others
	NoTimes uint64 `json:"no_comparable_times"`
	// collectives whose launch gives its time to another collective
	Fused    uint64 `json:"fused"`
	Moved    uint64 `json:"moved"`    // collectives that begin later on some member, to make room
	Messages uint64 `json:"messages"` // that begin later, to make room
	// Sends whose waiting for the receiver contradicts the times of other operations. The receiver's waiting is shown.
	Receivers uint64 `json:"receivers"`
}

// Clipped counts, over all ranks, operations shorter than recorded.
type Clipped struct {
	Operations uint64 `json:"operations"`
	ToNothing  uint64 `json:"to_nothing"` // of Operations: without length afterwards
	Moved      uint64 `json:"moved"`      // that begin later than recorded
	Time       uint64 `json:"time_ns"`
}

func (r *Result) countDropped(why Reason, n uint64) {
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
