// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
)

// sorter sorts entries by two keys, stably, in bounded memory: it collects entries up to a limit, writes them sorted to
// a file as a run, and finally merges the runs.
type sorter struct {
	spool spool
	limit int // bytes of entries kept in memory
	mu    sync.Mutex
	kept  *entries
	spare chan *entries // one is filled while another is written
	runs  []*stream     // oldest first
}

// runPieces is the least number of pieces of a run, about; one piece of each run is in memory.
const runPieces = 256

func newSorter(t *temp, limit int) *sorter {
	s := &sorter{spool: spool{temp: t}, limit: limit, kept: new(entries), spare: make(chan *entries, 1)}
	s.spare <- new(entries)
	return s
}

// entries are entries with their data.
type entries struct {
	keys  []keys
	other []keys // scratch space of sort
	data  []byte
	out   []byte // scratch space of write
}

type keys struct {
	a, b       uint64
	from, size uint32 // of data
}

const keysSize = 24

func (e *entries) bytes() int { return keysSize*len(e.keys) + len(e.data) }

func (e *entries) reset() { e.keys, e.data = e.keys[:0], e.data[:0] }

// moveFrom moves all entries of others here.
func (e *entries) moveFrom(others *entries) {
	base := uint32(len(e.data))
	for _, k := range others.keys {
		k.from += base
		e.keys = append(e.keys, k)
	}
	e.data = append(e.data, others.data...)
	others.reset()
}

// sort sorts entries by radix, from the last byte of their keys that differs between any of them to the first.
func (e *entries) sort() {
	if slices.IsSortedFunc(e.keys, compareKeys) {
		return
	}
	var differA, differB uint64
	for i := range e.keys {
		differA |= e.keys[i].a ^ e.keys[0].a
		differB |= e.keys[i].b ^ e.keys[0].b
	}
	e.other = slices.Grow(e.other[:0], len(e.keys))[:len(e.keys)]
	for shift := 0; shift < 64; shift += 8 {
		if differB>>shift&0xff != 0 {
			e.sortByByte(func(k *keys) uint8 { return uint8(k.b >> shift) })
		}
	}
	for shift := 0; shift < 64; shift += 8 {
		if differA>>shift&0xff != 0 {
			e.sortByByte(func(k *keys) uint8 { return uint8(k.a >> shift) })
		}
	}
}

// sortByByte sorts entries stably by one byte of their keys.
func (e *entries) sortByByte(digit func(*keys) uint8) {
	var ends [256]int
	for i := range e.keys {
		ends[digit(&e.keys[i])]++
	}
	sum := 0
	for i, n := range ends {
		ends[i] = sum
		sum += n
	}
	for i := range e.keys {
		d := digit(&e.keys[i])
		e.other[ends[d]] = e.keys[i]
		ends[d]++
	}
	e.keys, e.other = e.other, e.keys
}

func compareKeys(x, y keys) int {
	return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
}

// sorterBuffer passes entries of one goroutine to a sorter, many at a time.
type sorterBuffer struct {
	to *sorter
	entries
}

const feedBytes = 16 << 10

// add adds an entry with numbers as its data.
func (f *sorterBuffer) add(a, b uint64, numbers ...uint64) {
	from := len(f.data)
	for _, n := range numbers {
		f.data = binary.AppendUvarint(f.data, n)
	}
	f.endEntry(a, b, from)
}

// endEntry completes an entry whose data begin at from.
func (f *sorterBuffer) endEntry(a, b uint64, from int) {
	f.keys = append(f.keys, keys{a, b, uint32(from), uint32(len(f.data) - from)})
	if f.bytes() >= feedBytes {
		f.flush()
	}
}

func (f *sorterBuffer) flush() {
	s := f.to
	s.mu.Lock()
	s.kept.moveFrom(&f.entries)
	if s.kept.bytes() < s.limit {
		s.mu.Unlock()
		return
	}
	full := s.kept
	s.kept = <-s.spare
	run := &stream{to: &s.spool, piece: max(s.limit/runPieces, 1)}
	s.runs = append(s.runs, run)
	s.mu.Unlock()
	full.sort()
	full.write(run)
	full.reset()
	s.spare <- full
}

// write writes entries as a run, with keys as differences.
func (e *entries) write(run *stream) {
	var a, b uint64
	run.buf = e.out
	for i := range e.keys {
		k := &e.keys[i]
		run.writeNumber(k.a - a)
		run.writeNumber(zigzag(k.b - b))
		run.writeNumber(uint64(k.size))
		run.buf = append(run.buf, e.data[k.from:k.from+k.size]...)
		run.endRecord()
		a, b = k.a, k.b
	}
	run.flush()
	e.out, run.buf = run.buf, nil
}

// finish is called when all feeds have been flushed, before sorted. It frees memory.
func (s *sorter) finish() {
	s.kept.sort()
	s.kept.other, s.kept.out, s.spare = nil, nil, nil
}

func (s *sorter) close() {
	s.spool.close()
	s.kept, s.runs = new(entries), nil
}

// sorted returns all entries in their order.
func (s *sorter) sorted() *merge {
	m := &merge{}
	for i, r := range s.runs {
		m.add(&source{run: r.open(), age: i})
	}
	m.add(&source{kept: s.kept, age: len(s.runs)})
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	m.look()
	return m
}

// merge merges runs. Its fields are those of the next entry, if there is one.
type merge struct {
	heap  []*source
	more  bool
	a, b  uint64
	entry cursor // data of the entry
}

// source is a run on disk, or the entries still in memory.
type source struct {
	age  int
	a, b uint64
	data []byte

	run  *cursor
	kept *entries
	at   int
}

func (m *merge) add(s *source) {
	if s.next() {
		m.heap = append(m.heap, s)
	}
}

func (s *source) next() bool {
	if s.run == nil {
		if s.at == len(s.kept.keys) {
			return false
		}
		k := &s.kept.keys[s.at]
		s.at++
		s.a, s.b, s.data = k.a, k.b, s.kept.data[k.from:k.from+k.size]
		return true
	}
	if !s.run.hasNext() {
		return false
	}
	s.a += s.run.readNumber()
	s.b += unzigzag(s.run.readNumber())
	s.data = s.run.bytes(int(s.run.readNumber()))
	return true
}

func (s *source) isBefore(o *source) bool {
	if s.a != o.a {
		return s.a < o.a
	}
	if s.b != o.b {
		return s.b < o.b
	}
	return s.age < o.age
}

func (m *merge) down(i int) {
	h := m.heap
	for {
		least := 2*i + 1
		if least >= len(h) {
			return
		}
		if r := least + 1; r < len(h) && h[r].isBefore(h[least]) {
			least = r
		}
		if !h[least].isBefore(h[i]) {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

func (m *merge) look() {
	if m.more = len(m.heap) > 0; m.more {
		top := m.heap[0]
		m.a, m.b = top.a, top.b
		m.entry.buf, m.entry.at = top.data, 0
	}
}

// next advances to the next entry.
func (m *merge) next() {
	if !m.heap[0].next() {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.down(0)
	m.look()
}

// skipTo passes over entries with lesser first keys and reports whether the next entry has that first key.
func (m *merge) skipTo(a uint64) bool {
	for m.more && m.a < a {
		m.next()
	}
	return m.more && m.a == a
}

func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }
