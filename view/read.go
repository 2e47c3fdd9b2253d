// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"ncclotf2/otf2"
	"ncclotf2/regions"
)

// attributes are the ids of the native archive's attributes that the view needs.
type attributes struct{ source, ordinal otf2.AttributeRef }

func findAttributes(defs *otf2.Definitions) (attributes, error) {
	find := func(of otf2.AttributeRef) (otf2.AttributeRef, error) {
		want := &regions.Attributes[of]
		for _, a := range defs.Attributes {
			if a.Type == want.Type && defs.String(a.Name) == want.Name {
				return a.Self, nil
			}
		}
		return 0, fmt.Errorf("it has no attribute %s: views are made of archives that `nccl-otf2 unify` made", want.Name)
	}
	source, err := find(regions.AttrTimingSource)
	if err != nil {
		return attributes{}, err
	}
	ordinal, err := find(regions.AttrOrdinal)
	return attributes{source, ordinal}, err
}

// read reads the operations of all communicator ranks, each location once. Damage is a problem of the
// result: what lies behind it is missing.
func (j *job) read(workers int, progress func(done, total int)) error {
	ids, err := findAttributes(j.archive.Defs)
	if err != nil {
		return err
	}
	gpu := make(map[otf2.StringRef]bool)
	for _, s := range j.archive.Defs.Strings {
		if s.Text == regions.TimingGPU {
			gpu[s.Self] = true
		}
	}
	// A location stands for one rank of a communicator, but what another collector took over is on a
	// communicator of its own, of which the others' locations are members, too.
	rows := make(map[otf2.LocationRef][]*row)
	sel := &otf2.Selection{Kinds: wanted}
	for _, r := range j.rows {
		if rows[r.source] == nil {
			sel.Locations = append(sel.Locations, r.source)
		}
		rows[r.source] = append(rows[r.source], r)
	}
	if len(sel.Locations) == 0 {
		return nil
	}
	var mu sync.Mutex
	var done atomic.Int64
	return j.archive.EachLocation(context.Background(), workers, sel, func(loc otf2.LocationRef, events iter.Seq2[*otf2.Event, error]) error {
		rd := rowReader{defs: j.archive.Defs, ids: ids, gpu: gpu, rows: make(map[otf2.CommRef]*row), open: make(map[uint64]int), counted: make(map[countKey]uint64)}
		for _, r := range rows[loc] {
			rd.rows[r.comm.ref] = r
		}
		for ev, err := range events {
			if err != nil {
				mu.Lock()
				j.count.problem("%v: what lies behind is not in the view", err)
				mu.Unlock()
				continue
			}
			rd.event(ev)
		}
		progress(int(done.Add(1)), len(sel.Locations))
		return nil
	})
}

var wanted = otf2.Kinds(otf2.EventEnter, otf2.EventLeave, otf2.EventMpiCollectiveBegin, otf2.EventMpiCollectiveEnd,
	otf2.EventNonBlockingCollectiveRequest, otf2.EventNonBlockingCollectiveComplete,
	otf2.EventMpiIsend, otf2.EventMpiIsendComplete, otf2.EventMpiIrecvRequest, otf2.EventMpiIrecv)

// rowReader turns a location's events into parts. A region with a TIMING_SOURCE is a plan: one launch by NCCL, with
// one time for all operations in it.
type rowReader struct {
	defs *otf2.Definitions
	ids  attributes
	gpu  map[otf2.StringRef]bool
	rows map[otf2.CommRef]*row // of which the location is a member

	depth, planAt int // regions that are open; how many are when the plan is the innermost, 0: there is none
	plan          described
	begin         otf2.Timestamp
	comparable    bool
	of            uint8
	ops           []pending      // of the plan
	open          map[uint64]int // by request: index into ops
	blocking      int            // index of the blocking collective
	counted       map[countKey]uint64
}

// described is what an event's attributes tell.
type described struct {
	ordinal  uint64
	numbered bool
}

// pending is an operation of the plan under way.
type pending struct {
	described
	comm           otf2.CommRef
	fn             uint8
	peer           int32
	sent, received uint64
	complete       bool
}

// countKey is a sequence of operations; they are numbered here where the archive does not.
type countKey struct {
	comm otf2.CommRef
	fn   uint8
	peer int32
}

