// SPDX-License-Identifier: Apache-2.0

package view

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// simpleWriter writes one row of a simple view.
type simpleWriter struct {
	*simple
	w    *otf2.EventWriter
	last otf2.Timestamp
	any  bool // last is set
	err  error
	list otf2.AttributeList

	pending  map[uint64][]otf2.AttributeValue // what was said of requests that have not ended
	open     uint64                           // the request of the collective that is under way, if collective is set
	within   bool
	messages bool // sent or received
	res      SimpleResult
}

// simpleForms are what becomes of events. Those of other kinds are left out and counted.
var simpleForms = map[otf2.EventKind]func(*simpleWriter, *otf2.Event){
	otf2.EventEnter:              (*simpleWriter).copy,
	otf2.EventLeave:              (*simpleWriter).copy,
	otf2.EventMeasurementOnOff:   (*simpleWriter).copy,
	otf2.EventMpiCollectiveBegin: (*simpleWriter).copy,
	otf2.EventMpiCollectiveEnd:   (*simpleWriter).collectiveEnd,
	otf2.EventMetric:             func(sw *simpleWriter, _ *otf2.Event) { sw.res.Metrics++ },

	otf2.EventNonBlockingCollectiveRequest:  (*simpleWriter).collectiveRequest,
	otf2.EventNonBlockingCollectiveComplete: (*simpleWriter).collectiveComplete,

	otf2.EventMpiSend:          (*simpleWriter).send,
	otf2.EventMpiIsend:         (*simpleWriter).send,
	otf2.EventMpiIsendComplete: func(*simpleWriter, *otf2.Event) {},
	otf2.EventMpiIrecvRequest:  func(sw *simpleWriter, ev *otf2.Event) { sw.keep(ev) },
	otf2.EventMpiRecv:          (*simpleWriter).receive,
	otf2.EventMpiIrecv:         (*simpleWriter).receive,

	otf2.EventRmaPut:                   (*simpleWriter).put,
	otf2.EventRmaOpCompleteNonBlocking: func(*simpleWriter, *otf2.Event) {},
	otf2.EventRmaOpCompleteBlocking:    func(*simpleWriter, *otf2.Event) {},

	otf2.EventCommCreate:  (*simpleWriter).copy,
	otf2.EventCommDestroy: (*simpleWriter).copy,
}

func (sw *simpleWriter) event(ev *otf2.Event) {
	form, known := simpleForms[ev.Kind]
	if !known {
		sw.res.Others++
		return
	}
	form(sw, ev)
}

// time is that of an event, behind the one before: readers that sort events by time keep their order then. Behind the
// last time that there is are no others.
func (sw *simpleWriter) time(t otf2.Timestamp) otf2.Timestamp {
	if sw.any && t <= sw.last {
		later := max(sw.last+1, sw.last)
		sw.res.MaxShift = max(sw.res.MaxShift, uint64(later-t))
		t = later
	}
	sw.last, sw.any = t, true
	return t
}

// attributes are those whose values mean the same in the view; nil: none.
func (sw *simpleWriter) attributes(values []otf2.AttributeValue) *otf2.AttributeList {
	sw.list.Reset()
	for _, v := range values {
		switch v.Type {
		case otf2.TypeLocation, otf2.TypeLocationGroup, otf2.TypeMetric, otf2.TypeRmaWin, otf2.TypeParameter,
			otf2.TypeSourceCodeLocation,
			otf2.TypeCallingContext, otf2.TypeInterruptGenerator, otf2.TypeIoFile, otf2.TypeIoHandle:
		default:
			sw.list.Add(v.ID, v.Type, v.Value())
		}
	}
	if sw.list.Len() == 0 {
		return nil
	}
	return &sw.list
}

func (sw *simpleWriter) write(kind otf2.EventKind, t otf2.Timestamp, values []otf2.AttributeValue, args ...uint64) {
	if err := sw.w.Write(kind, sw.time(t), sw.attributes(values), args); sw.err == nil {
		sw.err = err
	}
}

