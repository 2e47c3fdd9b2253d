// SPDX-License-Identifier: Apache-2.0

package regions

import "github.com/nccl-otf2/nccl-otf2/otf2"

// EventWriter takes the events of one location in order of time. It is an event file's writer (otf2.EventWriter), or
// sums events up instead (package profile). The methods are those of otf2.EventWriter.
type EventWriter interface {
	Enter(time otf2.Timestamp, a *otf2.AttributeList, region otf2.RegionRef) error
	Leave(time otf2.Timestamp, a *otf2.AttributeList, region otf2.RegionRef) error
	MeasurementOnOff(time otf2.Timestamp, a *otf2.AttributeList, mode otf2.MeasurementMode) error
	Metric(time otf2.Timestamp, a *otf2.AttributeList, metric otf2.MetricRef, types []otf2.Type, values []uint64) error

	CommCreate(time otf2.Timestamp, a *otf2.AttributeList, comm otf2.CommRef) error
	CommDestroy(time otf2.Timestamp, a *otf2.AttributeList, comm otf2.CommRef) error
	MpiCollectiveBegin(time otf2.Timestamp, a *otf2.AttributeList) error
	MpiCollectiveEnd(time otf2.Timestamp, a *otf2.AttributeList, op otf2.CollectiveOp, comm otf2.CommRef, root uint32,
		sent, received uint64) error
	NonBlockingCollectiveRequest(time otf2.Timestamp, a *otf2.AttributeList, request uint64) error
	NonBlockingCollectiveComplete(time otf2.Timestamp, a *otf2.AttributeList, op otf2.CollectiveOp, comm otf2.CommRef,
		root uint32, sent, received, request uint64) error
	MpiIsend(time otf2.Timestamp, a *otf2.AttributeList, receiver uint32, comm otf2.CommRef, tag uint32, length,
		request uint64) error
	MpiIsendComplete(time otf2.Timestamp, a *otf2.AttributeList, request uint64) error
	MpiIrecvRequest(time otf2.Timestamp, a *otf2.AttributeList, request uint64) error
	MpiIrecv(time otf2.Timestamp, a *otf2.AttributeList, sender uint32, comm otf2.CommRef, tag uint32, length,
		request uint64) error

	RmaPut(time otf2.Timestamp, a *otf2.AttributeList, win otf2.RmaWinRef, remote uint32, bytes, matching uint64) error
	RmaOpCompleteNonBlocking(time otf2.Timestamp, a *otf2.AttributeList, win otf2.RmaWinRef, matching uint64) error

	// Events is the number of events, LastTime the time of the last one. Size (bytes) and Flushed (events) describe the
	// file at the last flush.
	Events() uint64
	Flushed() uint64
	Size() int64
	LastTime() otf2.Timestamp
}
