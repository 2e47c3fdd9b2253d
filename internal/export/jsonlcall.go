// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// heldGroup holds the calls and launches of a group call.
type heldGroup struct {
	calls    map[uint64]record // calls by event id, until their communicator is known
	launches []record
	of       *row // communicator rank of its calls
	mixed    bool // its calls belong to several communicators, or unknown ones
}

// maxHeld limits the number of held group calls.
const maxHeld = 1 << 14

// writeCall writes the record of an API call. A call outside of a group has the interval of its implicit group call,
// whose id is the call's parent: both are written.
func (l *lines) writeCall(one *record, function string, r *facts.Region, outer []openEvent) {
	one.function = function
	graph, unfinished := r.Graph, r.Unfinished
	if !r.Counted { // a group, of any number of calls
		one.typ = "ncclProfileGroupApi"
		one.details = func(j *jsonWriter) {
			if function != "Group" { // NCCL implements this call as several
				j.integer("depth", 1)
			}
			j.boolean("graphCaptured", graph)
			writeUnfinished(j, unfinished)
		}
		l.writeEvent(one)
		return
	}
	one.typ = "ncclProfileCollApi"
	if facts.IsMessage(function) {
		one.typ = "ncclProfileP2pApi"
	}
	attributes, count := r.Attributes, r.Count
	datatype, typed := l.rows.attributes.Last(attributes, regions.AttrDatatype)
	stream, streamed := l.rows.attributes.Last(attributes, regions.AttrStream)
	tag, tagged := l.rows.attributes.Last(attributes, regions.AttrUserTag)
	root, rooted := l.rows.attributes.Last(attributes, regions.AttrRoot)
	device, placed := l.rows.attributes.Last(attributes, regions.AttrDevice)
	one.of = l.findCaller(attributes)
	one.details = func(j *jsonWriter) {
		j.text("func", function)
		j.unsigned("count", count)
		if typed {
			j.text("dtype", l.rows.defs.String(otf2.StringRef(datatype)))
		}
		if streamed {
			j.hex("stream", stream)
		}
		j.boolean("graphCaptured", graph)
		if tagged {
			j.unsigned("userTag", tag)
		}
		if rooted {
			j.unsigned("root", root)
		}
		if placed {
			j.unsigned("cudaDevice", device)
		}
		writeUnfinished(j, unfinished)
	}
	if one.parent != 0 && !slices.ContainsFunc(outer, func(o openEvent) bool { return o.event == one.parent }) {
		group := record{typ: "ncclProfileGroupApi", function: "Group", row: one.row, begin: one.begin, end: one.end,
			event: one.parent}
		group.details = func(j *jsonWriter) {
			j.integer("depth", 1)
			j.boolean("graphCaptured", graph)
			writeUnfinished(j, unfinished)
		}
		l.writeEvent(&group)
	}
	if one.event == 0 { // no operation can refer to it
		if one.of == nil {
			l.countLeftOut("communicators of calls")
		}
		l.writeEvent(one)
		return
	}
	group := cmp.Or(one.parent, one.event)
	l.holdGroup(group).calls[one.event] = *one
	l.calls[one.event] = group
}

// writeUnfinished says of a call that it had not returned when the data ended.
func writeUnfinished(j *jsonWriter, unfinished bool) {
	if unfinished {
		j.boolean("unfinished", true)
	}
}

// findCaller returns the row of the communicator rank that a call states. It returns nil if the call states none, or
// the archive does not define the communicator.
func (l *lines) findCaller(attributes []otf2.AttributeValue) *row {
	ref, known := l.rows.attributes.Last(attributes, regions.AttrComm)
	rank, placed := l.rows.attributes.Last(attributes, regions.AttrRank)
	c := l.rows.comms[otf2.CommRef(ref)]
	if !known || !placed || c == nil || rank >= uint64(len(c.Members)) {
		return nil
	}
	of := l.rows.rowOn(c.Members[rank], c.Ref)
	if of == nil || of.comm == nil {
		return nil
	}
	return of
}

// holdGroup returns the held group call with this id, and creates it if needed.
func (l *lines) holdGroup(id uint64) *heldGroup {
	g := l.held[id]
	if g == nil {
		if len(l.groups) >= maxHeld {
			l.releaseOldest()
		}
		g = &heldGroup{calls: make(map[uint64]record)}
		l.held[id] = g
		l.groups = append(l.groups, id)
	}
	return g
}

// releaseOldest writes the remaining calls of the oldest group call, which no operation has referred to.
func (l *lines) releaseOldest() {
	id := l.groups[0]
	l.groups = l.groups[1:]
	g := l.held[id]
	delete(l.held, id)
	if g == nil {
		return
	}
	for _, event := range slices.Sorted(maps.Keys(g.calls)) {
		c := g.calls[event]
		if c.of == nil {
			l.countLeftOut("communicators of calls")
			g.mixed = true
		} else {
			g.addRow(c.of)
		}
		delete(l.calls, event)
		l.writeEvent(&c)
	}
	g.writeCalls(l)
}

// addRow adds the communicator rank of one of the group's calls.
func (g *heldGroup) addRow(of *row) {
	g.mixed = g.mixed || g.of != nil && g.of != of
	g.of = of
}

// writeCalls writes the launches of a group call. If all its calls belong to one communicator rank, so do the launches.
func (g *heldGroup) writeCalls(l *lines) {
	for i := range g.launches {
		if !g.mixed {
			g.launches[i].of = g.of
		}
		l.writeEvent(&g.launches[i])
	}
	g.launches = nil
}

// assignCall assigns a held call to a communicator rank, and writes it.
func (l *lines) assignCall(call uint64, of *row) {
	id, ok := l.calls[call]
	if !ok {
		return
	}
	delete(l.calls, call)
	g := l.held[id]
	c := g.calls[call]
	delete(g.calls, call)
	c.of = of
	l.writeEvent(&c)
	g.addRow(of)
	if len(g.calls) == 0 {
		g.writeCalls(l)
	}
}
