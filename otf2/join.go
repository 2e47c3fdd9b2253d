// SPDX-License-Identifier: Apache-2.0

package otf2

import "fmt"

// EventPiece is an event file that is a part of a location's life.
type EventPiece struct {
	Path      string
	ChunkSize uint64
	Maps      []*MappingTable // from its ids to those of the whole; nil entries are left out
}

// JoinEvents writes the events of the pieces, one behind the other, into a new file, and returns their number. What
// each piece says as if it were the first is said once: that a communicator is created, or destroyed, and that
// measurement goes on or off. Regions that a piece leaves open are left at its end, times that go back at a seam are
// raised, and numbers that name requests count on.
func JoinEvents(to string, chunkSize uint64, pieces []EventPiece) (uint64, error) {
	w, err := CreateEventWriter(to, &EventWriterOptions{ChunkSize: chunkSize})
	if err != nil {
		return 0, err
	}
	j := joiner{w: w, said: make(map[said]bool), on: uint64(MeasurementOn)}
	for i := range pieces {
		if err := j.piece(&pieces[i]); err != nil {
			_ = w.Abandon()
			return 0, fmt.Errorf("%s: %w", pieces[i].Path, err)
		}
	}
	return w.Events(), w.Close()
}

// joiner is where the joining of pieces stands.
type joiner struct {
	w          *EventWriter
	attributes AttributeList
	open       []RegionRef
	said       map[said]bool
	on         uint64 // mode of measurement
	// offset is added to the numbers of requests of the present piece, most is the greatest that was written.
	offset, most uint64
}

// said is an event that a file has once for a communicator.
type said struct {
	kind EventKind
	comm uint64
}

func (j *joiner) piece(p *EventPiece) error {
	chunk, err := checkChunkSize(p.ChunkSize, DefaultEventChunkSize)
	if err != nil {
		return err
	}
	var maps []MappingTable
	for _, m := range p.Maps {
		if m != nil {
			maps = append(maps, *m)
		}
	}
	r := newEventReader(&fileSource{path: p.Path, budget: newOpenFiles(1), size: -1}, uint64(chunk), maxWindow)
	defer r.close()
	if len(maps) > 0 {
		r.maps = newLocalMaps(maps, nil, 0)
	}
	j.offset = j.most
	for {
		ok, err := r.next()
		if err != nil {
			return err
		}
		if !ok {
			return j.leave()
		}
		if err := j.event(&r.event); err != nil {
			return err
		}
	}
}

// event writes one event, unless it has been said.
func (j *joiner) event(e *Event) error {
	if !e.Kind.Known() {
		return fmt.Errorf("otf2: event of kind %d: %w", e.Kind, ErrNotSupported)
	}
	switch e.Kind {
	case EventEnter:
		j.open = append(j.open, RegionRef(e.Args[0]))
	case EventLeave:
		if len(j.open) == 0 {
			return nil
		}
		j.open = j.open[:len(j.open)-1]
	case EventCommCreate, EventCommDestroy:
		s := said{e.Kind, e.Args[0]}
		if j.said[s] {
			return nil
		}
		j.said[s] = true
	case EventMeasurementOnOff:
		if e.Args[0] == j.on {
			return nil
		}
		j.on = e.Args[0]
	}
	for i, f := range e.Kind.Fields() {
		if f.Name == "requestID" || f.Name == "matchingId" {
			e.Args[i] += j.offset
			j.most = max(j.most, e.Args[i])
		}
	}
	j.attributes.Reset()
	j.attributes.list = append(j.attributes.list, e.Attributes...)
	return j.w.Write(e.Kind, max(e.Time, j.w.LastTime()), &j.attributes, e.Args)
}

// leave leaves the regions that are open.
func (j *joiner) leave() error {
	for n := len(j.open); n > 0; n = len(j.open) {
		if err := j.w.Leave(j.w.LastTime(), nil, j.open[n-1]); err != nil {
			return err
		}
		j.open = j.open[:n-1]
	}
	return nil
}
