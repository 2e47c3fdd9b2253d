// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// attributes are those of the native archive, which has to have the ones that the view needs.
func (j *job) attributes() (*facts.Attributes, error) {
	found := facts.FindAttributes(j.archive.Defs)
	for _, want := range []otf2.AttributeRef{regions.AttrTimingSource, regions.AttrOrdinal} {
		if !found.Has(want) {
			return nil, fmt.Errorf("it has no attribute %s: views are made of archives that `nccl-otf2 unify` made",
				regions.Attributes[want].Name)
		}
	}
	return found, nil
}

// read reads the operations of all communicator ranks, each location once. Damage is a problem of the
// result: what lies behind it is missing.
func (j *job) read(workers int, progress func(done, total int)) error {
	attributes, err := j.attributes()
	if err != nil {
		return err
	}
	names := facts.ArchiveNames(j.archive.Defs, facts.Communicators(j.archive.Defs))
	// A location stands for one rank of a communicator, but what another collector took over is on a
	// communicator of its own, of which the others' locations are members, too.
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
	processes := analysis.Processes(j.archive.Defs)
	var mu sync.Mutex
	var done atomic.Int64
	return j.archive.EachLocation(context.Background(), workers, sel,
		func(loc otf2.LocationRef, events iter.Seq2[*otf2.Event, error]) error {
			rd := newRowReader(facts.NewReader(names, attributes), rows[loc])
			process := processes[loc]
			rd.called = func(parent uint64) int32 { return j.phases.of(process, parent) }
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

// rowReader turns a location's operations into parts. Operations of one launch have one time, that of the launch.
type rowReader struct {
	*facts.Reader
	rows   []*row // of which the location is a member
	called func(parent uint64) (phase int32)
	ops    []facts.Operation // of the launch, by the order in which they began; Launch is 0 where one has not ended
}

func newRowReader(r *facts.Reader, rows []*row) *rowReader {
	rd := &rowReader{Reader: r, rows: rows, called: func(uint64) int32 { return noPhase }}
	r.Operation, r.Leave = rd.operation, rd.launch
	return rd
}

func (rd *rowReader) operation(o *facts.Operation) {
	if o.Launch == 0 {
		return
	}
	for len(rd.ops) <= o.Index {
		rd.ops = append(rd.ops, facts.Operation{})
	}
	rd.ops[o.Index] = *o
}

// launch makes parts of its operations.
func (rd *rowReader) launch(l *facts.Region) {
	if l.Number == 0 {
		return
	}
	end := max(l.End, l.Begin) // damaged files may say otherwise
	of := functionNamed(rd.Names.RegionName(l.Region))
	var first *row
	for i := range rd.ops {
		o := &rd.ops[i]
		if o.Launch == 0 {
			continue
		}
		at := slices.IndexFunc(rd.rows, func(r *row) bool { return r.comm.ref == o.Comm })
		if at < 0 {
			continue // of a communicator of one rank, or not among ours
		}
		r := rd.rows[at]
		p := part{
			begin: l.Begin, end: end, sent: o.Sent, received: o.Received, ordinal: o.Ordinal, peer: -1,
			fn: functionNamed(o.Function), of: fnNone,
			source: l.Source, phase: rd.called(o.Parent),
		}
		peer := o.Peer
		if o.Message {
			p.sent, p.received = o.Size, 0
		} else {
			peer = int(int32(o.Root))
		}
		if p.fn == fnNone || !p.place(r, int32(peer)) {
			r.unplaced++
			continue
		}
		if p.message() && of < fnMessages {
			p.of = of
		}
		if first != r {
			p.flags = flagPlan
			first = r
		}
		r.parts = append(r.parts, p)
	}
	rd.rows[0].unplaced += uint64(max(l.Begun-l.Ended, 0)) // not ended
	rd.ops = rd.ops[:0]
}

// place takes the operation's root or peer, and tells whether it is one of the communicator's ranks.
func (p *part) place(r *row, peer int32) bool {
	if !p.message() && !p.function().Rooted() {
		return true
	}
	p.peer = peer
	return peer >= 0 && int(peer) < len(r.comm.rows)
}
