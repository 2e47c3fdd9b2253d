// SPDX-License-Identifier: Apache-2.0

package export

import (
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of Perfetto's trace format, from its published definitions: protos/perfetto/trace of
// github.com/google/perfetto, release 59, files trace.proto, trace_packet.proto, clock_snapshot.proto,
// trace_packet_defaults.proto, interned_data/interned_data.proto and, in track_event, track_event.proto,
// track_descriptor.proto, counter_descriptor.proto, debug_annotation.proto.
const (
	traceMessagePacket = 1

	packetClockSnapshot   = 6
	packetTimestamp       = 8
	packetSequence        = 10
	packetTrackEvent      = 11
	packetInterned        = 12
	packetSequenceFlags   = 13
	packetDefaults        = 59
	packetTrackDescriptor = 60

	snapshotClocks       = 1
	snapshotPrimaryClock = 2
	clockID              = 1
	clockTimestamp       = 2

	defaultsClock = 58

	internedCategories      = 1
	internedNames           = 2
	internedAnnotationNames = 3
	internedTexts           = 29
	entryID                 = 1
	entryText               = 2

	trackUUID          = 1
	trackName          = 2
	trackParent        = 5
	trackCounter       = 8
	trackChildOrder    = 11
	trackRank          = 12
	trackDescription   = 14
	trackMerge         = 15
	counterUnitName    = 6
	childOrderExplicit = 3
	mergeNone          = 2

	eventCategory     = 3
	eventAnnotations  = 4
	eventType         = 9
	eventName         = 10
	eventTrack        = 11
	eventDoubleValue  = 44
	eventFlows        = 47
	annotationName    = 1
	annotationUint    = 3
	annotationInt     = 4
	annotationDouble  = 5
	annotationPointer = 7
	annotationOnce    = 6
	annotationText    = 17

	typeBegin   = 1
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4

	flagCleared = 1 // discards all interned strings
	flagNeeds   = 2 // the packet refers to interned strings

	clockRealtime  = 1
	clockMonotonic = 3
	clockOurs      = 64 // the first of those that a sequence defines for itself: ns since the archive's begin
)

// packets writes a Perfetto trace packet by packet, in one sequence. It interns only strings that archives define, so
// that memory does not grow with the number of events. It keeps its first error.
type packets struct {
	w        io.Writer
	sequence uint64
	flags    uint64
	packet   []byte // the current packet
	message  []byte // the message in the packet
	interned []byte // strings that the packet defines
	piece    []byte // for parts of either
	ids      [internedTexts + 1]map[string]uint64
	err      error
}

func newPackets(w io.Writer, sequence uint32) *packets {
	p := &packets{w: w, sequence: uint64(max(sequence, 1)), flags: flagCleared}
	for _, kind := range []int{internedCategories, internedNames, internedAnnotationNames, internedTexts} {
		p.ids[kind] = make(map[string]uint64)
	}
	return p
}

func putNumber(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func putBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// putText writes a string. Strings of the format are UTF-8.
func putText(b []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), strings.ToValidUTF8(v, "\uFFFD"))
}

