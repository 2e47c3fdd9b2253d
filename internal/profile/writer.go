// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Process sums up the timeline of one process as package regions makes it.
type Process struct {
	*Aggregator
	names *localNames
}

// NewProcess returns a Process. p is the description that the model fills in.
func NewProcess(p *description.Process) *Process {
	names := &localNames{Names: facts.ShardNames(p), process: p, locations: make(map[otf2.LocationRef]Location)}
	g := NewAggregator(names, nil)
	g.samples = true
	return &Process{g, names}
}

// Writer replaces an event file's writer for the events of one location.
type Writer struct {
	to     *Aggregator
	row    *row // nil before the first event
	event  otf2.Event
	args   [8]uint64
	last   otf2.Timestamp
	events uint64
}

var _ regions.EventWriter = (*Writer)(nil)

// EventWriter returns the writer of a location.
func (p *Process) EventWriter(loc description.Location) *Writer {
	l := Location{Kind: loc.Kind}
	if loc.Comm >= 0 && loc.Kind == description.KindRank {
		c := &p.names.process.Comms[loc.Comm]
		l.Ranks, l.Rank = c.NRanks, c.Rank
	}
	ref := otf2.LocationRef(loc.Number)
	p.names.locations[ref] = l
	return &Writer{to: p.Aggregator, event: otf2.Event{Location: ref}}
}

// putEvent passes an event on.
func (w *Writer) putEvent(kind otf2.EventKind, t otf2.Timestamp, a *otf2.AttributeList, args ...uint64) error {
	if t < w.last {
		return &otf2.TimeError{Time: t, Last: w.last}
	}
	w.last = t
	w.events++
	e := &w.event
	e.Time, e.Kind, e.Attributes = t, kind, a.Values()
	e.Args = append(w.args[:0], args...)
	if w.row == nil {
		w.row = w.to.row(e.Location)
	}
	w.to.event(w.row, e)
	return nil
}

// Enter is as [otf2.EventWriter.Enter]. Like all methods that follow, it fails only for a time before that of the last
// event.
func (w *Writer) Enter(t otf2.Timestamp, a *otf2.AttributeList, region otf2.RegionRef) error {
	return w.putEvent(otf2.EventEnter, t, a, uint64(region))
}

// Leave is as [otf2.EventWriter.Leave].
func (w *Writer) Leave(t otf2.Timestamp, a *otf2.AttributeList, region otf2.RegionRef) error {
	return w.putEvent(otf2.EventLeave, t, a, uint64(region))
}

// MeasurementOnOff is as [otf2.EventWriter.MeasurementOnOff].
func (w *Writer) MeasurementOnOff(t otf2.Timestamp, a *otf2.AttributeList, mode otf2.MeasurementMode) error {
	return w.putEvent(otf2.EventMeasurementOnOff, t, a, uint64(mode))
}

// Metric ignores values of metrics, which are not summed up.
func (w *Writer) Metric(t otf2.Timestamp, _ *otf2.AttributeList, _ otf2.MetricRef, _ []otf2.Type, _ []uint64) error {
	w.last = max(w.last, t)
	w.events++
	return nil
}

// CommCreate is as [otf2.EventWriter.CommCreate].
func (w *Writer) CommCreate(t otf2.Timestamp, a *otf2.AttributeList, comm otf2.CommRef) error {
	return w.putEvent(otf2.EventCommCreate, t, a, uint64(comm))
}

// CommDestroy is as [otf2.EventWriter.CommDestroy].
func (w *Writer) CommDestroy(t otf2.Timestamp, a *otf2.AttributeList, comm otf2.CommRef) error {
	return w.putEvent(otf2.EventCommDestroy, t, a, uint64(comm))
}

// MpiCollectiveBegin is as [otf2.EventWriter.MpiCollectiveBegin].
func (w *Writer) MpiCollectiveBegin(t otf2.Timestamp, a *otf2.AttributeList) error {
	return w.putEvent(otf2.EventMpiCollectiveBegin, t, a)
}

