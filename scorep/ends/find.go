// SPDX-License-Identifier: Apache-2.0

// Package ends corrects the ends of operations by the times that other members recorded.
//
// In some algorithms, NCCL stamps the end of a kernel when only a part of it is done (regions.AttrEndsEarly). For
// example, a rank that has sent its data up the tree of an AllReduce seems to be done while it waits for the result. No
// member of an AllReduce has the result before all have contributed, so none ends before the latest end that any of
// them recorded. A message cannot arrive before it was sent. And where transfers over the network were recorded, a
// kernel does not end before its GPU was given the last data, and the last room.
//
// Find reads an archive's rows once, in the order of time, and returns the ends to move. Rewrite rewrites a row's event
// file.
package ends

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Limits on operations that wait for other members, and on ends to move.
const (
	mostPending = 1 << 20
	mostMoves   = 1 << 24
)

// Clocks states which rows' times can be compared. Times of one host always can.
type Clocks struct {
	Host    map[otf2.LocationRef]int
	Between uint64 // ns by which clocks of two hosts may differ, beyond the uncertainty of each time
	Known   bool   // Between is valid; otherwise times of two hosts cannot be compared
}

// Found is the result of Find.
type Found struct {
	Moves    map[otf2.LocationRef][]Move // by row, in the order of events
	Problems []string
}

// Move moves the end of one launch on a row. Event numbers start at 0.
type Move struct {
	enter       uint64  // number of the launch's first event
	first, last uint64  // numbers of the first and the last event at its end
	by          uint64  // ns by which the end moves
	longer      float64 // new duration divided by the old one
	Operations  uint64  // operations that end in the launch
}

// launch is a launch that has ended, and the bounds on its end.
type launch struct {
	Move
	at          otf2.LocationRef
	begin, end  otf2.Timestamp
	uncertainty uint64
	early       bool
	operations  uint64
	waits       int            // number of operations without all members, plus 1 until the row's next event is known
	to          otf2.Timestamp // the latest end that another member proves; 0: none
	room        uint64         // ns until the row's next event
}

// opName identifies an operation of several members: a collective, or a message between two ranks.
type opName struct {
	comm     otf2.CommRef
	from, to int // ranks of a message, −1 for collectives
	ordinal  uint64
}

// pending is an operation some of whose members have not been read yet.
type pending struct{ members []*launch }

// row is the state of a communicator rank's row while the archive is read.
type row struct {
	events uint64 // number of events read
	time   otf2.Timestamp
	since  uint64 // number of the first event at that time
	enter  uint64
	ops    []operation
	last   *launch // the launch that has just ended; nil after the next event
}

// operation is an operation of the open launch.
type operation struct {
	opName
	send, message bool
}

type finder struct {
	comms     map[otf2.CommRef]*membership.Communicator
	expected  map[otf2.CommRef]int
	stretches []property.Stretch
	clocks    *Clocks
	rows      map[otf2.LocationRef]*row
	open      map[opName]*pending
	out       *Found
	moves     int
}

// Find reads the archive with the given anchor. progress, if set, is called with the number of events read.
func Find(anchor string, clocks *Clocks, progress func(done, total int)) (*Found, error) {
	a, err := otf2.Open(anchor, nil)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	f := &finder{
		comms: membership.Communicators(a.Defs), expected: make(map[otf2.CommRef]int), clocks: clocks,
		rows: make(map[otf2.LocationRef]*row), open: make(map[opName]*pending),
		out: &Found{Moves: make(map[otf2.LocationRef][]Move)},
	}
	f.stretches, _ = property.Stretches(a.Anchor)
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
	reader := facts.NewReader(facts.ArchiveNames(a.Defs, f.comms), attribute.Find(a.Defs))
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

// next updates the time of a row, and ends the wait of its last launch for the next event.
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
		return // a copy within the rank
	case o.Message && o.Function == "Send":
		op.send, op.from, op.to = true, me, o.Peer
	case o.Message:
		op.from, op.to = o.Peer, me
	case o.Function != "AllReduce":
		op.comm = otf2.UndefinedComm // other members' ends prove nothing
	}
	if property.Excluded(f.stretches, o.Comm, f.sequence(o, me), o.Ordinal) {
		op.comm = otf2.UndefinedComm
	}
	w.ops = append(w.ops, op)
}

// sequence returns the name of an operation's sequence, as in an archive's properties.
func (f *finder) sequence(o *facts.Operation, rank int) string {
	if o.Message {
		return o.PairName(rank)
	}
	return o.Function
}

// leaveLaunch processes a launch that has ended: its operations bound the ends of other launches, and theirs bound its
// end.
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
		if last := r.Begin + otf2.Timestamp(r.GPULast); last > r.End+otf2.Timestamp(r.Uncertainty) {
			l.to = last
		}
	}
	for i := range w.ops {
		op := &w.ops[i]
		switch {
		case op.comm == otf2.UndefinedComm, l.operations > 1 && !op.message:
			// In a launch of several operations, the end says nothing about each.
		case op.message:
			f.message(op, l)
		default:
			f.collective(op.opName, l)
		}
	}
}

// collective processes a member's part in an AllReduce. After the last member's part, the latest end bounds all others.
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

// message processes one side of a message. Once both are known, the sender's end bounds the receiver's, because data
// cannot arrive before it was sent.
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
	if sender.operations == 1 { // otherwise its end says nothing about each operation
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
		f.dropPending()
	}
	p = new(pending)
	f.open[key] = p
	return p
}

// dropPending stops waiting for the missing members of all pending operations: they are absent, or far behind.
func (f *finder) dropPending() {
	for key, p := range f.open {
		delete(f.open, key)
		for _, m := range p.members {
			f.countDown(m)
		}
	}
}

// boundEnd records that launch l ended no earlier than other, if their times can be compared and differ by more than
// their uncertainties.
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

// countDown ends one of the waits of a launch. After the last one, the launch's end is moved to its bound, but not past
// the row's next event.
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

// finish processes the launches that still wait, and sorts the moves.
func (f *finder) finish() {
	f.dropPending()
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
