// SPDX-License-Identifier: Apache-2.0

package live

import (
	"maps"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// What collectors write ahead of time while somebody watches (experiment.AheadFiles) has the same operations as the
// event files, seconds earlier. Which of the two has an operation first does not matter: by its place in its sequence
// it is counted once.

// aheadStretch is how far before the end of the event files reading of what is ahead begins.
const aheadStretch = 5 * time.Second

// liveSequence is one in which operations of a location are numbered.
type liveSequence struct {
	location otf2.LocationRef
	comm     otf2.CommRef
	function string
	peer     int // of messages
}

func sequenceOf(o *analysis.Operation) liveSequence {
	s := liveSequence{location: o.Location, comm: o.Communicator.Ref, function: o.Function}
	if facts.IsMessage(o.Function) {
		s.peer = o.Peer
	}
	return s
}

// early is what a shard has ahead of time.
type early struct {
	reader     *analysis.OperationReader
	tails      map[string]*liveTail // by file
	operations []analysis.Operation // that have been read, and are not counted yet
	plans      map[otf2.LocationRef]uint64
}

func newEarly(s *liveShard) *early {
	e := &early{tails: make(map[string]*liveTail), plans: make(map[otf2.LocationRef]uint64)}
	e.reader = analysis.NewOperationsOf(&s.names, nil, s.names.CommTable,
		func(o *analysis.Operation) { e.operations = append(e.operations, *o) })
	e.reader.Comms, e.reader.Member = s.reader.Comms, s.reader.Member
	return e
}

// readAhead reads what shards have ahead of time, and counts what comes next.
func (l *Follower) readAhead(last uint64) {
	for _, path := range slices.Sorted(maps.Keys(l.shards)) {
		s := l.shards[path]
		s.early.read(path, s, last)
		l.countAhead(s)
	}
}

// read reads what has come to a shard's files. What is damaged there comes in the event files, too.
func (e *early) read(path string, s *liveShard, last uint64) {
	there := make(map[string]bool)
	for _, file := range experiment.AheadFiles(path) {
		location := otf2.LocationRef(uint64(file.Number)<<32 | s.number)
		if s.tails[location] == nil {
			continue // the row is not known yet
		}
		there[file.Path] = true
		t := e.tails[file.Path]
		if t == nil {
			tail, err := otf2.NewEventTail(file.Path, location, experiment.AheadChunkSize)
			if err != nil {
				continue
			}
			t = &liveTail{EventTail: tail, location: location}
			e.tails[file.Path] = t
			// The shard's own clock differs by as much at all times.
			if from := last - min(last, uint64(aheadStretch)); from > 0 {
				_ = t.SkipTo(otf2.Timestamp(from - (s.at(from) - from)))
			}
			e.reader.Forget(location)
		}
		for ev, err := range t.Events() {
			if t.bad = t.bad || err != nil; t.bad {
				break
			}
			if t.synced = t.synced || facts.Resumes(ev); t.synced {
				e.reader.Event(ev)
			}
		}
	}
	maps.DeleteFunc(e.tails, func(file string, _ *liveTail) bool { return !there[file] })
	if len(e.operations) > livePending {
		e.operations = nil // the event files will tell
	}
}

// countAhead counts the operations that come next in their sequences. Of a sequence of which nothing has been seen yet
// the event files tell which one that is.
func (l *Follower) countAhead(s *liveShard) {
	rest := s.early.operations[:0]
	for i := range s.early.operations {
		o := &s.early.operations[i]
		of := sequenceOf(o)
		switch next, known := s.next[of]; {
		case known && o.Ordinal < next:
		case known && o.Ordinal == next:
			s.next[of] = next + 1
			l.provisional(s, *o)
		default:
			rest = append(rest, *o)
		}
	}
	clear(s.early.operations[len(rest):])
	s.early.operations = rest
}

// provisional takes a member's operation with the times that are known by now.
func (l *Follower) provisional(s *liveShard, o analysis.Operation) {
	plan := s.early.plans[o.Location]
	l.add(s, &o, &plan)
	s.early.plans[o.Location] = plan
	l.bucket(o.End).ranks[l.Of[o.Location]].provisional++
}

// final takes a member's operation from an event file, unless it has been counted.
func (l *Follower) final(s *liveShard, o *analysis.Operation) {
	of := sequenceOf(o)
	if next, known := s.next[of]; known && o.Ordinal < next {
		return
	}
	s.next[of] = o.Ordinal + 1
	l.add(s, o, &s.tails[o.Location].plan)
}