// MpiCollectiveEnd is as [otf2.EventWriter.MpiCollectiveEnd].
func (w *Writer) MpiCollectiveEnd(t otf2.Timestamp, a *otf2.AttributeList, op otf2.CollectiveOp, comm otf2.CommRef,
	root uint32, sent, received uint64) error {
	return w.putEvent(otf2.EventMpiCollectiveEnd, t, a, uint64(op), uint64(comm), uint64(root), sent, received)
}

// NonBlockingCollectiveRequest is as [otf2.EventWriter.NonBlockingCollectiveRequest].
func (w *Writer) NonBlockingCollectiveRequest(t otf2.Timestamp, a *otf2.AttributeList, request uint64) error {
	return w.putEvent(otf2.EventNonBlockingCollectiveRequest, t, a, request)
}

// NonBlockingCollectiveComplete is as [otf2.EventWriter.NonBlockingCollectiveComplete].
func (w *Writer) NonBlockingCollectiveComplete(
	t otf2.Timestamp, a *otf2.AttributeList, op otf2.CollectiveOp, comm otf2.CommRef, root uint32, sent, received,
	request uint64) error {
	return w.putEvent(otf2.EventNonBlockingCollectiveComplete, t, a, uint64(op), uint64(comm), uint64(root), sent,
		received, request)
}

// MpiIsend is as [otf2.EventWriter.MpiIsend].
func (w *Writer) MpiIsend(t otf2.Timestamp, a *otf2.AttributeList, receiver uint32, comm otf2.CommRef, tag uint32,
	length, request uint64) error {
	return w.putEvent(otf2.EventMpiIsend, t, a, uint64(receiver), uint64(comm), uint64(tag), length, request)
}

// MpiIsendComplete is as [otf2.EventWriter.MpiIsendComplete].
func (w *Writer) MpiIsendComplete(t otf2.Timestamp, a *otf2.AttributeList, request uint64) error {
	return w.putEvent(otf2.EventMpiIsendComplete, t, a, request)
}

// MpiIrecvRequest is as [otf2.EventWriter.MpiIrecvRequest].
func (w *Writer) MpiIrecvRequest(t otf2.Timestamp, a *otf2.AttributeList, request uint64) error {
	return w.putEvent(otf2.EventMpiIrecvRequest, t, a, request)
}

// MpiIrecv is as [otf2.EventWriter.MpiIrecv].
func (w *Writer) MpiIrecv(t otf2.Timestamp, a *otf2.AttributeList, sender uint32, comm otf2.CommRef, tag uint32, length,
	request uint64) error {
	return w.putEvent(otf2.EventMpiIrecv, t, a, uint64(sender), uint64(comm), uint64(tag), length, request)
}

// RmaPut is as [otf2.EventWriter.RmaPut].
func (w *Writer) RmaPut(t otf2.Timestamp, a *otf2.AttributeList, win otf2.RmaWinRef, remote uint32, bytes,
	matching uint64) error {
	return w.putEvent(otf2.EventRmaPut, t, a, uint64(win), uint64(remote), bytes, matching)
}

// RmaOpCompleteNonBlocking is as [otf2.EventWriter.RmaOpCompleteNonBlocking].
func (w *Writer) RmaOpCompleteNonBlocking(t otf2.Timestamp, a *otf2.AttributeList, win otf2.RmaWinRef,
	matching uint64) error {
	return w.putEvent(otf2.EventRmaOpCompleteNonBlocking, t, a, uint64(win), matching)
}

// Events returns the number of events written.
func (w *Writer) Events() uint64 { return w.events }

// Flushed is equal to Events.
func (w *Writer) Flushed() uint64 { return w.events }

// Size is 0, because no file is written.
func (w *Writer) Size() int64 { return 0 }

// LastTime returns the time of the last event.
func (w *Writer) LastTime() otf2.Timestamp { return w.last }
