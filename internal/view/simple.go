// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// SimpleResult is what a simple view holds and lacks.
type SimpleResult struct {
	Archive   string `json:"archive"`   // path of the anchor
	Processes int    `json:"processes"` // one per rank of the world, including those without data
	Rows      int    `json:"rows"`      // locations
	Events    uint64 `json:"events"`
	// records of sends: transfers where they were recorded, otherwise Send operations
	Messages  uint64 `json:"messages"`
	Transfers uint64 `json:"transfers"` // of Messages: network transfers
	// Collectives counts records of collectives: one per operation and member.
	Collectives uint64 `json:"collectives"`
	// Covered counts Send operations left out because the transfers of their communicator are shown.
	Covered uint64 `json:"covered"`
	// Unplaced counts messages left out because the sender's or receiver's rank in the world is unknown.
	Unplaced uint64 `json:"unplaced"`
	// Metrics counts values of metrics, Others further events without a simple form; both are left out.
	Metrics uint64 `json:"metrics"`
	Others  uint64 `json:"others"`
	// MaxShift is the greatest delay of an event, in ticks of the archive's clock: no two events of a row have the same
	// time.
	MaxShift uint64 `json:"max_shift"`
	// Differing says which operations the ranks recorded differently, a line each; the view has what there is.
	Differing []string `json:"differing,omitempty"`
	// Problems, one line each: files that could not be read to their end.
	Problems []string `json:"problems,omitempty"`
}

// maxAbsent bounds the ranks without data: each of them has a row in the view.
const maxAbsent = 65536

// simple is a simple view under construction.
type simple struct {
	defs       *otf2.Definitions
	ranks      []placement.Rank
	worldRanks map[otf2.LocationRef]int // the world's rank that a communicator's location belongs to
	comms      map[otf2.CommRef]*membership.Communicator
	windows    map[otf2.RmaWinRef]*membership.Communicator
	covered    map[otf2.CommRef]bool // whose transfers were recorded

	processes []simpleProcess
	rows      []*simpleRow
	byNative  map[otf2.LocationRef]*simpleRow
	world     otf2.CommRef // of messages
	network   otf2.CommRef // of transfers, if there are any

	mu  sync.Mutex
	res *SimpleResult
}

// simpleProcess is a rank of the world.
type simpleProcess struct {
	name   string
	parent otf2.SystemTreeNodeRef
	events uint64
}

// simpleRow is a location of the native archive.
type simpleRow struct {
	native   otf2.LocationRef
	name     otf2.StringRef
	id       otf2.LocationRef
	process  int
	messages bool // the row sends or receives some
}

// Simple makes the archive dir/traces.otf2 of the native one for readers that know few of OTF2's records. It has only
// threads of processes, one process per rank of the world, ids from 0 on, blocking collectives, and messages on one
// communicator of all ranks; it has no metrics, and no two events of a row at one time. An older view in dir is
// replaced once the new one is complete.
func Simple(anchor, dir string, opts *Options) (*SimpleResult, error) {
	a, o, err := opts.open(anchor, dir)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	s := &simple{defs: a.Defs, res: &SimpleResult{Archive: filepath.Join(dir, archiveName+".otf2"),
		Differing: selfreport.Differing(a.Anchor)}}
	if err := s.assignProcesses(); err != nil {
		return nil, fmt.Errorf("%s: %w", anchor, err)
	}
	if err := replaceView(dir, func(staging string) error { return s.write(a, staging, o) }); err != nil {
		return nil, err
	}
	return s.res, nil
}

