// SPDX-License-Identifier: Apache-2.0

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
