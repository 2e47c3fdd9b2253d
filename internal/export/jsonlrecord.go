// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// record is an event record.
type record struct {
	typ, function string
	row           *row // the row that it was recorded on
	of            *row // row of its communicator rank; nil if unknown
	begin, end    otf2.Timestamp
	event, parent uint64 // 0: unknown
	details       func(*jsonWriter)
	// Threads that reported the start and stop; 0: the row's thread.
	startTID, stopTID uint64
}

// madeID is the prefix of generated ids. No event handle has this process tag.
const madeID = 0xffff << 48

// writeState writes a state record at the start of an event, with one number if detail is not "".
func (l *lines) writeState(r *record, name, detail string, value uint64) {
	l.writeStateWith(r, name, func(j *jsonWriter) {
		if detail != "" {
			j.unsigned(detail, value)
		}
	})
}

// writeStateWith writes a state record with further members.
func (l *lines) writeStateWith(r *record, name string, further func(*jsonWriter)) {
	j := l.out
	j.raw("{")
	j.text("recordType", "state")
	j.hex("eventAddr", r.event)
	j.micros("ts", l.rows.clock.fromBegin(r.begin))
	j.text("name", name)
	j.integer("id", stateID(name))
	l.writeNumber("pid", l.process.pid)
	l.writeNumber("tid", cmp.Or(r.startTID, r.row.tid))
	further(j)
	j.raw("}\n")
	l.countRecord("state records")
}

// writeEvent writes an event record.
func (l *lines) writeEvent(r *record) {
	j, clock := l.out, &l.rows.clock
	j.raw("{")
	j.text("recordType", "event")
	j.text("type", r.typ)
	j.text("func", r.function)
	of := r.of
	if of == nil {
		of = r.row
	}
	pxn := of.process != l.process // work for another process's rank: the schema has fixed values for it
	switch {
	case pxn:
		j.text("gpuUuid", "")
		j.integer("commId", 0)
		j.integer("rank", -1)
	case r.of != nil && r.of.comm != nil:
		j.text("gpuUuid", of.uuid)
		if of.hasID {
			j.unsigned("commId", of.commID)
		} else {
			j.null("commId")
		}
		j.integer("rank", int64(of.rank))
	default:
		j.text("gpuUuid", of.uuid)
		j.null("commId")
		j.null("rank")
	}
	begin, end := clock.fromBegin(r.begin), clock.fromBegin(r.end)
	for _, at := range [...]struct {
		name string
		time int64
		tid  uint64
	}{{"start", begin, r.startTID}, {"stop", end, r.stopTID}} {
		j.object(at.name)
		j.micros("ts", at.time)
		l.writeNumber("pid", l.process.pid)
		l.writeNumber("tid", cmp.Or(at.tid, r.row.tid))
		j.raw("}")
	}
	j.micros("duration", end-begin)
	l.writeNumber("myPid", l.process.pid)
	if pxn {
		l.writeNumber("originPid", of.process.pid)
	}
	if r.parent != 0 {
		j.hex("parentObj", r.parent)
	}
	if r.event != 0 {
		j.hex("eventAddr", r.event)
	}
	if pxn {
		j.boolean("isPxn", true)
	}
	j.object("details")
	if r.details != nil {
		r.details(j)
	}
	j.raw("}}\n")
	l.countRecord(r.typ)
}

// writeNumber writes a number, or null for 0, which means unknown.
func (l *lines) writeNumber(name string, v uint64) {
	if v == 0 {
		l.out.null(name)
		return
	}
	l.out.unsigned(name, v)
}
