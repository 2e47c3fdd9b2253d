// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Spool reads the frames of a spool file as a Source.
//
// A round ends before a clock frame. The plugin notes how far it will read each ring, then the clock, then
// writes the clock's frame and those of the rings. So the rings' frames behind one clock frame hold
// everything up to the clock frame before it, and a round that ends before a third one is complete
// up to the first: that is Round.Clock. In the last round it is the last clock frame.
//
// A file that is cut off, or ends in bytes that are no frame, is read up to its last whole frame.
type Spool struct {
	r       *bufio.Reader
	size    int64 // of the file
	at      int64 // of the next frame
	header  Header
	strings *Strings
	rings   []*Ring
	parts   []*spoolRing
	comms   []commEntry
	clocks  [3]ClockTuple // the latest last
	ended   bool
	orderly bool
	lacking uint64
	within  bool // rings may begin anywhere in a chunk
	failed  *failure
	cut     string
}

// failure is the plugin's reason for giving up a file.
type failure struct {
	why    unix.Errno
	size   uint64 // of the file; it says nothing of a file that has become larger since
	header Header // counts also what is missing
}

// spoolRing collects a ring's records of a round.
type spoolRing struct {
	position uint64 // behind what has been seen
	pieces   []spoolPiece
}

// spoolPiece are records of one chunk.
type spoolPiece struct {
	position uint64
	bytes    []byte
}

// more implements refiller.
func (s *spoolRing) more() ([]byte, uint64, error) {
	if len(s.pieces) == 0 {
		return nil, 0, nil
	}
	p := s.pieces[0]
	s.pieces = s.pieces[1:]
	return p.bytes, p.position, nil
}

// OpenSpool starts reading a spool file of the given size. It fails if the file does not begin with
// a header frame of this version.
func OpenSpool(r io.Reader, size int64) (*Spool, error) {
	s := &Spool{r: bufio.NewReaderSize(r, 1<<16), size: size, strings: NewStrings(nil)}
	kind, err := s.frame()
	switch {
	case err != nil:
		return nil, fmt.Errorf("raw file: %w", err)
	case kind == 0:
		return nil, fmt.Errorf("raw file: %w: %s", ErrCorrupt, s.cut)
	case kind != frameHeaderKind && kind != frameFailed:
		return nil, fmt.Errorf("raw file: %w: it begins with a frame of kind %d", ErrCorrupt, kind)
	}
	s.clocks = [3]ClockTuple{s.header.Created, s.header.Created, s.header.Created}
	return s, nil
}

// Within states that the file is a collector's, which had taken the earlier records.
func (s *Spool) Within() { s.within = true }

// Orderly reports whether the file ends with the frame that the plugin writes when the process ends. It is valid after
// a Round with Ended.
func (s *Spool) Orderly() bool { return s.orderly }

// Failed returns why the plugin could not write the rest of the file, nil if it did not report a failure. Header and
// Lost then count what is missing beside other losses: all of it if the process has ended (Header.Ended), at least that
// much otherwise. It is valid after a Round with Ended.
func (s *Spool) Failed() error {
	if s.failed == nil {
		return nil
	}
	return s.failed.why
}

// Cut returns why reading stopped before the end of the file; "" if it did not.
func (s *Spool) Cut() string { return s.cut }

// Lacking is the number of bytes of records that frames skipped.
func (s *Spool) Lacking() uint64 { return s.lacking }

// Header implements Source.
func (s *Spool) Header() Header { return s.header }

// Lost implements Source.
func (s *Spool) Lost(reason LossReason, t EventType) uint64 { return s.header.Lost[reason][t] }

// Strings implements Source.
func (s *Spool) Strings() *Strings { return s.strings }

// Rings implements Source.
func (s *Spool) Rings() []*Ring { return s.rings }

// Comms implements Source.
func (s *Spool) Comms() int { return len(s.comms) }

// Comm implements Source.
func (s *Spool) Comm(i int) (Comm, bool) {
	if i < 0 || i >= len(s.comms) || s.comms[i].Ready != 1 {
		return Comm{}, false
	}
	return s.comms[i].comm(s.strings), true
}

// Refresh implements Source: it reads one round. Its error is the file's, not of its content.
func (s *Spool) Refresh() (Round, error) {
	for !s.ended {
		kind, err := s.frame()
		if err != nil {
			return Round{}, fmt.Errorf("raw file: %w", err)
		}
		switch kind {
		case 0:
			s.ended = true
		case frameEnd:
			s.orderly = true
		case frameClock:
			return Round{Clock: s.clocks[0]}, nil
		}
	}
	s.endFailure()
	return Round{Clock: s.clocks[2], Ended: true}, nil
}

// endFailure has the losses of a file that could not be written to its end count, and forgets a failure that the file
// has overcome.
func (s *Spool) endFailure() {
	switch f := s.failed; {
	case f == nil:
	case s.orderly || f.size != uint64(s.at):
		s.failed = nil
	default:
		s.header = f.header
	}
}

// maxFrame bounds a frame: the plugin's largest holds all strings.
const maxFrame = 2 * StringSize

