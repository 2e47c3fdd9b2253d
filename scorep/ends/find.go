// SPDX-License-Identifier: Apache-2.0

// Package ends corrects the ends of operations by the stamps of other members.
//
// In some algorithms, NCCL stamps the end of a kernel when a part of it is done (regions.AttrEndsEarly). For example, a
// rank that has sent its data up the tree of an AllReduce seems to be done while it waits for the result. No member of
// an AllReduce has the result before all have contributed, so none has ended before the last stamp of any. A message
// cannot arrive before it was sent.
//
// Find reads an archive's rows once, in the order of time, and returns the ends to move; Rewrite rewrites a row's event
// file.
package ends

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Bounds of launches whose other members have not come, and of ends to move.
const (
	mostPending = 1 << 20
	mostMoves   = 1 << 24
)

// Clocks says how well times of rows compare: those of one host do.
type Clocks struct {
	Host    map[otf2.LocationRef]int
	Between uint64 // ns that clocks of two hosts may differ by, beside the uncertainty of each time
	Known   bool   // Between is known; else times of two hosts do not compare
}

// Found holds the ends to move.
type Found struct {
	Moves    map[otf2.LocationRef][]Move // by row, in the order of its events
	Problems []string
}

// Move is one launch of a row. Numbers of events count from 0.
type Move struct {
	enter       uint64  // the event that it begins with
	first, last uint64  // the events at its end
	by          uint64  // ns
	longer      float64 // its time then, in its time before
	Operations  uint64  // that end in it
}

// launch is one of a row that has ended, and to what its end is to be moved.
type launch struct {
	Move
	at          otf2.LocationRef
	begin, end  otf2.Timestamp
	uncertainty uint64
	early       bool
	operations  uint64
	waits       int            // for members, and the next event of its row
	to          otf2.Timestamp // the latest end that shows that it was later; 0: none does
	room        uint64         // ns to the next event of its row
}

// opName names an operation of several members: a collective, or a message with its ends.
type opName struct {
	comm     otf2.CommRef
	from, to int // of messages, else −1
	ordinal  uint64
}

// pending is an operation whose members have not all come.
type pending struct{ members []*launch }

// row is a communicator rank's on its way through the archive.
type row struct {
	events uint64 // read
	time   otf2.Timestamp
	since  uint64 // the first event of that time
	enter  uint64
	ops    []operation
	last   *launch // that ended, before anything else came
}

// operation is one of the launch that is open.
type operation struct {
	opName
	send, message bool
}

type finder struct {
	comms     map[otf2.CommRef]*facts.Communicator
	expected  map[otf2.CommRef]int
	stretches []facts.Stretch
	clocks    *Clocks
	rows      map[otf2.LocationRef]*row
	open      map[opName]*pending
	out       *Found
	moves     int
}

// Find reads the archive of an anchor. progress, if set, is called with how many of its events have been read.
func Find(anchor string, clocks *Clocks, progress func(done, total int)) (*Found, error) {
	a, err := otf2.Open(anchor, nil)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	f := &finder{
		comms: facts.Communicators(a.Defs), expected: make(map[otf2.CommRef]int), clocks: clocks,
		rows: make(map[otf2.LocationRef]*row), open: make(map[opName]*pending),
		out: &Found{Moves: make(map[otf2.LocationRef][]Move)},
	}
	f.stretches, _ = facts.Stretches(a.Anchor)
	total := 0
	for ref, c := range f.comms {
		for _, l := range c.Members {
			if d := a.Defs.Location(l); d != nil && d.Events > 0 && !c.Self {
				f.expected[ref]++
				if f.rows[l] == nil {
					f.rows[l] = new(row)
					total += int(d.Events)
				}
			}
		}
	}
	reader := facts.NewReader(facts.ArchiveNames(a.Defs, f.comms), facts.FindAttributes(a.Defs))
	reader.Operation, reader.Enter, reader.Leave = f.operation, f.entered, f.leaveLaunch
	rows := slices.Sorted(maps.Keys(f.rows))
	if len(rows) == 0 {
		return f.out, nil
	}
	done := 0
	for ev, err := range a.Events(&otf2.Selection{Locations: rows}) {
		if err != nil {
			f.out.Problems = append(f.out.Problems, fmt.Sprintf("ends of operations: %v", err))
			continue
		}
		f.next(ev)
		reader.Event(ev)
		f.rows[ev.Location].events++
		if done++; progress != nil && done%(1<<16) == 0 {
			progress(done, total)
		}
	}
	f.finish()
	return f.out, nil
}

// next notes at which time an event of a row is.
func (f *finder) next(ev *otf2.Event) {
	w := f.rows[ev.Location]
	if ev.Time != w.time {
		w.time, w.since = ev.Time, w.events
	}
	if l := w.last; l != nil {
		w.last, l.room = nil, uint64(ev.Time-l.end)
		f.countDown(l)
	}
}

func (f *finder) entered(r *facts.Region) {
	if r.Number > 0 {
		w := f.rows[r.Location]
		w.enter, w.ops = w.events, w.ops[:0]
	}
}

