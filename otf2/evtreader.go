// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Event is one event of a location.
type Event struct {
	Location LocationRef
	Time     Timestamp // corrected, unless ReadOptions.Raw
	Kind     EventKind
	// Args are the fields in the order of Kind.Fields(): numbers, ids (mapped, unless ReadOptions.Raw), signed
	// numbers sign-extended; the members of a repetition interleaved behind their count. Empty for an unknown kind.
	Args       []uint64
	Attributes []AttributeValue
}

// AttributeValue is one attribute of an event.
type AttributeValue struct {
	ID   AttributeRef
	Type Type
	Bits uint64 // see Value; mapped if it is a reference
}

// Value returns the attribute's value.
func (v AttributeValue) Value() Value { return Value(v.Bits) }

// Clone returns a copy that stays valid when iteration goes on.
func (e *Event) Clone() Event {
	c := *e
	c.Args = append([]uint64(nil), e.Args...)
	c.Attributes = append([]AttributeValue(nil), e.Attributes...)
	return c
}

// EventsOf iterates over the events of a location in file order. The event is valid until the next one.
//
// At the end of a truncated or damaged file, after everything that is whole, it yields nil and a *FormatError.
// Damaged local definitions are reported first; the events then follow with the definitions before the damage.
// A location that the archive does not define has no events, only an error, whatever its file holds: what an event's
// Location names is always defined.
func (a *Archive) EventsOf(loc LocationRef) iter.Seq2[*Event, error] {
	return a.stream(context.Background(), loc, &Selection{})
}

// Sizes of the windows on event files.
const (
	maxWindow   = 64 << 10
	smallWindow = 640
)

// eventReader reads an event or snapshot file record by record.
type eventReader struct {
	win   *window
	plans *[256]plan
	table *recordTable
	maps  *localMaps // nil: nothing is mapped
	big   bool       // byte order of the chunk
	fast  bool       // quick may be tried: the chunk is little-endian and reading goes on
	done  bool

	interval int // of the last time stamp
	event    Event
	args     []uint64 // room for the fields of any record up to its repetition
	attrs    []AttributeValue
	record   string // name of the record being read, for errors
	err      error
}

func (a *Archive) eventReader(loc LocationRef, window int) *eventReader {
	r := newEventReader(&fileSource{path: a.EventFile(loc), budget: a.open, size: -1}, a.Anchor.EventChunkSize, window)
	r.event.Location = loc
	if a.Defs.Location(loc) == nil {
		r.fail(fmt.Errorf("%w: location %d is not defined", ErrCorrupt, loc))
		return r
	}
	if !a.opts.Raw {
		maps, err := a.localDefs(loc)
		if !maps.identity() {
			r.maps = maps
		}
		if err != nil { // its ids and times would be taken for those of the archive
			r.fast, r.err = false, err
		}
	}
	return r
}

func newEventReader(src *fileSource, chunk uint64, window int) *eventReader {
	return &eventReader{win: newWindow(src, chunk, window), plans: eventPlans(), table: &eventTable,
		args: make([]uint64, mostFixed())}
}

func (r *eventReader) close() { r.win.src.close() }

// next reads the next event into r.event. It returns false at the end of the file, and the same error for ever.
func (r *eventReader) next() (bool, error) {
	if r.quick() {
		return true, nil
	}
	return r.careful()
}

