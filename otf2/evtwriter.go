// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"encoding/binary"
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
// What is written stays in memory until a chunk is full or Flush is called. The file is valid at any time: it always
// has an end mark behind the last flushed record, also while a flush is under way, so that a reader finds whole records
// up to the last flush even if the process dies.
//
// The first error of the file sticks: every later call and Close return it, and the file ends as the last good flush
// left it (but see EventWriterOptions.Patient). Refused events (TimeError, NestingError, ErrInvalid, ErrTooLarge) leave
// the writer usable.
type EventWriter struct {
	buf   []byte    // the current chunk from its header on; encoders may scribble behind pos
	pos   int       // end of the used part of buf
	high  int       // begin takes its slow path where pos would come near this
	last  Timestamp // of the last event
	err   error
	probe int // position before the current record if it may leave too little room for the end mark, else 0

	nesting *nesting        // nil unless asked for
	check   *referenceCheck // nil unless asked for
	careful bool            // end has more to do: probe or check is set
	events  uint64          // records written
	chunk   int             // chunk size

	sink    File
	parked  bool   // buf is the chunk's header alone, see Park
	base    int64  // offset of the current chunk in the file
	flushed int    // the file has buf[:flushed] and an end mark behind it, once kept is in it
	counted uint64 // events in the file: the number in the header of its last chunk
	kept    []keptChunk
	patient func(error)
	begun   bool // the file has a header
	closed  bool
	// unmarked: a commit has replaced the file's end mark, and has failed then, also in bringing it back.
	unmarked bool
	broken   error // why the file is not complete after Close
}

// keptChunk is a full chunk that could not be written, with the beginning of the next one.
type keptChunk struct {
	buf     []byte
	base    int64
	flushed int    // the file has so much of it
	events  uint64 // up to its end
}

// lastEventAt is where a chunk's header has the number of its last event.
const lastEventAt = 10

// Size of a new writer's buffer; it grows up to the chunk size, so that a quiet location costs little.
const firstBuffer = 1 << 10

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
	if opts == nil {
		opts = &EventWriterOptions{}
	}
	chunk, err := checkChunkSize(opts.ChunkSize, DefaultEventChunkSize)
	if err != nil {
		return nil, err
	}
	w := &EventWriter{chunk: chunk, patient: opts.Patient}
	if opts.CheckNesting {
		w.nesting = &nesting{}
	}
	w.resize(firstBuffer)
	appendHeader(w.buf[:0], 1, 0)
	w.pos, w.flushed = headerSize, headerSize
	return w, nil
}

// open writes the empty file.
func (w *EventWriter) open(s File) error {
	w.sink = s
	err := w.start()
	if err != nil && w.patient != nil {
		w.patient(fmt.Errorf("otf2: writing events: %w", err))
		return nil
	}
	return err
}

func (w *EventWriter) start() error {
	start := append(appendHeader(nil, 1, 0), recordEndOfFile, recordEndOfBuffer)
	if _, err := w.sink.WriteAt(start, 0); err != nil {
		return err
	}
	w.begun = true
	return nil
}

// resize gives the buffer room for n bytes of the chunk.
func (w *EventWriter) resize(n int) {
	n = min(n, w.chunk)
	// A full chunk is written together with the header and end mark of the next one.
	buf := make([]byte, n+headerSize+endSize+encoderSlack)
	copy(buf, w.buf[:w.pos])
	w.buf = buf
	w.high = n - 1
}

// Widen makes the chunks larger, as long as the file is shorter than one: then it is readable with either size. It
// reports whether it has done so.
func (w *EventWriter) Widen(chunkSize uint64) bool {
	chunk, err := checkChunkSize(chunkSize, DefaultEventChunkSize)
	if err != nil || w.base != 0 || chunk < w.chunk {
		return false
	}
	w.chunk = chunk // the buffer grows when it is full
	return true
}

