// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unsafe"
)

// SpoolWriter writes a spool file of records that come from elsewhere: the inverse of Spool, for programs that make
// recordings. It writes one round, as a process does that brings everything to the disk at its end; the file is whole
// after Close.
type SpoolWriter struct {
	w     io.Writer
	err   error
	heap  []byte
	ids   map[string]uint32
	rings []ringChunk
}

// ringChunk is the part of a ring that is not written yet: records of one chunk.
type ringChunk struct {
	sequence uint64
	records  []byte
}

// NewSpoolWriter begins a file. Of the header, the layout's own members are filled in. Errors are those of Close.
func NewSpoolWriter(w io.Writer, h *Header) *SpoolWriter {
	s := &SpoolWriter{w: w, ids: make(map[string]uint32)}
	header := *h
	header.Magic, header.Version, header.HeaderSize = Magic, Version, HeaderSize
	s.frame(frameHeaderKind, 0, 0, unsafe.Slice((*byte)(unsafe.Pointer(&header)), HeaderSize))
	return s
}

// Comm writes communicator entry i.
func (s *SpoolWriter) Comm(i int, c *Comm) {
	if i < 0 || i >= CommMax {
		s.fail(fmt.Errorf("communicator entry %d of at most %d", i, CommMax))
		return
	}
	e := commEntry{
		Ready: 1, APIVersion: uint32(c.APIVersion), CommID: c.ID, Nranks: int32(c.NRanks), Rank: int32(c.Rank),
		Nnodes: int32(c.NNodes),
		Device: int32(c.Device), InitTicks: c.InitTicks, FinalTicks: c.FinalTicks, InitTID: uint32(c.InitTID),
		Name: s.id(c.Name),
	}
	if b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(c.UUID, "GPU-"), "-", "")); err == nil &&
		len(b) == len(e.UUID) {
		e.UUID, e.HasUUID = [16]byte(b), 1
	}
	copy(e.PCI[:len(e.PCI)-1], c.PCI)
	s.frame(frameComm, uint64(i), 0, unsafe.Slice((*byte)(unsafe.Pointer(&e)), commSize))
}

// Record adds a record to a ring.
func (s *SpoolWriter) Record(ring int, r *Record) {
	if ring < 0 || ring >= RingMax {
		s.fail(fmt.Errorf("ring %d of at most %d", ring, RingMax))
		return
	}
	for len(s.rings) <= ring {
		s.rings = append(s.rings, ringChunk{})
	}
	c := &s.rings[ring]
	before := len(c.records)
	c.records = AppendRecord(c.records, r, s.id)
	if len(c.records) <= chunkPayload {
		return
	}
	last := append([]byte(nil), c.records[before:]...) // records never cross a chunk
	s.frame(frameRing, uint64(ring), position(c.sequence, 0), c.records[:before])
	c.sequence++
	c.records = append(c.records[:0], last...)
}

// id returns the id of a string; 0, none, if the heap is full.
func (s *SpoolWriter) id(text string) uint32 {
	if text == "" {
		return 0
	}
	text = text[:min(len(text), StringMax)]
	if id, ok := s.ids[text]; ok {
		return id
	}
	at := len(s.heap)
	size := (4 + len(text) + 1 + 7) &^ 7
	if at+size > StringSize {
		return 0
	}
	s.heap = append(s.heap, make([]byte, size)...)
	binary.NativeEndian.PutUint32(s.heap[at:], uint32(len(text))+1)
	copy(s.heap[at+4:], text)
	id := uint32(at/8) + 1
	s.ids[text] = id
	return id
}

// Close writes the rest; clock is an instant after all records. The error is the first one there was.
func (s *SpoolWriter) Close(clock ClockTuple) error {
	for i := range s.rings {
		if c := &s.rings[i]; len(c.records) > 0 {
			s.frame(frameRing, uint64(i), position(c.sequence, 0), c.records)
		}
	}
	s.frame(frameStrings, 0, 0, s.heap)
	s.frame(frameClock, 0, 0, unsafe.Slice((*byte)(unsafe.Pointer(&clock)), int(unsafe.Sizeof(clock))))
	s.frame(frameEnd, 0, 0, nil)
	return s.err
}

func (s *SpoolWriter) frame(kind uint32, index, at uint64, body []byte) {
	if s.err != nil {
		return
	}
	_, err := s.w.Write(appendFrame(nil, kind, index, at, body))
	s.fail(err)
}

func (s *SpoolWriter) fail(err error) {
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("raw file: %w", err)
	}
}