// quick decodes the next event on the fast path: in a little-endian chunk, with enough bytes after it to decode without
// looking for their end, of a known kind without repetition, with a short length. Otherwise it returns false without
// moving the read position, and careful decodes the event.
func (r *eventReader) quick() bool {
	w := r.win
	b := w.buf[w.r:w.n]
	if len(b) < lookAhead || !r.fast {
		return false
	}
	at := w.r
	id := b[0]
	if id == recordTimestamp {
		if r.maps == nil {
			r.event.Time = Timestamp(binary.LittleEndian.Uint64(b[1:]))
		} else {
			r.setTime(b[1:stampSize])
		}
		b = b[stampSize:]
		at += stampSize
		id = b[0]
	}
	e := &r.event
	if id == recordAttributes {
		end := 2 + int(b[1])
		if b[1] == 0xff || end+lookAhead > len(b) {
			return false
		}
		r.attrs = r.attrs[:0]
		if r.attributesLittle(b, 2, end) != nil {
			return false
		}
		r.mapAttributes(0)
		e.Attributes = r.attrs
		b = b[end:]
		at += end
		id = b[0]
	} else {
		e.Attributes = r.attrs[:0]
	}
	p := &r.plans[id]
	if p.noLength {
		n := b[1]
		if n > p.fixed[0].max {
			return false
		}
		v := binary.LittleEndian.Uint64(b[2:]) & lowBytes[n&15]
		if r.maps != nil {
			v = r.mapped(&p.fixed[0], v)
		}
		w.r = at + 2 + int(n)
		e.Kind = EventKind(id)
		r.args[0] = v
		e.Args = r.args[:1]
		return true
	}
	end := 2 + int(b[1])
	if !p.simple || b[1] == 0xff || end+simpleSize > len(b) {
		return false
	}
	i, args := 2, r.args[:len(p.fixed)]
	for k := range args {
		o := &p.fixed[k]
		var v uint64
		switch n := b[i]; {
		case o.form == formByte:
			v = uint64(n)
			i++
		case o.form == formWord:
			v = binary.LittleEndian.Uint64(b[i:])
			i += 8
		case n <= o.max:
			v = binary.LittleEndian.Uint64(b[i+1:]) & lowBytes[n&15]
			i += 1 + int(n)
		case n == 0xff:
			v = undefinedOf(o.max)
			i++
		default:
			return false
		}
		if r.maps != nil {
			v = r.mapped(o, v)
		}
		args[k] = v
	}
	if i > end {
		return false
	}
	w.r = at + end
	e.Kind = EventKind(id)
	e.Args = args
	return true
}

// careful is next for all events.
func (r *eventReader) careful() (bool, error) {
	if r.err == nil && !r.done {
		ok, err := r.step()
		if ok {
			return true, nil
		}
		r.done, r.fast = true, false
		if err != nil {
			r.fail(err)
		}
	}
	return false, r.err
}

// fail ends reading with an error at the read position.
func (r *eventReader) fail(err error) {
	r.fast = false
	r.err = &FormatError{File: r.win.src.path, Location: r.event.Location, Offset: r.win.offset(), Record: r.record,
		Err: err}
}

// enough bytes for a stamp and every record without repetition, its length field and a word to decode over its
// end.
const lookAhead = 128

// ids from here on are those of the table.
const firstEventRecord = 10

func (r *eventReader) step() (bool, error) {
	w := r.win
	if w.chunkEnd == 0 {
		if err := r.chunk(0); err != nil {
			if errors.Is(err, io.EOF) {
				err = ErrTruncated // an event file has at least a header
			}
			return false, err
		}
	}
	r.attrs = r.attrs[:0]
	for {
		if w.n-w.r < lookAhead && !w.ended {
			if _, err := w.fillBuffer(lookAhead); err != nil {
				return false, err
			}
		}
		b := w.buf[w.r:w.n]
		if len(b) == 0 {
			r.record = ""
			return false, ErrTruncated
		}
		id := b[0]
		if id == recordTimestamp { // mostly followed by the event, so not left to the switch
			if len(b) < stampSize {
				r.record = "Timestamp"
				return false, ErrTruncated
			}
			r.setTime(b[1:stampSize])
			w.r += stampSize
			b = b[stampSize:]
			if len(b) == 0 {
				continue
			}
			id = b[0]
		}
		switch {
		case id >= firstEventRecord:
			if err := r.decode(id, b); err != nil {
				r.record = r.table.name(id)
				return false, err
			}
			return true, nil
		case id == recordTimestamp:
		case id == recordAttributes:
			if err := r.attributes(); err != nil {
				r.record = "AttributeList"
				return false, err
			}
		case id == recordEndOfChunk:
			if err := r.chunk(w.chunkEnd); err != nil {
				r.record = ""
				if errors.Is(err, io.EOF) {
					err = ErrTruncated
				}
				return false, err
			}
		case id == recordEndOfFile:
			return false, nil
		default:
			r.record = ""
			return false, corruptRecord(id)
		}
	}
}

// chunk enters the chunk at off.
func (r *eventReader) chunk(off int64) (err error) {
	r.big, err = r.win.enter(off)
	r.fast = err == nil && !r.big
	return err
}

