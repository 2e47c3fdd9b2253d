// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"unsafe"
)

// BacklogFile is what a Backlog needs of its file; *os.File has it.
type BacklogFile interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
}

// Backlog is a spool file to which a collector appends records instead of decoding them, and from which rings give them
// later. It holds the frames that plugin/spool.c writes, so that Spool can read the file after the collector is gone.
type Backlog struct {
	Most int64 // bytes that the file may have

	file BacklogFile
	size int64  // of whole frames
	buf  []byte // of the round being written
	at   int64  // where it goes

	header  uint64 // raw clock of the last header frame; 0: none yet
	strings uint64 // bytes of the heap that are written
	comms   []uint64
	open    int // communicators below this have been finalized and written so
}

// headerPeriod is after how many nanoseconds the header is written again, whose counters change.
const headerPeriod = 2e9

// mostBuffered is how many bytes of frames are written at once.
const mostBuffered = 1 << 20

// ErrFull is the error for a backlog that has reached its maximum size.
var ErrFull = errors.New("the file is as large as it may be")

// NewBacklog returns a Backlog for an empty file, of at most most bytes.
func NewBacklog(file BacklogFile, most int64) *Backlog { return &Backlog{Most: most, file: file} }

// Size returns the size of the file in bytes.
func (b *Backlog) Size() int64 { return b.size }

// Reset empties the file. Its content must no longer be needed.
func (b *Backlog) Reset() error {
	if err := b.file.Truncate(0); err != nil {
		return err
	}
	*b = Backlog{Most: b.Most, file: b.file, buf: b.buf[:0]}
	return nil
}

// frame adds a frame and returns where in the file its body begins.
func (b *Backlog) frame(kind uint32, index, position uint64, body []byte) (offset int64, err error) {
	if len(b.buf)+len(body) > mostBuffered {
		if err := b.write(); err != nil {
			return 0, err
		}
	}
	offset = b.at + int64(len(b.buf)) + frameHeadSize
	b.buf = appendFrame(b.buf, kind, index, position, body)
	return offset, nil
}

func (b *Backlog) write() error {
	if b.at+int64(len(b.buf)) > b.Most {
		return ErrFull
	}
	_, err := b.file.WriteAt(b.buf, b.at)
	b.at += int64(len(b.buf))
	b.buf = b.buf[:0]
	return err
}

// undo reverts a round that could not be written. If that fails, too, readers stop at an invalid frame, or find the
// same records again in the memory, and the next round overwrites it.
func (b *Backlog) undo() {
	b.buf = b.buf[:0]
	b.header, b.strings, b.open = 0, 0, 0 // are written again
	clear(b.comms)
	_ = b.file.Truncate(b.size)
}

// appendFrame adds a frame as spool files have them.
func appendFrame(to []byte, kind uint32, index, position uint64, body []byte) []byte {
	f := frameHeader{Magic: FrameMagic, Kind: kind, Index: index, Position: position, Length: uint64(len(body))}
	to = append(to, unsafe.Slice((*byte)(unsafe.Pointer(&f)), frameHeadSize)...)
	to = append(to, body...)
	var padding [8]byte
	return append(to, padding[:-len(body)&7]...)
}

// extent are records of one chunk in a file.
type extent struct {
	file     io.ReaderAt
	offset   int64
	position uint64
	length   uint32
}

// PutOff appends all that has been published and not been read to a backlog; rings give it from there, and nothing of
// what is published from now on, until it has been put off, too, or TakeLive. It returns the bytes of records. After an
// error nothing of it has happened. clock is an instant before the call.
func (m *Memory) PutOff(b *Backlog, clock ClockTuple) (n uint64, err error) {
	m.putsOff = true
	pieces := m.pieces[:0]
	for i, l := range m.live {
		pieces = l.ahead(m.rings[i], pieces)
	}
	m.pieces = pieces
	if len(pieces) == 0 {
		return 0, nil
	}
	for i := range pieces {
		n += uint64(len(pieces[i].bytes))
	}
	if b.size+int64(n) > b.Most { // it need not be tried
		return 0, ErrFull
	}
	if err := m.append(b, clock, pieces); err != nil {
		b.undo()
		return 0, fmt.Errorf("backlog: %w", err)
	}
	for i := range pieces {
		p := &pieces[i]
		m.rings[p.ring].addExtent(extent{b.file, p.at, p.position, uint32(len(p.bytes))})
	}
	for i, l := range m.live {
		l.goAhead(m.rings[i])
	}
	return n, nil
}

