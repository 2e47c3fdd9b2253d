// SPDX-License-Identifier: Apache-2.0

// Package effect reads single events: what does an event do to its row, and which region does it end?
package effect

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Kind is the effect of an event on its row.
type Kind uint8

// Kinds of steps.
const (
	None    Kind = iota // none of the following
	Enter               // a region begins
	Leave               // a region ends, see NewestOpen
	Request             // one of several operations in the innermost region begins
	Put                 // a transfer begins
	PutDone             // a transfer ends
)

// Step is the meaning of a single event, for callers that draw rows event by event. [facts.Reader] combines events to
// operations.
type Step struct {
	Kind   Kind
	Region otf2.RegionRef // that begins or ends
	Put    PutName        // of a transfer
	To     uint64         // rank in the window's communicator that a transfer goes to
	Bytes  uint64         // of a transfer that begins
}

// PutName identifies a transfer on its row; its end refers to it.
type PutName struct {
	Window   otf2.RmaWinRef
	Matching uint64
}

// StepOf returns the meaning of an event.
func StepOf(ev *otf2.Event) (s Step) {
	switch ev.Kind {
	case otf2.EventEnter:
		s.Kind, s.Region = Enter, otf2.RegionRef(ev.Args[0])
	case otf2.EventLeave:
		s.Kind, s.Region = Leave, otf2.RegionRef(ev.Args[0])
	case otf2.EventNonBlockingCollectiveRequest, otf2.EventMpiIrecvRequest, otf2.EventMpiIsend:
		s.Kind = Request
	case otf2.EventRmaPut:
		s.Kind, s.Put, s.To, s.Bytes = Put, PutName{otf2.RmaWinRef(ev.Args[0]), ev.Args[3]}, ev.Args[1], ev.Args[2]
	case otf2.EventRmaOpCompleteNonBlocking, otf2.EventRmaOpCompleteBlocking:
		s.Kind, s.Put = PutDone, PutName{otf2.RmaWinRef(ev.Args[0]), ev.Args[1]}
	}
	return s
}

// Regions nest in archives written by this project: if a region ends before an inner one, the end of the inner one was
// lost, and it ended with the outer one. On rows of other tools regions may overlap, as kernels on a queue do: Enter A,
// Enter B, Leave A, Leave B. There a Leave ends the region that it names, and the others stay open. NewestOpen and
// facts.IndexOpen are the one home of this rule.

// NewestOpen returns the index of the region that a Leave ends among the open regions of a row (newest last): the
// newest with this id; −1 if none is open.
func NewestOpen[T any](open []T, left otf2.RegionRef, region func(*T) otf2.RegionRef) int {
	for i := len(open) - 1; i >= 0; i-- {
		if region(&open[i]) == left {
			return i
		}
	}
	return -1
}