// setTime takes over a time stamp, corrected.
func (r *eventReader) setTime(b []byte) {
	var t uint64
	if r.big {
		t = binary.BigEndian.Uint64(b)
	} else {
		t = binary.LittleEndian.Uint64(b)
	}
	if r.maps != nil && r.maps.clock != nil {
		c := r.maps.clock
		r.interval = c.locate(t, r.interval)
		t = c.intervals[r.interval].apply(t)
	}
	r.event.Time = Timestamp(t)
}

// whole returns the record with a length field at the read position and the size of what precedes its fields.
// The slice may be followed in its capacity by further bytes of the file.
func (r *eventReader) whole() (b []byte, head int, err error) {
	w := r.win
	head, size, ok := recordLength(w.buf[w.r:w.n], r.big)
	if !ok {
		return nil, 0, ErrTruncated
	}
	if size > uint64(w.chunkEnd-w.offset()) {
		return nil, 0, recordTooLong(size)
	}
	total := head + int(size)
	if w.n-w.r < total {
		have, err := w.fillBuffer(total)
		if err != nil {
			return nil, 0, err
		}
		if have < total {
			return nil, 0, ErrTruncated
		}
	}
	return w.buf[w.r : w.r+total], head, nil
}

// decode reads the event record at the read position, where b begins.
func (r *eventReader) decode(id uint8, b []byte) error {
	w := r.win
	p := &r.plans[id]
	e := &r.event
	e.Kind = EventKind(id)
	e.Attributes = r.attrs
	if p.noLength {
		o := &p.fixed[0]
		var n int
		var v uint64
		if len(b) >= 10 && b[1] <= o.max && !r.big {
			n, v = 1+int(b[1]), binary.LittleEndian.Uint64(b[2:])&lowBytes[b[1]&15]
		} else {
			var err error
			if n, v, err = compressedAt(b[1:], o.max, r.big); err != nil {
				return err
			}
		}
		w.r += 1 + n
		if r.maps != nil {
			v = r.mapped(o, v)
		}
		r.args[0] = v
		e.Args = r.args[:1]
		return nil
	}
	if p.known && p.repeated == nil && !r.big && len(b) > 1 {
		// The usual case: a short length field, and bytes enough behind the record to decode without care.
		if end := 2 + int(b[1]); b[1] != 0xff && end+decodeSlack <= len(b) {
			args := r.args[:len(p.fixed)]
			if _, err := r.fieldsLittle(p.fixed, args, b, 2, end); err != nil {
				return err
			}
			w.r += end
			e.Args = args
			return nil
		}
	}
	b, head, err := r.whole()
	if err != nil {
		return err
	}
	if !p.known {
		w.r += len(b)
		e.Args = r.args[:0]
		return nil
	}
	if !r.big && cap(b)-len(b) >= decodeSlack {
		e.Args, err = p.decodeLittle(r, b[:len(b)+decodeSlack], head, len(b))
	} else {
		d := fieldDecoder{buf: b, pos: head, big: r.big}
		e.Args, err = p.decode(r, &d)
	}
	if err != nil {
		return err
	}
	w.r += len(b)
	return nil
}

// mapped is a field's value after mapping or clock correction.
func (r *eventReader) mapped(o *op, v uint64) uint64 {
	if r.maps == nil || o.space == NoSpace {
		return v
	}
	if o.space == timeSpace {
		c := r.maps.clock
		if c == nil {
			return v
		}
		return c.intervals[c.locate(v, r.interval)].apply(v)
	}
	if t := r.maps.tables[o.space]; t != nil {
		v = t.Map(v)
		if o.max == 4 {
			v = uint64(uint32(v))
		}
	}
	return v
}

// compressedAt decodes a compressed number of at most max bytes at the start of b.
func compressedAt(b []byte, max uint8, big bool) (size int, v uint64, err error) {
	if len(b) == 0 {
		return 0, 0, ErrTruncated
	}
	n := b[0]
	switch {
	case n == 0xff:
		return 1, undefinedOf(max), nil
	case n > max:
		return 0, 0, fmt.Errorf("%w: compressed number of %d bytes where at most %d are allowed", ErrCorrupt, n, max)
	case len(b) < 1+int(n):
		return 0, 0, ErrTruncated
	}
	if len(b) >= 9 && !big {
		return 1 + int(n), binary.LittleEndian.Uint64(b[1:]) & lowBytes[n], nil
	}
	d := fieldDecoder{buf: b, pos: 1, big: big}
	return 1 + int(n), d.full(int(n)), nil
}
