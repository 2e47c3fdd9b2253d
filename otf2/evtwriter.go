// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"cmp"
	"fmt"
	"os"
)

// EventWriterOptions adjust an event writer. The zero value is useful.
type EventWriterOptions struct {
	// ChunkSize is the size of the file's chunks in bytes, 256 KiB to 16 MiB; 0 means DefaultEventChunkSize. All
	// event files of an archive must have the same, the one its anchor names.
	ChunkSize uint64

	// CheckNesting refuses a Leave that does not match the innermost Enter, and reports open regions at Close.
	CheckNesting bool

	// Patient is for files that must survive a disk at fault. If it is not nil an error of the file is not final: what
	// could not be written stays in memory, events are taken as before, and every Flush tries again from where the file
	// ends. Patient is called with the error when a full chunk could not be written without a call of Flush. Each
	// further chunk takes memory until a Flush succeeds: the caller must bound it.
	Patient func(error)
}

// EventWriter writes the event file of one location. It has one method per event record, which take the time of
// the event in ticks, its attributes (may be nil) and the record's fields in libotf2's order. It is not safe for
// concurrent use.
//
// Records stay in memory until a chunk is full or Flush is called. The file is valid at any time: an end mark always
// stands behind the last flushed record, also while a flush is under way, so readers find whole records up to the last
// flush even if the process dies.
//
// The first error of the file sticks: every later call and Close return it, and the file ends where the last good flush
// left it (but see EventWriterOptions.Patient). Refused events (TimeError, NestingError, ErrInvalid, ErrTooLarge) leave
// the writer usable.
type EventWriter struct {
	chunkBuffer           // the current chunk, to which the event methods append
	base        int64     // offset of the current chunk in the file
	flushed     int       // bytes of the current chunk that are in the file, followed by an end mark there
	file        chunkFile // the chunks before it

	nesting *nesting // nil unless asked for

	err    error // the answer of all later calls
	closed bool
	broken error // why the file is incomplete after Close
}

// CreateEventWriter creates the file at path, which must not exist, with a chunk header and an end mark: it can
// be read at once. opts may be nil.
func CreateEventWriter(path string, opts *EventWriterOptions) (*EventWriter, error) {
	w, err := newEventWriter(opts)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	if err := w.open(f); err != nil {
		f.Close()
		_ = os.Remove(path)
		return nil, err
	}
	return w, nil
}