func (rd *rowReader) event(ev *otf2.Event) {
	a := ev.Args
	switch ev.Kind {
	case otf2.EventEnter:
		rd.enter(ev)
	case otf2.EventLeave:
		if rd.depth > 0 && rd.depth == rd.planAt {
			rd.leave(ev.Time)
		}
		rd.depth = max(rd.depth-1, 0)
	case otf2.EventMpiCollectiveBegin:
		rd.blocking = rd.add(ev)
	case otf2.EventMpiCollectiveEnd:
		rd.collective(rd.blocking, a)
	case otf2.EventNonBlockingCollectiveRequest, otf2.EventMpiIrecvRequest:
		rd.open[a[0]] = rd.add(ev)
	case otf2.EventNonBlockingCollectiveComplete:
		if i, ok := rd.open[a[5]]; ok {
			rd.collective(i, a)
		}
	case otf2.EventMpiIsend:
		i := rd.add(ev)
		rd.open[a[4]] = i
		rd.message(i, fnSend, a)
		rd.ops[i].complete = false
	case otf2.EventMpiIrecv:
		if i, ok := rd.open[a[4]]; ok {
			rd.message(i, fnRecv, a)
		}
	case otf2.EventMpiIsendComplete:
		if i, ok := rd.open[a[0]]; ok {
			rd.ops[i].complete = rd.ops[i].fn == fnSend
		}
	}
}

func (rd *rowReader) add(ev *otf2.Event) int {
	rd.ops = append(rd.ops, pending{described: rd.describe(ev, rd.plan), fn: fnNone})
	return len(rd.ops) - 1
}

func (rd *rowReader) describe(ev *otf2.Event, d described) described {
	for i := range ev.Attributes {
		if a := &ev.Attributes[i]; a.ID == rd.ids.ordinal {
			d = described{a.Bits, true}
		}
	}
	return d
}

// collective takes the fields of MpiCollectiveEnd, which those of NonBlockingCollectiveComplete begin with.
func (rd *rowReader) collective(i int, a []uint64) {
	if i < len(rd.ops) {
		op := &rd.ops[i]
		op.fn, op.comm, op.peer = functionOf(otf2.CollectiveOp(a[0])), otf2.CommRef(a[1]), int32(uint32(a[2]))
		op.sent, op.received, op.complete = a[3], a[4], true
	}
}

// message takes the fields of MpiIsend or MpiIrecv.
func (rd *rowReader) message(i int, fn uint8, a []uint64) {
	if i < len(rd.ops) {
		op := &rd.ops[i]
		op.fn, op.comm, op.peer, op.sent, op.complete = fn, otf2.CommRef(a[1]), int32(uint32(a[0])), a[3], true
	}
}

func (rd *rowReader) enter(ev *otf2.Event) {
	rd.depth++
	if rd.planAt > 0 {
		return
	}
	for i := range ev.Attributes {
		if a := &ev.Attributes[i]; a.ID == rd.ids.source {
			rd.planAt, rd.begin, rd.comparable = rd.depth, ev.Time, rd.gpu[otf2.StringRef(a.Bits)]
			rd.plan = rd.describe(ev, described{})
			rd.of = fnNone
			if d := rd.defs.Region(otf2.RegionRef(ev.Args[0])); d != nil {
				rd.of = functionNamed(rd.defs.String(d.Name))
			}
		}
	}
	rd.ops = rd.ops[:0]
	rd.blocking = 0
	clear(rd.open)
}

// leave ends the plan and makes parts of its operations.
func (rd *rowReader) leave(end otf2.Timestamp) {
	rd.planAt = 0
	end = max(end, rd.begin) // damaged files may say otherwise
	var first *row
	for i := range rd.ops {
		op := &rd.ops[i]
		r := rd.rows[op.comm]
		if r == nil {
			continue // of a communicator of one rank, or not among ours
		}
		key := countKey{op.comm, op.fn, -1}
		if op.fn >= fnMessages {
			key.peer = op.peer
		}
		if !op.numbered {
			op.ordinal = rd.counted[key]
		}
		rd.counted[key] = op.ordinal + 1
		p := part{
			begin: rd.begin, end: end, sent: op.sent, received: op.received, ordinal: op.ordinal, peer: -1, fn: op.fn, of: fnNone,
			comparable: rd.comparable,
		}
		if !op.complete || op.fn == fnNone || !p.place(r, op.peer) {
			r.unplaced++
			continue
		}
		if p.message() && rd.of < fnMessages {
			p.of = rd.of
		}
		if first != r {
			p.flags = flagPlan
			first = r
		}
		r.parts = append(r.parts, p)
	}
}

// place takes the operation's root or peer, and tells whether it is one of the communicator's ranks.
func (p *part) place(r *row, peer int32) bool {
	if !p.message() && !p.function().Rooted() {
		return true
	}
	p.peer = peer
	return peer >= 0 && int(peer) < len(r.comm.rows)
}
