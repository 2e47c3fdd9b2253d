// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"runtime"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Reading in lanes: an archive's processes are divided among a few lanes, which are read concurrently. Each lane is in
// order of time, so everything that concerns a single process can be computed in its lane. Items that concern several
// processes go in batches to one consumer, in the order of the batches' ends. The lanes wait for each other, so that
// the consumer never holds more than the pending items and a few batches.

const (
	lanesPerProcessor = 3
	batchItems        = 64
	batchEvents       = 1 << 14 // a lane that finds little still reports its progress
)

// LanesOf divides the locations of an archive into enough lanes to keep all processors busy.
func LanesOf(defs *otf2.Definitions) [][]otf2.LocationRef {
	return DealOut(defs, lanesPerProcessor*runtime.GOMAXPROCS(0))
}

// DealOut divides the locations of an archive by process, the largest first, each going to the lane with the fewest
// events. The order of results depends only on the number of lanes.
func DealOut(defs *otf2.Definitions, most int) [][]otf2.LocationRef {
	type process struct {
		locations []otf2.LocationRef
		events    uint64
	}
	var all []*process
	index := make(map[otf2.LocationGroupRef]*process)
	seen := make(map[otf2.LocationRef]bool, len(defs.Locations))
	for i := range defs.Locations {
		l := &defs.Locations[i]
		if seen[l.Self] {
			continue
		}
		seen[l.Self] = true
		group := placement.ProcessOf(defs, l.Group)
		p := index[group]
		if p == nil {
			p = new(process)
			index[group] = p
			all = append(all, p)
		}
		p.locations = append(p.locations, l.Self)
		p.events += l.Events
	}
	slices.SortStableFunc(all, func(a, b *process) int { return cmp.Compare(b.events, a.events) })
	lanes := make([][]otf2.LocationRef, min(len(all), most))
	load := make([]uint64, len(lanes))
	for _, p := range all {
		least := 0
		for i := range load {
			if load[i] < load[least] {
				least = i
			}
		}
		lanes[least] = append(lanes[least], p.locations...)
		load[least] += p.events + 1
	}
	return lanes
}

// batch has the items that a lane found in a stretch of its events.
type batch[T any] struct {
	items []T
	until otf2.Timestamp // time of the last event of the stretch
}

// stream is a lane that is being read.
type stream[T any] struct {
	batches  chan batch[T]
	free     chan []T // slices to be reused
	problems []string
	head     batch[T]
}

// read collects the items of a lane's events, and sends them in batches.
func (s *stream[T]) read(a *otf2.Archive, of *otf2.Selection, event func(ev *otf2.Event, items []T) []T) {
	defer close(s.batches)
	items, n := make([]T, 0, batchItems), 0
	var last otf2.Timestamp
	for ev, err := range a.Events(of) {
		if err != nil {
			s.problems = append(s.problems, err.Error())
			continue
		}
		items = event(ev, items)
		last = ev.Time
		if n++; len(items) < batchItems && n < batchEvents {
			continue
		}
		s.batches <- batch[T]{items, last}
		n = 0
		select {
		case items = <-s.free:
		default:
			items = make([]T, 0, batchItems)
		}
	}
	if len(items) > 0 {
		s.batches <- batch[T]{items, last}
	}
}

// next drops the current batch and receives the next one; false: there is none.
func (s *stream[T]) next() (ok bool) {
	clear(s.head.items)
	select {
	case s.free <- s.head.items[:0]:
	default:
	}
	s.head, ok = <-s.batches
	return ok
}

// ReadLanes reads the lanes of an archive. It calls event for every event of lane i, on the lane's own goroutine;
// event appends the items for the consumer to items. It calls take with each item on the caller's goroutine. problems
// names files that cannot be read to their end.
func ReadLanes[T any](a *otf2.Archive, lanes [][]otf2.LocationRef, event func(i int, ev *otf2.Event, items []T) []T,
	take func(*T)) (problems []string) {
	streams := make([]*stream[T], len(lanes))
	all := 0
	for _, locations := range lanes {
		all += len(locations)
	}
	for i := range lanes {
		streams[i] = &stream[T]{batches: make(chan batch[T], 1), free: make(chan []T, 3)}
		go streams[i].read(a, &otf2.Selection{Locations: lanes[i], Among: all},
			func(ev *otf2.Event, items []T) []T { return event(i, ev, items) })
	}
	var live []*stream[T]
	for _, s := range streams {
		var ok bool
		if s.head, ok = <-s.batches; ok {
			live = append(live, s)
		}
	}
	for len(live) > 0 {
		at := 0
		for i, s := range live {
			if s.head.until < live[at].head.until {
				at = i
			}
		}
		s := live[at]
		for i := range s.head.items {
			take(&s.head.items[i])
		}
		if !s.next() {
			live = slices.Delete(live, at, at+1)
		}
	}
	for _, s := range streams {
		problems = append(problems, s.problems...)
	}
	return problems
}

// ReadRegions reads the lanes of an archive with readers of package facts; want sets the hooks of a lane's reader.
func ReadRegions(a *otf2.Archive, lanes [][]otf2.LocationRef, want func(i int, r *facts.Reader)) (problems []string) {
	names, attributes := facts.ArchiveNames(a.Defs, membership.Communicators(a.Defs)), attribute.Find(a.Defs)
	readers := make([]*facts.Reader, len(lanes))
	for i := range readers {
		readers[i] = facts.NewReader(names, attributes)
		want(i, readers[i])
	}
	return ReadLanes(a, lanes, func(i int, ev *otf2.Event, none []struct{}) []struct{} {
		readers[i].Event(ev)
		return none
	}, func(*struct{}) {})
}
