// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"io/fs"
	"iter"
)

// EventTail follows an event file that is being written, as an [EventWriter] keeps it: each reading goes on where the
// one before met the end mark. Events are as recorded, without mapping or clock correction. Between readings no file
// is open.
type EventTail struct {
	path     string
	location LocationRef
	chunk    uint64

	begin int64     // of the chunk that is being read
	at    int64     // of the next record; 0: nothing has been read
	time  Timestamp // of the event before it
	big   bool
}

// NewEventTail follows the file at path; its events get the location. The file need not be there yet.
func NewEventTail(path string, location LocationRef, chunkSize uint64) (*EventTail, error) {
	chunk, err := checkChunkSize(chunkSize, DefaultEventChunkSize)
	if err != nil {
		return nil, err
	}
	return &EventTail{path: path, location: location, chunk: uint64(chunk)}, nil
}

// Offset is how far into the file the events before the next one reach.
func (t *EventTail) Offset() int64 { return t.at }

// SkipTo goes on to the last chunk that begins before a time: no event of what is skipped is at or after it. It never
// goes back.
func (t *EventTail) SkipTo(from Timestamp) error {
	r := t.reader()
	defer r.close()
	err := r.seek(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && r.win.chunkEnd > 0 {
		if begin := r.win.chunkEnd - r.win.chunk; begin > t.begin {
			t.begin, t.at, t.big = begin, r.win.offset(), r.big
		}
	}
	return err
}

// Events iterates over what has been written behind the events that were read. An event is valid until the next one. At
// the end mark, or where the file ends without, the iteration ends; so it does when the loop is left, and the next
// reading begins behind the event that was read last. Malformed data is a *[FormatError], behind which
// nothing more is read.
func (t *EventTail) Events() iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		r := t.reader()
		defer r.close()
		for {
			ok, err := r.next()
			switch {
			case errors.Is(err, ErrTruncated), errors.Is(err, fs.ErrNotExist):
				return
			case err != nil:
				yield(nil, err)
				return
			case !ok:
				t.reached(r)
				return
			}
			t.reached(r)
			if !yield(&r.event, nil) {
				return
			}
		}
	}
}

// reader is a reader that stands where the last one ended.
func (t *EventTail) reader() *eventReader {
	r := newEventReader(&fileSource{path: t.path, budget: newOpenFiles(1), size: -1}, t.chunk, maxWindow)
	r.event.Location, r.event.Time = t.location, t.time
	if t.at > 0 {
		r.win.chunkEnd = t.begin + r.win.chunk
		r.win.skipTo(t.at)
		r.big, r.fast = t.big, !t.big
	}
	return r
}

// reached remembers where a reader stands.
func (t *EventTail) reached(r *eventReader) {
	t.begin, t.at, t.time, t.big = r.win.chunkEnd-r.win.chunk, r.win.offset(), r.event.Time, r.big
}