// NewEventWriter begins an event file, which must be there and empty. The writer takes it over, but when there is an
// error. opts may be nil.
func NewEventWriter(f File, opts *EventWriterOptions) (*EventWriter, error) {
	w, err := newEventWriter(opts)
	if err == nil {
		err = w.open(f)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// NewMemoryEventWriter returns a writer whose file lies in memory, see [EventWriter.Bytes]. It panics if the
// options are invalid.
func NewMemoryEventWriter(opts *EventWriterOptions) *EventWriter {
	w, err := newEventWriter(opts)
	if err == nil {
		err = w.open(&memoryFile{})
	}
	if err != nil {
		panic(err)
	}
	return w
}

func newEventWriter(opts *EventWriterOptions) (*EventWriter, error) {
	opts = cmp.Or(opts, &EventWriterOptions{})
	chunk, err := checkChunkSize(opts.ChunkSize, DefaultEventChunkSize)
	if err != nil {
		return nil, err
	}
	w := &EventWriter{chunkBuffer: chunkBuffer{size: chunk}, file: chunkFile{patient: opts.Patient}}
	if opts.CheckNesting {
		w.nesting = &nesting{}
	}
	w.resize(firstBuffer)
	appendHeader(w.buf[:0], 1, 0)
	w.pos, w.flushed = headerSize, headerSize
	return w, nil
}

// open writes the empty file.
func (w *EventWriter) open(f File) error {
	w.file.sink = f
	err := w.file.writeStart()
	if err != nil && w.file.patient != nil {
		w.file.patient(writingError(err))
		return nil
	}
	return err
}

func writingError(err error) error { return fmt.Errorf("otf2: writing events: %w", err) }

// Widen makes the chunks larger, as long as the file is shorter than one: then it is readable with either size. It
// reports whether it has done so.
func (w *EventWriter) Widen(chunkSize uint64) bool {
	chunk, err := checkChunkSize(chunkSize, DefaultEventChunkSize)
	if err != nil || w.base != 0 || chunk < w.size {
		return false
	}
	w.size = chunk // the buffer grows when it is full
	return true
}

// beginRecord makes room for a record of at most size bytes and writes what precedes it: a new chunk if this one is
// full, a time stamp if the time is later than that of the event before, the attributes. It returns the record's
// position. The event methods do this by themselves for the usual event: later time, no attributes, room enough.
func (w *EventWriter) beginRecord(t Timestamp, a *AttributeList, size int) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	last := w.last
	if t < last {
		return 0, &TimeError{t, last}
	}
	attributes := a != nil && len(a.list) != 0
	if attributes {
		size += a.estimate()
	}
	if w.pos+size+stampSize >= w.high {
		if err := w.ensureRoom(t, size); err != nil {
			return 0, err
		}
	}
	p := w.pos
	if t > w.last || t == 0 || p == headerSize { // libotf2 stamps every event at time 0
		p = w.stamp(p, t)
	}
	if attributes {
		var ok bool
		if p, ok = a.encode(w.buf, p); !ok {
			w.refuse(last)
			return 0, a.Err()
		}
	}
	return p, nil
}

// ensureRoom is the slow path of beginRecord. Like libotf2 it opens a new chunk for a record that may need as much as
// is free.
func (w *EventWriter) ensureRoom(t Timestamp, size int) error {
	w.unpark()

	need := w.pos + size + stampSize
	for need >= w.high && w.high < w.size-1 {
		w.resize(2 * (w.high + 1))
	}

	switch {
	case need < w.high:
		return nil
	case headerSize+stampSize+size+stampSize >= w.size-endSize:
		return fmt.Errorf("otf2: record of %d bytes in chunks of %d: %w", size, w.size, ErrTooLarge)
	case need >= w.size:
		return w.nextChunk(t)
	}
	w.probe = w.pos // libotf2 would write here, but one byte short of an end mark is possible
	return nil
}

// endRecord appends the record that was encoded up to p.
func (w *EventWriter) endRecord(p int) error {
	if w.probe != 0 {
		var err error
		if p, err = w.moveToNextChunk(p); err != nil {
			return err
		}
	}
	w.pos = p
	w.events++
	return nil
}

// refuse takes back what begin wrote for an event that is not written after all; last is the time of the event
// before it.
func (w *EventWriter) refuse(last Timestamp) {
	w.last, w.probe = last, 0
	if w.pos == headerSize+stampSize {
		w.pos = headerSize // the chunk's first stamp is that of its first event
	}
}

// endEnter is endRecord for an Enter whose nesting is checked.
func (w *EventWriter) endEnter(p int, region RegionRef) error {
	err := w.endRecord(p)
	if err == nil {
		w.nesting.enter(region)
	}
	return err
}

// endLeave is endRecord for a Leave whose nesting is checked.
func (w *EventWriter) endLeave(p int) error {
	err := w.endRecord(p)
	if err == nil {
		w.nesting.leaveRegion()
	}
	return err
}

// moveToNextChunk moves the record that ends at p, and begins at probe, if it leaves no room for an end mark. It
// returns where the record ends then.
func (w *EventWriter) moveToNextChunk(p int) (int, error) {
	start := w.probe
	w.probe = 0
	if p <= w.size-endSize {
		return p, nil
	}

	w.pos = start
	if w.buf[start] == recordTimestamp {
		start += stampSize // the new chunk begins with the same stamp
	}
	record := append([]byte(nil), w.buf[start:p]...)
	if err := w.nextChunk(w.last); err != nil {
		return p, err
	}
	return w.pos + copy(w.buf[w.pos:], record), nil
}

// nextChunk writes the current chunk, padded, and begins the next one at time t.
func (w *EventWriter) nextChunk(t Timestamp) error {
	full := fullChunk{w.closeChunk(), w.base, w.flushed, w.events}
	if err := w.file.add(full); err != nil {
		w.fail(writingError(err))
		return w.err
	}

	w.base += int64(w.size)
	w.flushed = headerSize
	w.openChunk(t)
	return nil
}

// fail makes err the answer of all later calls.
func (w *EventWriter) fail(err error) {
	w.err = err
	w.high = 0 // no event fits any more: all of them come to beginRecord
}

// Flush brings everything written so far into the file. It does nothing if there is nothing new.
func (w *EventWriter) Flush() error {
	if w.err != nil {
		return w.err
	}
	return w.checkWritten(w.flush())
}

// checkWritten returns an error of the file in the package's words, and makes it final unless the writer is patient.
func (w *EventWriter) checkWritten(err error) error {
	if err == nil {
		return nil
	}
	err = writingError(err)
	if w.file.patient == nil {
		w.fail(err)
	}
	return err
}

func (w *EventWriter) flush() error {
	if err := w.file.writeKept(); err != nil || w.pos == w.flushed {
		return err
	}
	w.buf[w.pos], w.buf[w.pos+1] = recordEndOfFile, recordEndOfBuffer
	if err := w.file.commit(fullChunk{w.buf[:w.pos+endSize], w.base, w.flushed, w.events}); err != nil {
		return err
	}
	w.flushed = w.pos
	return nil
}

// Sync flushes and waits until the file is on its device.
func (w *EventWriter) Sync() error {
	if err := w.Flush(); err != nil {
		return err
	}
	return w.checkWritten(w.file.sink.Sync())
}

// Abandon closes the file as of its last Flush, without what was written since: for a writer whose
// events refer to definitions that could not be saved. Later calls return ErrClosed.
func (w *EventWriter) Abandon() error {
	if w.closed {
		return fmt.Errorf("otf2: event writer: %w", ErrClosed)
	}
	w.closed = true
	w.fail(fmt.Errorf("otf2: event writer: %w", ErrClosed))
	w.buf = nil
	if err := w.file.sink.Close(); err != nil {
		return writingError(err)
	}
	return nil
}

// Close flushes and closes the file. Later calls of any method that writes return ErrClosed.
func (w *EventWriter) Close() error {
	if w.closed {
		return fmt.Errorf("otf2: event writer: %w", ErrClosed)
	}
	w.closed = true
	err := w.Flush()
	if cerr := w.file.sink.Close(); err == nil && cerr != nil {
		err = writingError(cerr)
	}
	w.broken = err
	if err == nil && w.nesting != nil {
		err = w.nesting.checkClose()
	}
	w.fail(fmt.Errorf("otf2: event writer: %w", ErrClosed))
	w.buf = nil
	return err
}

// Events returns the number of events written; attribute lists and time stamps do not count.
func (w *EventWriter) Events() uint64 { return w.events }

// Flushed returns the number of events in the file, which are those of its Size.
func (w *EventWriter) Flushed() uint64 { return w.file.events }

// Size returns the size of the file in bytes after the last flush; 0 if it could not even be made.
func (w *EventWriter) Size() int64 {
	switch {
	case !w.file.begun:
		return 0
	case len(w.file.kept) > 0:
		return w.file.kept[0].base + int64(w.file.kept[0].flushed) + endSize
	}
	return w.base + int64(w.flushed) + endSize
}

// LastTime returns the time of the last event, 0 if there is none.
func (w *EventWriter) LastTime() Timestamp { return w.last }

// Bytes returns the file of a writer made by NewMemoryEventWriter as of the last flush, nil for others. It is
// valid until the next flush.
func (w *EventWriter) Bytes() []byte {
	if m, ok := w.file.sink.(*memoryFile); ok {
		return m.data
	}
	return nil
}

// Park frees the buffer of a writer whose data is all in its file, as after a Flush: a quiet location then costs some
// hundred bytes. The next event allocates a buffer again.
func (w *EventWriter) Park() {
	if w.err != nil || w.parked || w.pos != w.flushed || w.file.events != w.events {
		return
	}
	w.park()
}
