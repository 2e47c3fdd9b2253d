// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// attributes finds the native archive's attributes; it fails if one that the view needs is missing.
func (j *job) attributes() (*attribute.Table, error) {
	found := attribute.Find(j.archive.Defs)
	for _, want := range []otf2.AttributeRef{regions.AttrTimingSource, regions.AttrOrdinal} {
		if !found.Has(want) {
			return nil, fmt.Errorf("it has no attribute %s: views are made of archives that `nccl-otf2 unify` made",
				regions.Attributes[want].Name)
		}
	}
	return found, nil
}

// read reads the operations of all communicator ranks, each location once. Damage of a file is a problem of the result;
// the operations after it are missing.
func (j *job) read(workers int, progress func(done, total int)) error {
	attributes, err := j.attributes()
	if err != nil {
		return err
	}
	names := facts.ArchiveNames(j.archive.Defs, membership.Communicators(j.archive.Defs))
	// A location stands for one rank of a communicator. But a collector that took over others' data has a communicator
	// of its own, of which the others' locations are members, too.
	rows := make(map[otf2.LocationRef][]*row)
	sel := &otf2.Selection{Kinds: facts.Kinds}
	for _, r := range j.rows {
		if rows[r.source] == nil {
			sel.Locations = append(sel.Locations, r.source)
		}
		rows[r.source] = append(rows[r.source], r)
	}
	if len(sel.Locations) == 0 {
		return nil
	}
	if err := j.readPhases(workers); err != nil {
		return err
	}
	processes := placement.Processes(j.archive.Defs)
	var mu sync.Mutex
	var done atomic.Int64
	return j.archive.EachLocation(context.Background(), workers, sel,
		func(loc otf2.LocationRef, events iter.Seq2[*otf2.Event, error]) error {
			rd := newRowReader(facts.NewReader(names, attributes), rows[loc])
			process := processes[loc]
			rd.called = func(parent uint64) int32 { return j.phases.phaseOf(process, parent) }
			for ev, err := range events {
				if err != nil {
					mu.Lock()
					j.count.problem("%v: what lies behind is not in the view", err)
					mu.Unlock()
					continue
				}
				rd.Event(ev)
			}
			progress(int(done.Add(1)), len(sel.Locations))
			return nil
		})
}

// rowReader turns a location's operations into parts. All operations of a launch have the launch's time.
type rowReader struct {
	*facts.Reader
	rows   []*row // rows of the communicators that the location is a member of
	called func(parent uint64) (phase int32)
	// of the launch, in the order of their begins; Launch is 0 for an operation that has not ended
	ops []facts.Operation
}

func newRowReader(r *facts.Reader, rows []*row) *rowReader {
	rd := &rowReader{Reader: r, rows: rows, called: func(uint64) int32 { return noPhase }}
	r.Operation, r.Leave = rd.addOperation, rd.endLaunch
	return rd
}

func (rd *rowReader) addOperation(o *facts.Operation) {
	if o.Launch == 0 {
		return
	}
	for len(rd.ops) <= o.Index {
		rd.ops = append(rd.ops, facts.Operation{})
	}
	rd.ops[o.Index] = *o
}

// endLaunch makes parts of the launch's operations.
func (rd *rowReader) endLaunch(l *facts.Region) {
	if l.Number == 0 {
		return
	}
	end := max(l.End, l.Begin) // damaged files may have an end before the begin
	of := functionNamed(rd.Names.RegionName(l.Region))
	var first *row
	for i := range rd.ops {
		o := &rd.ops[i]
		if o.Launch == 0 {
			continue
		}
		at := slices.IndexFunc(rd.rows, func(r *row) bool { return r.comm.ref == o.Comm })
		if at < 0 {
			continue // of a communicator that the view does not have
		}
		r := rd.rows[at]
		p := part{
			begin: l.Begin, end: end, sent: o.Sent, received: o.Received, ordinal: o.Ordinal, peer: -1,
			fn: functionNamed(o.Function), madeFor: fnNone,
			source: l.Source, phase: rd.called(o.Parent),
		}
		peer := o.Peer
		if o.Message {
			p.sent, p.received = o.Size, 0
		} else {
			peer = int(int32(o.Root))
		}
		if p.fn == fnNone || !p.setPeer(r, int32(peer)) {
			r.unplaced++
			continue
		}
		if p.isMessage() && of < fnMessages {
			p.madeFor = of
		}
		if first != r {
			p.flags = flagPlan
			first = r
		}
		r.parts = append(r.parts, p)
	}
	rd.rows[0].unplaced += uint64(max(l.Begun-l.Ended, 0)) // operations without an end
	rd.ops = rd.ops[:0]
}

// setPeer sets the operation's root or peer and reports whether it is one of the communicator's ranks.
func (p *part) setPeer(r *row, peer int32) bool {
	if !p.isMessage() && !p.function().Rooted() {
		return true
	}
	p.peer = peer
	return peer >= 0 && int(peer) < len(r.comm.rows)
}

// regionKinds are the kinds of events for reading regions alone: those of threads, and launches without their
// operations.
var regionKinds = otf2.Kinds(otf2.EventEnter, otf2.EventLeave)