func (f *finder) operation(o *facts.Operation) {
	c, w := f.comms[o.Comm], f.rows[o.Location]
	if c == nil || w == nil || o.Launch == 0 {
		return
	}
	me := c.RankOf(o.Location)
	op := operation{opName: opName{comm: o.Comm, from: -1, to: -1, ordinal: o.Ordinal}, message: o.Message}
	switch {
	case o.Message && o.Peer == me:
		return // a copy
	case o.Message && o.Function == "Send":
		op.send, op.from, op.to = true, me, o.Peer
	case o.Message:
		op.from, op.to = o.Peer, me
	case o.Function != "AllReduce":
		op.comm = otf2.UndefinedComm // nothing is known of its other members' ends
	}
	if facts.Excluded(f.stretches, o.Comm, f.sequence(o, me), o.Ordinal) {
		op.comm = otf2.UndefinedComm
	}
	w.ops = append(w.ops, op)
}

// sequence names the sequence of an operation as an archive's properties do.
func (f *finder) sequence(o *facts.Operation, rank int) string {
	if o.Message {
		return o.PairName(rank)
	}
	return o.Function
}

// leaveLaunch takes a launch that has ended, with its bounds on others and theirs on it.
func (f *finder) leaveLaunch(r *facts.Region) {
	w := f.rows[r.Location]
	if r.Number == 0 || w == nil {
		return
	}
	if r.Source != facts.SourceGPU || r.Unfinished || r.Lost || r.End <= r.Begin {
		return
	}
	l := &launch{
		Move: Move{enter: w.enter, first: w.since, last: w.events}, at: r.Location, begin: r.Begin, end: r.End,
		uncertainty: r.Uncertainty,
		early:       r.EndsEarly, operations: max(r.Operations, uint64(len(w.ops))), room: math.MaxUint64,
	}
	if l.early {
		l.waits, w.last = 1, l
	}
	for i := range w.ops {
		op := &w.ops[i]
		switch {
		case op.comm == otf2.UndefinedComm, l.operations > 1 && !op.message:
			// Of a launch of several, an end says nothing of each.
		case op.message:
			f.message(op, l)
		default:
			f.collective(op.opName, l)
		}
	}
}

// collective takes a member's part in an AllReduce.
func (f *finder) collective(key opName, l *launch) {
	p := f.pending(key)
	p.members = append(p.members, l)
	l.waits++
	if len(p.members) < f.expected[key.comm] {
		return
	}
	delete(f.open, key)
	var latest *launch
	byHost := make(map[int]*launch)
	for _, m := range p.members {
		if latest == nil || m.end > latest.end {
			latest = m
		}
		if host := f.clocks.Host[m.at]; byHost[host] == nil || m.end > byHost[host].end {
			byHost[host] = m
		}
	}
	for _, m := range p.members {
		f.boundEnd(latest, m)
		f.boundEnd(byHost[f.clocks.Host[m.at]], m)
		f.countDown(m)
	}
}

// message takes one end of a message; the launches of both ends bound each other: data cannot arrive before it was
// sent.
func (f *finder) message(op *operation, l *launch) {
	p := f.pending(op.opName)
	p.members = append(p.members, l)
	l.waits++
	if len(p.members) < 2 {
		return
	}
	delete(f.open, op.opName)
	sender, receiver := p.members[0], l
	if op.send {
		sender, receiver = l, p.members[0]
	}
	if sender.operations == 1 { // else its end says nothing of each
		f.boundEnd(sender, receiver)
	}
	f.countDown(sender)
	f.countDown(receiver)
}

func (f *finder) pending(key opName) *pending {
	p := f.open[key]
	if p != nil {
		return p
	}
	if len(f.open) >= mostPending {
		f.forget()
	}
	p = new(pending)
	f.open[key] = p
	return p
}

// forget gives up what others have not come to: their parts are not there, or far away.
func (f *finder) forget() {
	for key, p := range f.open {
		delete(f.open, key)
		for _, m := range p.members {
			f.countDown(m)
		}
	}
}

// boundEnd states that a launch has not ended before another one's stamp.
func (f *finder) boundEnd(other, l *launch) {
	if !l.early || other == l || other.end <= max(l.end, l.to) {
		return
	}
	differ := uint64(0)
	if f.clocks.Host[other.at] != f.clocks.Host[l.at] {
		if !f.clocks.Known {
			return
		}
		differ = f.clocks.Between
	}
	if uint64(other.end-l.end) > other.uncertainty+l.uncertainty+differ {
		l.to = other.end
	}
}

// countDown counts down the bounds that a launch waits for. After the last one its end is moved, but not beyond the
// next event on its row.
func (f *finder) countDown(l *launch) {
	if l.waits--; l.waits > 0 || !l.early || l.to == 0 || f.moves >= mostMoves {
		return
	}
	l.by = min(uint64(l.to-l.end), l.room)
	if l.by == 0 {
		return
	}
	l.longer = float64(uint64(l.end-l.begin)+l.by) / float64(l.end-l.begin)
	l.Operations = l.operations
	f.out.Moves[l.at] = append(f.out.Moves[l.at], l.Move)
	f.moves++
}

// finish ends open launches, and sorts the moves.
func (f *finder) finish() {
	f.forget()
	for _, w := range f.rows {
		if w.last != nil {
			f.countDown(w.last)
		}
	}
	for _, moves := range f.out.Moves {
		slices.SortFunc(moves, func(a, b Move) int { return cmp.Compare(a.enter, b.enter) })
	}
	if f.moves >= mostMoves {
		f.out.Problems = append(f.out.Problems, fmt.Sprintf(
			"ends of operations: only the first %d that are early by others' stamps were moved", mostMoves))
	}
}