// begin makes room for a record of at most size bytes and writes what precedes it: a new chunk if this one is
// full, a time stamp if time has moved on, the attributes. It returns the record's place. The event methods do by
// themselves what it does for the usual event, which has a later time, no attributes and room enough.
func (w *EventWriter) begin(t Timestamp, a *AttributeList, size int) (int, error) {
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

// stamp writes a time stamp at p and returns the position behind it.
func (w *EventWriter) stamp(p int, t Timestamp) int {
	b := w.buf[p : p+stampSize]
	b[0] = recordTimestamp
	binary.LittleEndian.PutUint64(b[1:], uint64(t))
	w.last = t
	return p + stampSize
}

// ensureRoom is begin's slow path. libotf2's rule is kept: a record that may need as much as is free opens a new chunk.
func (w *EventWriter) ensureRoom(t Timestamp, size int) error {
	w.unpark()
	need := w.pos + size + stampSize
	for need >= w.high && w.high < w.chunk-1 {
		w.resize(2 * (w.high + 1))
	}
	switch {
	case need < w.high:
		return nil
	case headerSize+stampSize+size+stampSize >= w.chunk-endSize:
		return fmt.Errorf("otf2: record of %d bytes in chunks of %d: %w", size, w.chunk, ErrTooLarge)
	case need >= w.chunk:
		return w.nextChunk(t)
	}
	w.careful = true
	w.probe = w.pos // libotf2 would write here, but one byte short of an end mark is possible
	return nil
}

// end takes over the record that was encoded up to p.
func (w *EventWriter) end(p int) error {
	if w.careful {
		var err error
		if p, err = w.endCarefully(p); err != nil {
			return err
		}
	}
	w.pos = p
	w.events++
	return nil
}

// endCarefully does what end does not for the usual event. It returns the end of the record, which may have moved.
func (w *EventWriter) endCarefully(p int) (int, error) {
	if w.check != nil {
		if err := w.check.event(w.buf, w.pos, p); err != nil {
			w.refuse(w.check.last)
			return 0, err
		}
		w.check.last = w.last
	}
	w.careful = w.check != nil
	if w.probe != 0 {
		err := w.settle(&p)
		return p, err
	}
	return p, nil
}

// refuse takes back what begin wrote for an event that is not written after all; last is the time of the event
// before it.
func (w *EventWriter) refuse(last Timestamp) {
	w.last, w.probe = last, 0
	if w.pos == headerSize+stampSize {
		w.pos = headerSize // the chunk's first stamp is that of its first event
	}
}

// entered is end for an Enter whose nesting is checked.
func (w *EventWriter) entered(p int, region RegionRef) error {
	err := w.end(p)
	if err == nil {
		w.nesting.enter(region)
	}
	return err
}

// left is end for a Leave whose nesting is checked.
func (w *EventWriter) left(p int) error {
	err := w.end(p)
	if err == nil {
		w.nesting.leaveRegion()
	}
	return err
}

// settle moves a record that leaves no room for an end mark to a new chunk.
func (w *EventWriter) settle(p *int) error {
	start := w.probe
	w.probe = 0
	if *p <= w.chunk-endSize {
		return nil
	}
	w.pos = start
	if w.buf[start] == recordTimestamp {
		start += stampSize // the new chunk begins with the same stamp
	}
	record := append([]byte(nil), w.buf[start:*p]...)
	if err := w.nextChunk(w.last); err != nil {
		return err
	}
	*p = w.pos + copy(w.buf[w.pos:], record)
	return nil
}

// nextChunk writes the current chunk, padded, and begins the next with time t.
func (w *EventWriter) nextChunk(t Timestamp) error {
	clear(w.buf[w.pos:w.chunk])
	appendHeader(w.buf[:w.chunk], w.events+1, w.events)
	end := w.chunk + headerSize
	w.buf[end], w.buf[end+1] = recordEndOfFile, recordEndOfBuffer
	full := keptChunk{w.buf[:end+endSize], w.base, w.flushed, w.events}
	var err error
	behind := len(w.kept) > 0 || !w.begun
	if !behind {
		err = w.commit(full)
	}
	switch {
	case w.patient != nil && (behind || err != nil):
		full.buf = bytes.Clone(full.buf)
		w.kept = append(w.kept, full)
		if err != nil {
			w.patient(fmt.Errorf("otf2: writing events: %w", err))
		}
	case err != nil:
		w.fail(fmt.Errorf("otf2: writing events: %w", err))
		return w.err
	}
	w.base += int64(w.chunk)
	copy(w.buf, w.buf[w.chunk:end])
	w.flushed = headerSize
	w.pos = w.stamp(headerSize, t)
	return nil
}

// commit brings c.buf[c.flushed:], which closes with an end mark, into the file, and the number of its events into the
// chunk's header. The file's present end mark stays until everything behind it is there; then the two bytes that
// replace it make the new end valid at once. After an error the file is what it was, or, if not even that can be
// written, as much of what is new, and longer than Size says.
func (w *EventWriter) commit(c keptChunk) error {
	mark := c.base + int64(c.flushed)
	_, err := w.sink.WriteAt(c.buf[c.flushed+endSize:], mark+endSize)
	if err == nil {
		w.unmarked = true
		err = w.replaceMark(c.buf[c.flushed:c.flushed+endSize], mark)
	}
	if err == nil {
		err = w.count(c, c.events)
	}
	if err != nil {
		w.takeBack(c, mark)
		return err
	}
	w.counted, w.unmarked = c.events, false
	return nil
}

// takeBack makes the file end at a mark again that a commit has failed to replace: in an order in which it is whole all
// the time.
func (w *EventWriter) takeBack(c keptChunk, mark int64) {
	if w.unmarked {
		if _, err := w.sink.WriteAt([]byte{recordEndOfFile, recordEndOfBuffer}, mark); err != nil ||
			w.count(c, w.counted) != nil {
			return
		}
		w.unmarked = false
	}
	_ = w.sink.Truncate(mark + endSize)
}

// count brings the number of the chunk's last event into its header.
func (w *EventWriter) count(c keptChunk, events uint64) error {
	binary.LittleEndian.PutUint64(c.buf[lastEventAt:], events)
	_, err := w.sink.WriteAt(c.buf[lastEventAt:headerSize], c.base+lastEventAt)
	return err
}

// replaceMark overwrites an end mark. A write within one page is not interrupted by a signal, but one over two
// pages can be; then the second byte goes first, because readers stop at the first and never look at the second.
func (w *EventWriter) replaceMark(b []byte, off int64) error {
	const smallestPage = 4096
	if off%smallestPage == smallestPage-1 {
		if _, err := w.sink.WriteAt(b[1:], off+1); err != nil {
			return err
		}
		b = b[:1]
	}
	_, err := w.sink.WriteAt(b, off)
	return err
}

// fail makes err the answer of all later calls.
func (w *EventWriter) fail(err error) {
	w.err = err
	w.high = 0 // no event fits any more, so that all come to begin
}

// Flush brings everything written so far into the file. It does nothing if there is nothing new.
func (w *EventWriter) Flush() error {
	if w.err != nil {
		return w.err
	}
	err := w.flush()
	if err != nil {
		err = fmt.Errorf("otf2: writing events: %w", err)
		if w.patient == nil {
			w.fail(err)
		}
	}
	return err
}

func (w *EventWriter) flush() error {
	if !w.begun {
		if err := w.start(); err != nil {
			return err
		}
	}
	for len(w.kept) > 0 {
		if err := w.commit(w.kept[0]); err != nil {
			return err
		}
		w.kept = append(w.kept[:0], w.kept[1:]...)
	}
	if w.pos == w.flushed {
		return nil
	}
	w.buf[w.pos], w.buf[w.pos+1] = recordEndOfFile, recordEndOfBuffer
	if err := w.commit(keptChunk{w.buf[:w.pos+endSize], w.base, w.flushed, w.events}); err != nil {
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
	err := w.sink.Sync()
	if err != nil {
		err = fmt.Errorf("otf2: writing events: %w", err)
		if w.patient == nil {
			w.fail(err)
		}
	}
	return err
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
	if err := w.sink.Close(); err != nil {
		return fmt.Errorf("otf2: writing events: %w", err)
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
	if cerr := w.sink.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("otf2: writing events: %w", cerr)
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

// Flushed returns how many of them are in the file: those of its Size.
func (w *EventWriter) Flushed() uint64 { return w.counted }

// Size returns the size of the file in bytes after the last flush; 0 if it could not even be made.
func (w *EventWriter) Size() int64 {
	switch {
	case !w.begun:
		return 0
	case len(w.kept) > 0:
		return w.kept[0].base + int64(w.kept[0].flushed) + endSize
	}
	return w.base + int64(w.flushed) + endSize
}

// LastTime returns the time of the last event, 0 if there is none.
func (w *EventWriter) LastTime() Timestamp { return w.last }

// Bytes returns the file of a writer made by NewMemoryEventWriter as of the last flush, nil for others. It is
// valid until the next flush.
func (w *EventWriter) Bytes() []byte {
	if m, ok := w.sink.(*memoryFile); ok {
		return m.data
	}
	return nil
}