// assignProcesses finds the processes of the view and the process of each location.
func (s *simple) assignProcesses() error {
	s.comms, s.windows = membership.AllCommunicators(s.defs), membership.Windows(s.defs)
	s.covered = make(map[otf2.CommRef]bool)
	for _, c := range s.windows {
		if c.Network {
			s.covered[c.Parent] = true
		}
	}
	s.ranks, s.worldRanks = placement.Ranks(s.defs, membership.Communicators(s.defs))
	absent := 0
	groups, processes := make(map[otf2.LocationGroupRef]int), make(map[otf2.LocationGroupRef]int)
	for i, r := range s.ranks {
		s.addProcess(r.Name, r.Process)
		if _, known := processes[r.Process]; !known {
			processes[r.Process] = i
		}
		if r.Absent {
			absent++
		}
	}
	if absent > maxAbsent {
		return fmt.Errorf("it has %d ranks without data, of which each would have a row: at most %d are possible",
			absent, maxAbsent)
	}
	for l, rank := range s.worldRanks {
		if d := s.defs.Location(l); d != nil {
			groups[d.Group] = rank
		}
	}
	for _, g := range s.defs.LocationGroups { // processes without communicators
		if _, known := processes[g.Self]; !known && g.Type != otf2.LocationGroupTypeAccelerator {
			processes[g.Self] = len(s.processes)
			s.addProcess(s.defs.String(g.Name), g.Self)
		}
	}
	for _, l := range s.defs.Locations { // locations without a process, such as GPUs whose process is unknown
		p := placement.ProcessOf(s.defs, l.Group)
		_, placed := groups[l.Group]
		if _, known := processes[p]; !placed && !known && l.Type != otf2.LocationTypeMetric {
			processes[p] = len(s.processes)
			name := "(no process)"
			if g := s.defs.LocationGroup(p); g != nil {
				name = s.defs.String(g.Name)
			}
			s.addProcess(name, p)
		}
	}
	s.assignRows(groups, processes)
	if len(s.rows) == 0 {
		return errors.New("it has no location with events: there is nothing to make a view of")
	}
	return nil
}

func (s *simple) addProcess(name string, group otf2.LocationGroupRef) {
	p := simpleProcess{name: name, parent: otf2.UndefinedSystemTreeNode}
	if g := s.defs.LocationGroup(group); g != nil {
		p.parent = g.SystemTreeParent
	}
	s.processes = append(s.processes, p)
}

// assignRows gives rows their processes. A network row belongs to the rank that it sends or receives for; with PXN
// another process may have recorded it.
func (s *simple) assignRows(groups, processes map[otf2.LocationGroupRef]int) {
	networks := placement.NetworkRows(s.defs)
	s.byNative = make(map[otf2.LocationRef]*simpleRow)
	for _, l := range s.defs.Locations {
		at, known := groups[l.Group]
		if !known {
			at, known = processes[placement.ProcessOf(s.defs, l.Group)]
		}
		if row, ok := networks[l.Self]; ok {
			if rank, ok := s.worldRank(s.comms[row.Comm], uint64(row.Rank)); ok {
				at = rank
			}
		}
		if !known || l.Type == otf2.LocationTypeMetric || at < len(s.ranks) && s.ranks[at].Absent {
			continue
		}
		r := &simpleRow{native: l.Self, name: l.Name, process: at}
		s.rows, s.byNative[l.Self] = append(s.rows, r), r
	}
	slices.SortStableFunc(s.rows, func(a, b *simpleRow) int {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.native, b.native))
	})
	for i, r := range s.rows {
		r.id = otf2.LocationRef(i)
	}
}

// worldRank returns the rank in the world of a communicator's rank.
func (s *simple) worldRank(c *membership.Communicator, rank uint64) (int, bool) {
	if c != nil && c.Network {
		c = s.comms[c.Parent]
	}
	if c == nil || rank >= uint64(len(c.Members)) {
		return 0, false
	}
	return c.WorldIndex(s.worldRanks, int(rank))
}