func putDouble(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

// intern gives the number of a string of a kind, and tells readers of it with the packet that is being made.
func (p *packets) intern(kind protowire.Number, text string) uint64 {
	ids := p.ids[kind]
	id, known := ids[text]
	if !known {
		id = uint64(len(ids)) + 1
		ids[text] = id
		p.piece = putText(putNumber(p.piece[:0], entryID, id), entryText, text)
		p.interned = putBytes(p.interned, kind, p.piece)
	}
	return id
}

// write ends a packet: message is its member of that number. timed packets have a time, ns since the archive's begin.
func (p *packets) write(member protowire.Number, timed bool, ns int64) {
	b := p.packet[:0]
	if timed {
		b = putNumber(b, packetTimestamp, uint64(ns))
	}
	b = putNumber(b, packetSequence, p.sequence)
	b = putNumber(b, packetSequenceFlags, p.flags)
	p.flags = flagNeeds
	if len(p.interned) > 0 {
		b = putBytes(b, packetInterned, p.interned)
		p.interned = p.interned[:0]
	}
	b = putBytes(b, member, p.message)
	p.packet = b
	p.piece = putBytes(p.piece[:0], traceMessagePacket, b)
	if p.err == nil {
		_, p.err = p.w.Write(p.piece)
	}
	p.message = p.message[:0]
}

// writeClock begins the trace: times count from begin of a clock that viewers know.
func (p *packets) writeClock(known uint64, begin int64) {
	of := func(id uint64, ns int64) {
		p.piece = putNumber(putNumber(p.piece[:0], clockID, id), clockTimestamp, uint64(ns))
		p.message = putBytes(p.message, snapshotClocks, p.piece)
	}
	of(clockOurs, 0)
	of(known, begin)
	p.message = putNumber(p.message, snapshotPrimaryClock, known)
	p.write(packetClockSnapshot, false, 0)
	p.message = putNumber(p.message, defaultsClock, clockOurs)
	p.write(packetDefaults, false, 0)
}

// writeTrack describes a track: those of one parent stand in the order of their ranks. unit is that of a counter, nil
// of other tracks.
func (p *packets) writeTrack(uuid, parent uint64, name, description string, rank int, unit *string) {
	m := putText(putNumber(p.message, trackUUID, uuid), trackName, name)
	if parent != 0 {
		m = putNumber(m, trackParent, parent)
	}
	if description != "" {
		m = putText(m, trackDescription, description)
	}
	m = putNumber(putNumber(m, trackChildOrder, childOrderExplicit), trackRank, uint64(rank))
	m = putNumber(m, trackMerge, mergeNone)
	if unit != nil {
		p.piece = p.piece[:0]
		if *unit != "" {
			p.piece = putText(p.piece, counterUnitName, *unit)
		}
		m = putBytes(m, trackCounter, p.piece)
	}
	p.message = m
	p.write(packetTrackDescriptor, false, 0)
}

// beginEvent begins an event of a track; what it says is added to it, and write ends it.
func (p *packets) beginEvent(kind, track uint64) {
	p.message = putNumber(putNumber(p.message[:0], eventType, kind), eventTrack, track)
}

// setName gives the event its name and category.
func (p *packets) setName(name, category string) {
	p.message = putNumber(p.message, eventName, p.intern(internedNames, name))
	if category != "" {
		p.message = putNumber(p.message, eventCategory, p.intern(internedCategories, category))
	}
}

// addFlow has arrows lead through the events that have one number, in the order of their times.
func (p *packets) addFlow(id uint64) {
	p.message = protowire.AppendFixed64(protowire.AppendTag(p.message, eventFlows, protowire.Fixed64Type), id)
}

// annotate adds a named value, which put writes.
func (p *packets) annotate(name string, put func(b []byte) []byte) {
	id := p.intern(internedAnnotationNames, name)
	p.piece = put(putNumber(p.piece[:0], annotationName, id))
	p.message = putBytes(p.message, eventAnnotations, p.piece)
}

func (p *packets) unsigned(name string, v uint64) {
	p.annotate(name, func(b []byte) []byte { return putNumber(b, annotationUint, v) })
}

func (p *packets) integer(name string, v int64) {
	p.annotate(name, func(b []byte) []byte { return putNumber(b, annotationInt, uint64(v)) })
}

func (p *packets) number(name string, v float64) {
	p.annotate(name, func(b []byte) []byte { return putDouble(b, annotationDouble, v) })
}

func (p *packets) hex(name string, v uint64) {
	p.annotate(name, func(b []byte) []byte { return putNumber(b, annotationPointer, v) })
}

func (p *packets) text(name, v string) {
	id := p.intern(internedTexts, v)
	p.annotate(name, func(b []byte) []byte { return putNumber(b, annotationText, id) })
}

// inlineText adds a text that is used only once, and therefore is not interned.
func (p *packets) inlineText(name, v string) {
	p.annotate(name, func(b []byte) []byte { return putText(b, annotationOnce, v) })
}