// append writes a round: what is needed to understand its records, and these.
func (m *Memory) append(b *Backlog, clock ClockTuple, pieces []livePiece) (err error) {
	b.at = b.size
	if err := m.describe(b, clock); err != nil {
		return err
	}
	for i := range pieces {
		p := &pieces[i]
		if p.at, err = b.frame(frameRing, uint64(p.ring), p.position, p.bytes); err != nil {
			return err
		}
	}
	if err := b.write(); err != nil {
		return err
	}
	b.size = b.at
	return nil
}

// TakeLive has rings give again what is published, behind what has been put off.
func (m *Memory) TakeLive() { m.putsOff = false }

// PutsOff reports whether records are put off.
func (m *Memory) PutsOff() bool { return m.putsOff }

// Stored reports whether records that were put off are still unread.
func (m *Memory) Stored() bool { return slices.ContainsFunc(m.rings, (*Ring).Stored) }

// StoredBytes returns the number of bytes of records that were put off and not read yet.
func (m *Memory) StoredBytes() (n uint64) {
	for _, r := range m.rings {
		for i := range r.stored {
			n += uint64(r.stored[i].length)
		}
	}
	return n
}

// livePiece are records of one chunk that are to be put off.
type livePiece struct {
	ring     int
	position uint64
	bytes    []byte
	at       int64 // in the file
}

// place is how far a ring's chunks have been walked.
type place struct {
	current uint32
	number  uint64
	read    uint32
}

// ahead adds what is published of a ring and not read, and remembers how far that is. What is wrong with the memory
// beyond is found when it is read.
func (l *liveRing) ahead(ring *Ring, to []livePiece) []livePiece {
	l.left = l.left[:0]
	l.next = place{l.current, l.number, l.read}
	if ring.broken != nil {
		return to
	}
	if len(ring.pending) > 0 && ring.live {
		to = append(to, livePiece{ring: ring.index, position: ring.at, bytes: ring.pending})
	}
	if l.next.current == 0 {
		first := atomic.LoadUint32(&l.ring.First)
		if first == 0 {
			return to
		}
		if err := l.enters(&l.next, first, true); err != nil {
			return to
		}
	}
	for {
		c := l.m.chunk(l.next.current - 1)
		next := atomic.LoadUint32(&c.Next) // before `committed`, see more
		committed := atomic.LoadUint32(&c.Committed)
		b, at, err := l.between(&l.next, committed)
		if err != nil {
			return to
		}
		if len(b) > 0 {
			to = append(to, livePiece{ring: ring.index, position: at, bytes: b})
		}
		if next == 0 {
			return to
		}
		was := l.next.current - 1
		if err := l.enters(&l.next, next, false); err != nil {
			return to
		}
		l.left = append(l.left, was)
	}
}

// goAhead is behind what ahead found, which has been put off.
func (l *liveRing) goAhead(ring *Ring) {
	if ring.live {
		ring.pending = nil
	}
	l.current, l.number, l.read = l.next.current, l.next.number, l.next.read
	for _, c := range l.left {
		l.behind = append(l.behind, c)
		l.m.leave(c)
	}
	l.left = l.left[:0]
}

// describe adds what is needed to understand records without the memory: the header now and then, the clock, strings
// and communicators that are new. The frames and their order are those of flush in plugin/spool.c.
func (m *Memory) describe(b *Backlog, clock ClockTuple) error {
	if b.header == 0 || clock.Raw-b.header >= headerPeriod {
		h := m.Header()
		if _, err := b.frame(frameHeaderKind, 0, 0, unsafe.Slice((*byte)(unsafe.Pointer(&h)), HeaderSize)); err != nil {
			return err
		}
		b.header = clock.Raw
	}
	if _, err := b.frame(frameClock, 0, 0, unsafe.Slice(
		(*byte)(unsafe.Pointer(&clock)), int(unsafe.Sizeof(clock)))); err != nil {
		return err
	}
	if err := m.describeStrings(b); err != nil {
		return err
	}
	return m.describeComms(b)
}

func (m *Memory) describeStrings(b *Backlog) error {
	heap := m.data[m.header.StringOffset : m.header.StringOffset+StringSize]
	used := min(atomic.LoadUint64(&m.header.StringUsed), StringSize)
	end := b.strings
	for end+8 <= used {
		length := atomic.LoadUint32((*uint32)(unsafe.Pointer(&heap[end])))
		if length == 0 {
			break // nothing is known of what follows a string that is being written
		}
		next := (end + 4 + uint64(length) + 7) &^ 7
		if next > used {
			break
		}
		end = next
	}
	if end == b.strings {
		return nil
	}
	_, err := b.frame(frameStrings, b.strings, 0, heap[b.strings:end])
	b.strings = end
	return err
}