func (sw *simpleWriter) copy(ev *otf2.Event) { sw.write(ev.Kind, ev.Time, ev.Attributes, ev.Args...) }

func (sw *simpleWriter) collectiveEnd(ev *otf2.Event) {
	sw.copy(ev)
	sw.res.Collectives++
}

// keep remembers what is said of a request.
func (sw *simpleWriter) keep(ev *otf2.Event) {
	sw.pending[ev.Args[0]] = append([]otf2.AttributeValue(nil), ev.Attributes...)
}

// take gives it, and forgets it.
func (sw *simpleWriter) take(request uint64) []otf2.AttributeValue {
	values := sw.pending[request]
	delete(sw.pending, request)
	return values
}

// collectiveRequest begins a collective unless one is under way: of a launch of several the first has the time.
func (sw *simpleWriter) collectiveRequest(ev *otf2.Event) {
	if sw.within {
		sw.keep(ev)
		return
	}
	sw.open, sw.within = ev.Args[0], true
	sw.write(otf2.EventMpiCollectiveBegin, ev.Time, ev.Attributes)
}

// collectiveComplete ends the collective that is under way. Others of its launch begin and end behind it.
func (sw *simpleWriter) collectiveComplete(ev *otf2.Event) {
	last := len(ev.Args) - 1
	request := ev.Args[last]
	if sw.within && sw.open == request {
		sw.within = false
	} else {
		sw.write(otf2.EventMpiCollectiveBegin, ev.Time, sw.take(request))
	}
	sw.write(otf2.EventMpiCollectiveEnd, ev.Time, ev.Attributes, ev.Args[:last]...)
	sw.res.Collectives++
}

// send writes a message with the rank of the world that it goes to.
func (sw *simpleWriter) send(ev *otf2.Event) {
	if sw.covered[otf2.CommRef(ev.Args[1])] {
		sw.res.Covered++
		return
	}
	if to, ok := sw.rank(sw.comms[otf2.CommRef(ev.Args[1])], ev.Args[0]); ok {
		sw.res.Messages++
		sw.message(otf2.EventMpiSend, ev, ev.Attributes, sw.world, to, ev.Args[2], ev.Args[3])
	} else {
		sw.res.Unplaced++
	}
}

// message writes one on a communicator of all ranks.
func (sw *simpleWriter) message(kind otf2.EventKind, ev *otf2.Event, values []otf2.AttributeValue, comm otf2.CommRef,
	peer int, tag, length uint64) {
	sw.messages = true
	sw.write(kind, ev.Time, values, uint64(peer), uint64(comm), tag, length)
}

// receive writes a message's end, with what was said of its request.
func (sw *simpleWriter) receive(ev *otf2.Event) {
	values := ev.Attributes
	if ev.Kind == otf2.EventMpiIrecv {
		if kept := sw.take(ev.Args[4]); len(kept) > 0 {
			values = kept
		}
	}
	if sw.covered[otf2.CommRef(ev.Args[1])] {
		return
	}
	if from, ok := sw.rank(sw.comms[otf2.CommRef(ev.Args[1])], ev.Args[0]); ok {
		sw.message(otf2.EventMpiRecv, ev, values, sw.world, from, ev.Args[2], ev.Args[3])
	} else {
		sw.res.Unplaced++
	}
}

// put writes a transfer as a message.
func (sw *simpleWriter) put(ev *otf2.Event) {
	step := facts.StepOf(ev)
	c := sw.windows[step.Put.Window]
	if c == nil || !c.Network {
		sw.res.Others++
		return
	}
	if to, ok := sw.rank(c, step.To); ok {
		sw.res.Messages++
		sw.res.Transfers++
		sw.message(otf2.EventMpiSend, ev, ev.Attributes, sw.network, to, 0, step.Bytes)
	} else {
		sw.res.Unplaced++
	}
}
