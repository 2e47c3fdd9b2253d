// SPDX-License-Identifier: Apache-2.0

// Package tracetest reads traces in Perfetto's format for tests, as its trace_processor does: events are put in order
// of time, those of one time in the order of the file, and a track's begins and ends are brackets.
package tracetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Trace is what a file holds.
type Trace struct {
	Clock    uint64 // the builtin clock that times are of: 1 is real time
	Begin    int64  // what it shows at time 0 of the events
	Tracks   map[uint64]*Track
	Slices   []*Slice // in the order of their begins
	Counters []Value
}

// Track is a row.
type Track struct {
	Name, Description string
	Parent            uint64 // 0: none
	Counter           bool
	Unit              string // of a counter
}

// Slice is a region or, with Instant, a point in time.
type Slice struct {
	Track          uint64
	Name, Category string
	Begin, End     int64 // ns; an End of -1: it does not end
	Depth          int
	Instant        bool
	Args           map[string]any
	Flows          []uint64
}

// Value is one of a counter.
type Value struct {
	Track uint64
	Time  int64
	Value float64
}

// Path names a track with those that it lies in, the outermost first.
func (t *Trace) Path(uuid uint64) (path []string) {
	for uuid != 0 {
		track := t.Tracks[uuid]
		path = append(path, track.Name)
		uuid = track.Parent
	}
	slices.Reverse(path)
	return path
}

// Arrows counts the flows that connect at least two slices.
func (t *Trace) Arrows() map[uint64][]*Slice {
	all := make(map[uint64][]*Slice)
	for _, s := range t.Slices {
		for _, id := range s.Flows {
			all[id] = append(all[id], s)
		}
	}
	maps.DeleteFunc(all, func(_ uint64, s []*Slice) bool { return len(s) < 2 })
	return all
}

// fields are a message's, in order.
type fields []field

type field struct {
	number protowire.Number
	typ    protowire.Type
	value  uint64
	bytes  []byte
}