// write writes the archive into a folder that has none.
func (s *simple) write(a *otf2.Archive, dir string, o *Options) error {
	s.world = s.newComm()
	properties := []otf2.Property{{Name: property.View.Key(), Value: "simple"},
		{Name: property.Complete, Value: strconv.FormatBool(!selfreport.PropertiesOf(a.Anchor).Incomplete())}}
	if len(s.covered) > 0 {
		s.network = s.world + 1
		properties = append(properties, otf2.Property{Name: property.Transfers.Key(),
			Value: strconv.FormatUint(uint64(s.network), 10)})
	}
	w, err := otf2.Create(dir, archiveName, &otf2.ArchiveOptions{
		Creator: o.Creator, MachineName: a.Anchor.MachineName,
		Description: "NCCL operations for readers of few kinds of records",
		TraceID:     a.Anchor.TraceID, EventChunkSize: eventChunk,
		DefChunkSize: max(a.Anchor.DefChunkSize, defChunk(len(s.defs.Locations)+len(s.processes))),
		Properties:   properties,
	})
	if err != nil {
		return err
	}
	defer w.Abort()
	var done atomic.Int64
	sel := &otf2.Selection{Locations: make([]otf2.LocationRef, 0, len(s.rows))}
	for _, r := range s.rows {
		sel.Locations = append(sel.Locations, r.native)
	}
	if len(sel.Locations) > 0 {
		err = a.EachLocation(context.Background(), o.Workers, sel,
			func(l otf2.LocationRef, events iter.Seq2[*otf2.Event, error]) error {
				defer func() { o.Progress("writing locations", int(done.Add(1)), len(s.rows)) }()
				return s.copyRow(w, s.byNative[l], events)
			})
	}
	if err != nil {
		return err
	}
	if err := s.define(w); err != nil {
		return err
	}
	s.res.Processes, s.res.Rows = len(s.processes), len(s.rows)
	return w.Close()
}

// newComm returns an id that no communicator has.
func (s *simple) newComm() otf2.CommRef {
	ref := otf2.CommRef(0)
	for _, c := range s.defs.Comms {
		ref = max(ref, c.Self+1)
	}
	for _, c := range s.defs.InterComms {
		ref = max(ref, c.Self+1)
	}
	return ref
}

// copyRow writes a row's events in their simple form.
func (s *simple) copyRow(w *otf2.ArchiveWriter, r *simpleRow, events iter.Seq2[*otf2.Event, error]) error {
	ew, err := w.Events(r.id)
	if err != nil {
		return err
	}
	sw := simpleWriter{simple: s, w: ew, pending: make(map[uint64][]otf2.AttributeValue)}
	var damage []string
	for ev, err := range events {
		if err != nil {
			damage = append(damage, fmt.Sprintf("%v: what lies behind is not in the view", err))
			continue
		}
		sw.writeEvent(ev)
	}
	n := ew.Events()
	if err := errors.Join(sw.err, ew.Close()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes[r.process].events += n
	r.messages = sw.messages
	sw.res.Events, sw.res.Problems = n, damage
	s.res.add(&sw.res)
	return nil
}

func (r *SimpleResult) add(x *SimpleResult) {
	for to, n := range map[*uint64]uint64{
		&r.Events: x.Events, &r.Messages: x.Messages, &r.Transfers: x.Transfers, &r.Collectives: x.Collectives,
		&r.Covered:  x.Covered,
		&r.Unplaced: x.Unplaced, &r.Metrics: x.Metrics, &r.Others: x.Others,
	} {
		*to += n
	}
	r.MaxShift = max(r.MaxShift, x.MaxShift)
	r.Problems = append(r.Problems, x.Problems...)
}

// emptyRow gives a process without events a row with one region, both called units.NoData: readers expect at least one
// event of each process.
func (s *simple) emptyRow(w *otf2.ArchiveWriter, d *simpleDefinitions, process int) (*simpleRow, error) {
	r := &simpleRow{native: otf2.UndefinedLocation, name: d.text(units.NoData), id: otf2.LocationRef(len(s.rows)),
		process: process}
	s.rows = append(s.rows, r)
	ew, err := w.Events(r.id)
	if err != nil {
		return nil, err
	}
	c := s.defs.Clock
	begin := otf2.Timestamp(c.Offset)
	_ = ew.Enter(begin, nil, d.noData()) // the writer keeps its first error until it is closed
	_ = ew.Leave(begin+otf2.Timestamp(max(c.Length, 1)), nil, d.noData())
	s.res.Events += ew.Events()
	return r, ew.Close()
}

func processName(p *simpleProcess, i int) string { return cmp.Or(p.name, units.RankName(i)) }
