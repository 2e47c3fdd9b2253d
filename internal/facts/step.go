// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/nccl-otf2/nccl-otf2/otf2"

// StepKind is what an event does on its row.
type StepKind uint8

// Kinds of steps.
const (
	NoStep      StepKind = iota // nothing of the following
	StepEnter                   // a region begins
	StepLeave                   // a region ends, see NewestOpen
	StepRequest                 // an operation begins within the innermost region, one of several
	StepPut                     // a transfer begins
	StepPutDone                 // a transfer ends
)

// Step is what one event tells by itself. [Reader] puts together what several tell; who draws rows as they are needs
// the steps, one by one.
type Step struct {
	Kind   StepKind
	Region otf2.RegionRef // that begins or ends
	Put    PutName        // of a transfer
	To     uint64         // rank in the window's communicator that a transfer goes to
	Bytes  uint64         // of a transfer that begins
}

// PutName is what the end of a transfer names it by, on its row.
type PutName struct {
	Window   otf2.RmaWinRef
	Matching uint64
}

// StepOf tells what an event does.
func StepOf(ev *otf2.Event) (s Step) {
	switch ev.Kind {
	case otf2.EventEnter:
		s.Kind, s.Region = StepEnter, otf2.RegionRef(ev.Args[0])
	case otf2.EventLeave:
		s.Kind, s.Region = StepLeave, otf2.RegionRef(ev.Args[0])
	case otf2.EventNonBlockingCollectiveRequest, otf2.EventMpiIrecvRequest, otf2.EventMpiIsend:
		s.Kind = StepRequest
	case otf2.EventRmaPut:
		s.Kind, s.Put, s.To, s.Bytes = StepPut, PutName{otf2.RmaWinRef(ev.Args[0]), ev.Args[3]}, ev.Args[1], ev.Args[2]
	case otf2.EventRmaOpCompleteNonBlocking, otf2.EventRmaOpCompleteBlocking:
		s.Kind, s.Put = StepPutDone, PutName{otf2.RmaWinRef(ev.Args[0]), ev.Args[1]}
	}
	return s
}