func (m *Memory) describeComms(b *Backlog) error {
	used, allFinal := m.Comms(), true
	for len(b.comms) < used {
		b.comms = append(b.comms, 0)
	}
	for i := b.open; i < used; i++ {
		e := m.comm(i)
		if atomic.LoadUint32(&e.Ready) != 1 {
			allFinal = false
			continue
		}
		final := atomic.LoadUint64(&e.FinalTicks)
		if b.comms[i] != final+1 {
			// The counters go on changing and are of no use in a file.
			c := commEntry{
				Ready: 1, APIVersion: e.APIVersion, CommID: e.CommID, Nranks: e.Nranks, Rank: e.Rank, Nnodes: e.Nnodes,
				Device:    e.Device,
				InitTicks: e.InitTicks, FinalTicks: final, InitTID: e.InitTID, Name: e.Name, UUID: e.UUID, PCI: e.PCI,
				HasUUID: e.HasUUID,
			}
			if _, err := b.frame(frameComm, uint64(i), 0,
				unsafe.Slice((*byte)(unsafe.Pointer(&c)), commSize)); err != nil {
				return err
			}
			b.comms[i] = final + 1
		}
		if allFinal = allFinal && final != 0; allFinal {
			b.open = i + 1
		}
	}
	return nil
}

// Earlier are records that a file holds, by ring, for a source that goes on behind them.
type Earlier struct{ rings [][]extent }

// Index finds the records in a spool file of a given size, up to its last whole frame. Its error is the file's, not of
// its content.
func Index(file io.ReaderAt, size int64) (*Earlier, error) {
	e := &Earlier{}
	var raw [frameHeadSize]byte
	for at := int64(0); at+frameHeadSize <= size; {
		if _, err := file.ReadAt(raw[:], at); err != nil {
			return nil, fmt.Errorf("backlog: %w", err)
		}
		f := *(*frameHeader)(unsafe.Pointer(&raw))
		body := at + frameHeadSize
		if f.Magic != FrameMagic || f.Length > uint64(size-body) {
			break
		}
		if f.Kind == frameRing && f.Index < RingMax && f.Length%Unit == 0 && f.Length <= chunkPayload {
			e.add(int(f.Index), extent{file, body, f.Position, uint32(f.Length)})
		}
		at = body + int64((f.Length+7)&^7)
	}
	return e, nil
}

func (e *Earlier) add(ring int, x extent) {
	for len(e.rings) <= ring {
		e.rings = append(e.rings, nil)
	}
	e.rings[ring] = append(e.rings[ring], x)
}

// Bytes is how many bytes of records there are.
func (e *Earlier) Bytes() (n uint64) {
	for _, ring := range e.rings {
		for _, x := range ring {
			n += uint64(x.length)
		}
	}
	return n
}

// Precede implements Source.
func (m *Memory) Precede(e *Earlier) {
	m.earlier = append(m.earlier, e)
	for _, ring := range m.rings {
		ring.precede(e)
	}
}

// Precede implements Source.
func (s *Spool) Precede(e *Earlier) {
	if n := len(e.rings); n > 0 {
		s.ring(n - 1)
	}
	for _, ring := range s.rings {
		ring.precede(e)
	}
}

func (r *Ring) precede(e *Earlier) {
	if r.index < len(e.rings) {
		for _, x := range e.rings[r.index] {
			r.addExtent(x)
		}
	}
}

// addExtent appends a range of a file to the records that a ring returns.
func (r *Ring) addExtent(x extent) {
	if x.position < r.end {
		seen := uint32(min(r.end-x.position, uint64(x.length)))
		x.offset, x.position, x.length = x.offset+int64(seen), x.position+uint64(seen), x.length-seen
	}
	if x.length > 0 {
		r.stored = append(r.stored, x)
		r.end = x.position + uint64(x.length)
	}
}

// Stored reports whether records in a file precede those of the source itself.
func (r *Ring) Stored() bool { return len(r.stored) > 0 || len(r.pending) > 0 && !r.live }

// loadStored reads the next records that were put off.
func (r *Ring) loadStored() bool {
	x := r.stored[0]
	if cap(r.buffer) < int(x.length) {
		r.buffer = make([]byte, min(2*x.length, chunkPayload))
	}
	b := r.buffer[:x.length]
	if _, err := x.file.ReadAt(b, x.offset); err != nil {
		r.stalled = fmt.Errorf("backlog: %w", err)
		return false
	}
	if r.stored = r.stored[1:]; len(r.stored) == 0 {
		r.stored = nil
	}
	r.pending, r.at, r.live, r.stalled = b, x.position, false, nil
	return true
}

// Stalled is why a ring gives nothing although there is more: a file could not be read, which the next look tries
// again.
func (r *Ring) Stalled() error { return r.stalled }