func parse(b []byte) (all fields, err error) {
	for len(b) > 0 {
		number, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		b = b[n:]
		f := field{number: number, typ: typ}
		switch typ {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			return nil, fmt.Errorf("field %d has type %d", number, typ)
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		b = b[n:]
		all = append(all, f)
	}
	return all, nil
}

func (all fields) get(number protowire.Number) (f field, ok bool) {
	for i := range all {
		if all[i].number == number {
			f, ok = all[i], true
		}
	}
	return f, ok
}

func (all fields) number(number protowire.Number) uint64 { f, _ := all.get(number); return f.value }

func (all fields) text(number protowire.Number) string {
	f, _ := all.get(number)
	return string(f.bytes)
}

// reader is the state of a sequence of packets.
type reader struct {
	trace    *Trace
	sequence uint64
	interned map[protowire.Number]map[uint64]string
	events   []event
}

type event struct {
	at int64
	of fields
}

// Read reads a trace of one sequence. What it does not know is an error.
func Read(text []byte) (*Trace, error) {
	r := &reader{trace: &Trace{Tracks: make(map[uint64]*Track)}, interned: make(map[protowire.Number]map[uint64]string)}
	packets, err := parse(text)
	if err != nil {
		return nil, err
	}
	for i, p := range packets {
		if p.number != 1 {
			return nil, fmt.Errorf("field %d of the trace", p.number)
		}
		if err := r.packet(p.bytes, i == 0); err != nil {
			return nil, fmt.Errorf("packet %d: %w", i, err)
		}
	}
	slices.SortStableFunc(r.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	open := make(map[uint64][]*Slice)
	for _, e := range r.events {
		if err := r.event(e, open); err != nil {
			return nil, fmt.Errorf("event at %d: %w", e.at, err)
		}
	}
	return r.trace, nil
}

func (r *reader) packet(b []byte, first bool) error {
	p, err := parse(b)
	if err != nil {
		return err
	}
	flags, sequence := p.number(13), p.number(10)
	if first {
		r.sequence = sequence
	}
	if sequence == 0 || sequence != r.sequence || first != (flags == 1) || !first && flags != 2 {
		return fmt.Errorf("sequence %d, flags %d", sequence, flags)
	}
	for _, f := range p {
		m, err := parse(f.bytes)
		switch {
		case err != nil:
			return err
		case f.number == 6:
			err = r.clocks(m)
		case f.number == 12:
			err = r.intern(m)
		case f.number == 59:
			if m.number(58) != 64 {
				err = errors.New("times are of another clock")
			}
		case f.number == 60:
			err = r.track(m)
		case f.number == 11:
			r.events = append(r.events, event{int64(p.number(8)), m})
		case f.number != 8 && f.number != 10 && f.number != 13:
			err = fmt.Errorf("field %d", f.number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) clocks(m fields) error {
	r.trace.Clock = m.number(2)
	at := make(map[uint64]int64)
	for _, f := range m {
		if f.number == 1 {
			c, err := parse(f.bytes)
			if err != nil {
				return err
			}
			at[c.number(1)] = int64(c.number(2))
		}
	}
	if begin, ok := at[r.trace.Clock]; ok && len(at) == 2 && at[64] == 0 {
		r.trace.Begin = begin
		return nil
	}
	return fmt.Errorf("clocks %v, of which %d is the trace's", at, r.trace.Clock)
}

func (r *reader) intern(m fields) error {
	for _, f := range m {
		if f.number > 3 && f.number != 29 {
			return fmt.Errorf("interned %d", f.number)
		}
		e, err := parse(f.bytes)
		if err != nil {
			return err
		}
		if r.interned[f.number] == nil {
			r.interned[f.number] = make(map[uint64]string)
		}
		id := e.number(1)
		if _, twice := r.interned[f.number][id]; twice || id == 0 {
			return fmt.Errorf("interned %d: id %d", f.number, id)
		}
		r.interned[f.number][id] = e.text(2)
	}
	return nil
}

func (r *reader) track(m fields) error {
	uuid, parent := m.number(1), m.number(5)
	if uuid == 0 || r.trace.Tracks[uuid] != nil || parent != 0 && r.trace.Tracks[parent] == nil {
		return fmt.Errorf("track %d in %d", uuid, parent)
	}
	t := &Track{Name: m.text(2), Description: m.text(14), Parent: parent}
	if f, is := m.get(8); is {
		c, err := parse(f.bytes)
		if err != nil {
			return err
		}
		t.Counter, t.Unit = true, c.text(6)
	}
	r.trace.Tracks[uuid] = t
	return nil
}

func (r *reader) event(e event, open map[uint64][]*Slice) error {
	uuid, kind := e.of.number(11), e.of.number(9)
	track := r.trace.Tracks[uuid]
	if track == nil || track.Counter != (kind == 4) {
		return fmt.Errorf("type %d on track %d", kind, uuid)
	}
	stack := open[uuid]
	switch kind {
	case 1, 3:
		s := &Slice{Track: uuid, Begin: e.at, End: -1, Depth: len(stack), Args: make(map[string]any)}
		var known [2]bool
		s.Name, known[0] = r.interned[2][e.of.number(10)]
		s.Category, known[1] = r.interned[1][e.of.number(3)]
		if _, has := e.of.get(3); !known[0] || has != known[1] {
			return fmt.Errorf("name or category of %v is not known", e.of)
		}
		r.trace.Slices = append(r.trace.Slices, s)
		if kind == 3 {
			s.Instant, s.End = true, e.at
		} else {
			open[uuid] = append(stack, s)
		}
		return r.args(e.of, s)
	case 2:
		if len(stack) == 0 {
			return errors.New("an end without a begin")
		}
		s := stack[len(stack)-1]
		s.End = e.at
		open[uuid] = stack[:len(stack)-1]
		return r.args(e.of, s)
	case 4:
		f, ok := e.of.get(44)
		if !ok {
			return errors.New("a counter without a value")
		}
		r.trace.Counters = append(r.trace.Counters, Value{uuid, e.at, math.Float64frombits(f.value)})
		return nil
	}
	return fmt.Errorf("type %d", kind)
}

// args reads what an event says of a slice.
func (r *reader) args(of fields, s *Slice) error {
	for _, f := range of {
		switch f.number {
		case 47:
			if !slices.Contains(s.Flows, f.value) {
				s.Flows = append(s.Flows, f.value)
			}
		case 4:
			a, err := parse(f.bytes)
			if err != nil {
				return err
			}
			name, known := r.interned[3][a.number(1)]
			if _, twice := s.Args[name]; twice || !known || len(a) != 2 {
				return fmt.Errorf("annotation %q", name)
			}
			if s.Args[name], err = r.value(a[1]); err != nil {
				return err
			}
		case 3, 9, 10, 11:
		default:
			return fmt.Errorf("field %d of an event", f.number)
		}
	}
	return nil
}

func (r *reader) value(f field) (any, error) {
	switch f.number {
	case 3, 7:
		return f.value, nil
	case 4:
		return int64(f.value), nil
	case 5:
		return math.Float64frombits(f.value), nil
	case 6:
		return string(f.bytes), nil
	case 17:
		if text, ok := r.interned[29][f.value]; ok {
			return text, nil
		}
	}
	return nil, fmt.Errorf("value %d of an annotation", f.number)
}