// frame reads and applies one frame. Kind 0 is the end; s.cut then says whether it is a proper one.
func (s *Spool) frame() (kind uint32, err error) {
	var raw [frameHeadSize]byte
	if s.at == s.size {
		return 0, nil
	}
	if _, err := io.ReadFull(s.r, raw[:]); err != nil {
		return s.stop(err, "a frame's head is cut off")
	}
	f := *(*frameHeader)(unsafe.Pointer(&raw))
	if f.Magic != FrameMagic {
		return s.stop(nil, "bytes that are no frame")
	}
	// No body is larger than what is left of the file, so a broken length allocates no more than that.
	if f.Length > uint64(max(0, s.size-s.at-frameHeadSize)) {
		return s.stop(nil, "a frame is cut off")
	}
	if f.Length > maxFrame { // a sparse file has any size
		return s.stop(nil, fmt.Sprintf("a frame of %d bytes", f.Length))
	}
	padded := (f.Length + 7) &^ 7
	body := make([]byte, padded)
	if n, err := io.ReadFull(s.r, body); err != nil && uint64(n) < f.Length {
		return s.stop(err, "a frame is cut off")
	}
	body = body[:f.Length]
	if reason := s.apply(&f, body); reason != "" {
		return s.stop(nil, reason)
	}
	s.at = min(s.at+frameHeadSize+int64(padded), s.size)
	return f.Kind, nil
}

// stop ends reading at the present frame.
func (s *Spool) stop(err error, reason string) (uint32, error) {
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	}
	s.cut = fmt.Sprintf("%s at offset %d of %d", reason, s.at, s.size)
	s.ended = true
	return 0, nil
}

// apply takes over a frame's content; a reason means that it does not match its kind.
func (s *Spool) apply(f *frameHeader, body []byte) (reason string) {
	switch f.Kind {
	case frameHeaderKind, frameFailed:
		if len(body) != HeaderSize {
			return fmt.Sprintf("a header frame of %d bytes", len(body))
		}
		h := *(*Header)(unsafe.Pointer(unsafe.SliceData(body)))
		if err := h.check(); err != nil {
			return err.Error()
		}
		s.header = h
		if f.Kind == frameFailed {
			s.failed = &failure{unix.Errno(f.Index), f.Position, h}
		}
	case frameComm:
		if len(body) != commSize || f.Index >= CommMax {
			return fmt.Sprintf("a communicator frame of %d bytes for entry %d", len(body), f.Index)
		}
		for uint64(len(s.comms)) <= f.Index {
			s.comms = append(s.comms, commEntry{})
		}
		s.comms[f.Index] = *(*commEntry)(unsafe.Pointer(unsafe.SliceData(body)))
	case frameStrings:
		if !s.strings.storeBytes(f.Index, body) {
			return fmt.Sprintf("a strings frame of %d bytes for offset %d", len(body), f.Index)
		}
	case frameRing:
		if f.Index >= RingMax || len(body)%Unit != 0 {
			return fmt.Sprintf("a ring frame of %d bytes for ring %d", len(body), f.Index)
		}
		s.append(int(f.Index), f.Position, body)
	case frameClock:
		if len(body) != int(unsafe.Sizeof(ClockTuple{})) {
			return fmt.Sprintf("a clock frame of %d bytes", len(body))
		}
		s.clocks = [3]ClockTuple{s.clocks[1], s.clocks[2], *(*ClockTuple)(unsafe.Pointer(unsafe.SliceData(body)))}
	case frameEnd:
	default:
		return fmt.Sprintf("a frame of unknown kind %d", f.Kind)
	}
	return ""
}

// ring is the part of a ring, which is made with those before it if it is not there.
func (s *Spool) ring(i int) *spoolRing {
	for n := len(s.rings); n <= i; n++ {
		part := &spoolRing{}
		s.parts = append(s.parts, part)
		s.rings = append(s.rings, &Ring{index: n, refill: part, strings: s.strings})
	}
	return s.parts[i]
}

// append adds records to a ring. Bytes seen before are skipped, missing ones counted, but for those at the end of a
// chunk: how full it was is not known.
func (s *Spool) append(ring int, position uint64, body []byte) {
	p := s.ring(ring)
	if position < p.position {
		seen := min(p.position-position, uint64(len(body)))
		body, position = body[seen:], position+seen
	}
	if len(body) == 0 {
		return
	}
	if p.position == 0 { // a collector may have had what was in earlier chunks
		if p.position = position; !s.within {
			p.position = position >> 32 << 32
		}
	}
	s.lacking += lacking(p.position, position)
	p.position = position + uint64(len(body))
	if n := len(p.pieces); n > 0 && p.pieces[n-1].position+uint64(len(p.pieces[n-1].bytes)) == position {
		p.pieces[n-1].bytes = append(p.pieces[n-1].bytes, body...)
	} else {
		p.pieces = append(p.pieces, spoolPiece{position, body})
	}
}

// lacking is how many bytes lie between two positions of a ring at least.
func lacking(from, to uint64) uint64 {
	const bytes = 1<<32 - 1
	if from>>32 == to>>32 {
		return to - from
	}
	return (to>>32-from>>32-1)*chunkPayload + to&bytes
}
