// SPDX-License-Identifier: Apache-2.0

package view

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts/effect"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// simpleWriter writes one row of a simple view.
type simpleWriter struct {
	*simple
	w    *otf2.EventWriter
	last otf2.Timestamp
	any  bool // whether last is set
	err  error
	list otf2.AttributeList

	pending  map[uint64][]otf2.AttributeValue // attributes of requests that have not ended
	open     uint64                           // the request of the open collective, if within is set
	within   bool
	messages bool // messages were sent or received
	res      SimpleResult
}

// simpleForms are the conversions of events, by kind. Events of other kinds are left out and counted.
var simpleForms = map[otf2.EventKind]func(*simpleWriter, *otf2.Event){
	otf2.EventEnter:              (*simpleWriter).copyEvent,
	otf2.EventLeave:              (*simpleWriter).copyEvent,
	otf2.EventMeasurementOnOff:   (*simpleWriter).copyEvent,
	otf2.EventMpiCollectiveBegin: (*simpleWriter).copyEvent,
	otf2.EventMpiCollectiveEnd:   (*simpleWriter).collectiveEnd,
	otf2.EventMetric:             func(sw *simpleWriter, _ *otf2.Event) { sw.res.Metrics++ },

	otf2.EventNonBlockingCollectiveRequest:  (*simpleWriter).collectiveRequest,
	otf2.EventNonBlockingCollectiveComplete: (*simpleWriter).collectiveComplete,

	otf2.EventMpiSend:          (*simpleWriter).writeSend,
	otf2.EventMpiIsend:         (*simpleWriter).writeSend,
	otf2.EventMpiIsendComplete: func(*simpleWriter, *otf2.Event) {},
	otf2.EventMpiIrecvRequest:  func(sw *simpleWriter, ev *otf2.Event) { sw.keepRequest(ev) },
	otf2.EventMpiRecv:          (*simpleWriter).writeReceive,
	otf2.EventMpiIrecv:         (*simpleWriter).writeReceive,

	otf2.EventRmaPut:                   (*simpleWriter).writeTransfer,
	otf2.EventRmaOpCompleteNonBlocking: func(*simpleWriter, *otf2.Event) {},
	otf2.EventRmaOpCompleteBlocking:    func(*simpleWriter, *otf2.Event) {},

	otf2.EventCommCreate:  (*simpleWriter).copyEvent,
	otf2.EventCommDestroy: (*simpleWriter).copyEvent,
}

func (sw *simpleWriter) writeEvent(ev *otf2.Event) {
	form, known := simpleForms[ev.Kind]
	if !known {
		sw.res.Others++
		return
	}
	form(sw, ev)
}

// nextTime returns an event's time, increased if necessary to follow the previous event, so that readers that sort
// events by time keep their order. The greatest possible time is not increased.
func (sw *simpleWriter) nextTime(t otf2.Timestamp) otf2.Timestamp {
	if sw.any && t <= sw.last {
		later := max(sw.last+1, sw.last)
		sw.res.MaxShift = max(sw.res.MaxShift, uint64(later-t))
		t = later
	}
	sw.last, sw.any = t, true
	return t
}

// attributes returns those values that mean the same in the view; nil: none.
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
	if err := sw.w.Write(kind, sw.nextTime(t), sw.attributes(values), args); sw.err == nil {
		sw.err = err
	}
}

func (sw *simpleWriter) copyEvent(ev *otf2.Event) {
	sw.write(ev.Kind, ev.Time, ev.Attributes, ev.Args...)
}

func (sw *simpleWriter) collectiveEnd(ev *otf2.Event) {
	sw.copyEvent(ev)
	sw.res.Collectives++
}

// keepRequest remembers the attributes of a request.
func (sw *simpleWriter) keepRequest(ev *otf2.Event) {
	sw.pending[ev.Args[0]] = append([]otf2.AttributeValue(nil), ev.Attributes...)
}

// takeRequest returns the attributes of a request and forgets them.
func (sw *simpleWriter) takeRequest(request uint64) []otf2.AttributeValue {
	values := sw.pending[request]
	delete(sw.pending, request)
	return values
}

// collectiveRequest begins a collective unless one is open: the first one of a launch has the launch's time.
func (sw *simpleWriter) collectiveRequest(ev *otf2.Event) {
	if sw.within {
		sw.keepRequest(ev)
		return
	}
	sw.open, sw.within = ev.Args[0], true
	sw.write(otf2.EventMpiCollectiveBegin, ev.Time, ev.Attributes)
}

// collectiveComplete ends the open collective. Others of its launch begin and end after it.
func (sw *simpleWriter) collectiveComplete(ev *otf2.Event) {
	last := len(ev.Args) - 1
	request := ev.Args[last]
	if sw.within && sw.open == request {
		sw.within = false
	} else {
		sw.write(otf2.EventMpiCollectiveBegin, ev.Time, sw.takeRequest(request))
	}
	sw.write(otf2.EventMpiCollectiveEnd, ev.Time, ev.Attributes, ev.Args[:last]...)
	sw.res.Collectives++
}

// writeSend writes a message with the receiver's rank in the world.
func (sw *simpleWriter) writeSend(ev *otf2.Event) {
	if sw.covered[otf2.CommRef(ev.Args[1])] {
		sw.res.Covered++
		return
	}
	if to, ok := sw.worldRank(sw.comms[otf2.CommRef(ev.Args[1])], ev.Args[0]); ok {
		sw.res.Messages++
		sw.writeMessage(otf2.EventMpiSend, ev, ev.Attributes, sw.world, to, ev.Args[2], ev.Args[3])
	} else {
		sw.res.Unplaced++
	}
}

// writeMessage writes a message on a communicator of all ranks.
func (sw *simpleWriter) writeMessage(kind otf2.EventKind, ev *otf2.Event, values []otf2.AttributeValue,
	comm otf2.CommRef, peer int, tag, length uint64) {
	sw.messages = true
	sw.write(kind, ev.Time, values, uint64(peer), uint64(comm), tag, length)
}

// writeReceive writes a message's end with the attributes of its request.
func (sw *simpleWriter) writeReceive(ev *otf2.Event) {
	values := ev.Attributes
	if ev.Kind == otf2.EventMpiIrecv {
		if kept := sw.takeRequest(ev.Args[4]); len(kept) > 0 {
			values = kept
		}
	}
	if sw.covered[otf2.CommRef(ev.Args[1])] {
		return
	}
	if from, ok := sw.worldRank(sw.comms[otf2.CommRef(ev.Args[1])], ev.Args[0]); ok {
		sw.writeMessage(otf2.EventMpiRecv, ev, values, sw.world, from, ev.Args[2], ev.Args[3])
	} else {
		sw.res.Unplaced++
	}
}

// writeTransfer writes a transfer as a message.
func (sw *simpleWriter) writeTransfer(ev *otf2.Event) {
	step := effect.StepOf(ev)
	c := sw.windows[step.Put.Window]
	if c == nil || !c.Network {
		sw.res.Others++
		return
	}
	if to, ok := sw.worldRank(c, step.To); ok {
		sw.res.Messages++
		sw.res.Transfers++
		sw.writeMessage(otf2.EventMpiSend, ev, ev.Attributes, sw.network, to, 0, step.Bytes)
	} else {
		sw.res.Unplaced++
	}
}
