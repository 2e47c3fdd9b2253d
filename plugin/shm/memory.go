// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is the live memory of a job process, seen from its collector.
//
// Why the unsafe parts are sound: Map checks that every table lies inside the mapping and is aligned
// for its type; structs mirror C's layout (a test compares them with the compiler); fields that the
// other side changes are accessed atomically, and records only behind an acquiring load of
// `committed`. The file's size never shrinks, so no access can fault, short of Close.
//
// The other process may be broken: every index read from the memory is checked before use.
type Memory struct {
	file    *os.File
	data    []byte
	header  *Header
	states  []uint32
	strings *Strings
	rings   []*Ring
	live    []*liveRing
	warm    []uint32 // chunks given back with their pages in place
	keep    int      // how many of them keep their pages: a decaying peak of what Release gave back
	read    uint64   // bytes of records taken out of chunks so far

	putsOff bool        // see PutOff
	pieces  []livePiece // of PutOff
	earlier []*Earlier  // what rings give first that are not in use yet
}

// Map maps the memory behind a file descriptor, which it takes over, also when it fails.
func Map(fd int) (*Memory, error) {
	unix.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "shared memory")
	if file == nil {
		return nil, fmt.Errorf("shared memory: bad file descriptor %d", fd)
	}
	m, err := mapFile(file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	return m, nil
}

// ReadHeader reads the header of a file that holds such memory.
func ReadHeader(file io.ReaderAt) (Header, error) {
	var h Header
	if _, err := file.ReadAt((*[HeaderSize]byte)(unsafe.Pointer(&h))[:], 0); err != nil {
		return Header{}, fmt.Errorf("%w: header: %v", ErrCorrupt, err)
	}
	return h, h.check()
}

func mapFile(file *os.File) (*Memory, error) {
	h, err := ReadHeader(file)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if h.TotalSize > uint64(info.Size()) {
		return nil, fmt.Errorf("%w: %d bytes, the header says %d", ErrCorrupt, info.Size(), h.TotalSize)
	}
	for _, t := range []struct {
		name       string
		offset     uint64
		size       uint64
		align      uint64
		atLeastOne bool
	}{
		{"chunk states", h.ChunkStateOffset, 4 * uint64(h.ChunkCount), 8, true},
		{"rings", h.RingOffset, ringSize * RingMax, 8, true},
		{"communicators", h.CommOffset, commSize * CommMax, 8, true},
		{"strings", h.StringOffset, StringSize, 8, true},
		{"chunks", h.ChunkOffset, ChunkSize * uint64(h.ChunkCount), PageSize, true},
	} {
		if t.size == 0 || t.offset%t.align != 0 || t.offset < HeaderSize ||
			t.offset > h.TotalSize || t.size > h.TotalSize-t.offset {
			return nil, fmt.Errorf("%w: %s at %d, %d bytes, of %d", ErrCorrupt, t.name, t.offset, t.size, h.TotalSize)
		}
	}
	if h.ChunkReserve >= h.ChunkCount {
		return nil, fmt.Errorf("%w: %d of %d chunks in reserve", ErrCorrupt, h.ChunkReserve, h.ChunkCount)
	}
	data, err := unix.Mmap(int(file.Fd()), 0, int(h.TotalSize), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", h.TotalSize, err)
	}
	m := &Memory{file: file, data: data}
	m.header = (*Header)(unsafe.Pointer(&data[0]))
	m.states = unsafe.Slice((*uint32)(unsafe.Pointer(&data[h.ChunkStateOffset])), h.ChunkCount)
	m.strings = NewStrings(data[h.StringOffset : h.StringOffset+StringSize])
	return m, nil
}

// Close unmaps the memory. Nothing of it may be used afterwards; decoded records stay good.
func (m *Memory) Close() error {
	err := unix.Munmap(m.data)
	m.data, m.header, m.states, m.rings, m.live = nil, nil, nil, nil, nil
	if e := m.file.Close(); err == nil {
		err = e
	}
	return err
}

// Header implements Source.
func (m *Memory) Header() Header {
	h := m.header
	// Field by field: what the plugin is changing is loaded atomically.
	c := Header{
		Magic: h.Magic, Version: h.Version, HeaderSize: h.HeaderSize, TotalSize: h.TotalSize,
		ChunkStateOffset: h.ChunkStateOffset, RingOffset: h.RingOffset, CommOffset: h.CommOffset,
		StringOffset: h.StringOffset, ChunkOffset: h.ChunkOffset,
		ChunkCount: h.ChunkCount, ChunkReserve: h.ChunkReserve, PID: h.PID, Tag: h.Tag, PIDStart: h.PIDStart,
		ClockSource: h.ClockSource, APIVersion: h.APIVersion, ClockHz: h.ClockHz, Created: h.Created,
		Hostname: h.Hostname, BootID: h.BootID, Executable: h.Executable,
		Library: h.Library, LibraryVersion: h.LibraryVersion, LibraryPath: h.LibraryPath,
		MemoryKind: h.MemoryKind, UID: h.UID, MemoryPath: h.MemoryPath,
	}
	c.RingUsed = atomic.LoadUint32(&h.RingUsed)
	c.CommUsed = atomic.LoadUint32(&h.CommUsed)
	c.StringUsed = atomic.LoadUint64(&h.StringUsed)
	c.NextNumber = atomic.LoadUint64(&h.NextNumber)
	c.HostTicks = atomic.LoadUint64(&h.HostTicks)
	c.Request = atomic.LoadUint32(&h.Request)
	c.Ended = atomic.LoadUint32(&h.Ended)
	c.LiveComms = atomic.LoadUint32(&h.LiveComms)
	c.FaultedChunks = atomic.LoadUint32(&h.FaultedChunks)
	c.Foreign = atomic.LoadUint64(&h.Foreign)
	c.NullHandles = atomic.LoadUint64(&h.NullHandles)
	c.LostMarks = atomic.LoadUint64(&h.LostMarks)
	c.CuptiState = CuptiState(atomic.LoadUint32((*uint32)(&h.CuptiState)))
	c.CuptiVersion = atomic.LoadUint32(&h.CuptiVersion)
	c.CuptiError = atomic.LoadInt32(&h.CuptiError)
	c.CuptiLost = atomic.LoadUint64(&h.CuptiLost)
	c.CuptiDropped = atomic.LoadUint64(&h.CuptiDropped)
	c.CuptiUnknown = atomic.LoadUint64(&h.CuptiUnknown)
	c.CuptiBuffersOut = atomic.LoadUint64(&h.CuptiBuffersOut)
	c.CuptiBuffersStrange = atomic.LoadUint64(&h.CuptiBuffersStrange)
	c.CuptiBuffersOverwritten = atomic.LoadUint64(&h.CuptiBuffersOverwritten)
	c.CuptiWhy = h.CuptiWhy // in place before the state that was just read
	c.CuptiKinds = atomic.LoadUint64(&h.CuptiKinds)
	c.ScorepState = ScorepState(atomic.LoadUint32((*uint32)(&h.ScorepState)))
	c.ScorepModel = ScorepModel(atomic.LoadUint32((*uint32)(&h.ScorepModel)))
	c.ScorepMeasured = atomic.LoadUint32(&h.ScorepMeasured)
	c.ScorepPoints = atomic.LoadUint32(&h.ScorepPoints)
	c.Withheld = atomic.LoadUint32(&h.Withheld)
	c.WithheldWhy = WithheldWhy(atomic.LoadUint32((*uint32)(&h.WithheldWhy)))
	c.Preparer = atomic.LoadUint32(&h.Preparer)
	c.Unanswered = atomic.LoadUint32(&h.Unanswered)
	c.Waited = atomic.LoadUint64(&h.Waited)
	c.ScorepRank = atomic.LoadInt32(&h.ScorepRank)
	c.ScorepForwarded = atomic.LoadUint64(&h.ScorepForwarded)
	for i := range h.ScorepKept {
		c.ScorepKept[i] = atomic.LoadUint64(&h.ScorepKept[i])
	}
	c.ScorepWhy = h.ScorepWhy // in place before the state that was just read
	for t := range h.Filtered {
		c.Filtered[t] = atomic.LoadUint64(&h.Filtered[t])
		c.Paused[t] = atomic.LoadUint64(&h.Paused[t])
		for b := range h.Cost {
			from := &h.Cost[b][t]
			c.Cost[b][t] = Cost{atomic.LoadUint64(&from.Samples), atomic.LoadUint64(&from.Ticks),
				atomic.LoadUint64(&from.Most)}
		}
		for r := range h.Lost {
			c.Lost[r][t] = atomic.LoadUint64(&h.Lost[r][t])
		}
	}
	c.CollectorState = CollectorState(atomic.LoadUint32((*uint32)(&h.CollectorState)))
	c.CollectorPID = atomic.LoadUint32(&h.CollectorPID)
	c.Answered = atomic.LoadUint32(&h.Answered)
	c.EventMask = atomic.LoadUint32(&h.EventMask)
	c.RecordMask = atomic.LoadUint32(&h.RecordMask)
	c.WindowFirst, c.WindowLast = atomic.LoadUint64(&h.WindowFirst), atomic.LoadUint64(&h.WindowLast)
	return c
}

// Lost implements Source.
func (m *Memory) Lost(reason LossReason, t EventType) uint64 {
	return atomic.LoadUint64(&m.header.Lost[reason][t])
}

// Strings implements Source.
func (m *Memory) Strings() *Strings { return m.strings }

// Comms implements Source.
func (m *Memory) Comms() int { return int(min(atomic.LoadUint32(&m.header.CommUsed), CommMax)) }

// Comm implements Source.
func (m *Memory) Comm(i int) (Comm, bool) {
	if i < 0 || i >= m.Comms() {
		return Comm{}, false
	}
	e := m.comm(i)
	if atomic.LoadUint32(&e.Ready) != 1 {
		return Comm{}, false
	}
	c := commEntry{
		Ready: 1, APIVersion: e.APIVersion, CommID: e.CommID, Nranks: e.Nranks, Rank: e.Rank, Nnodes: e.Nnodes,
		Device: e.Device, InitTicks: e.InitTicks, FinalTicks: atomic.LoadUint64(&e.FinalTicks), InitTID: e.InitTID,
		Name: e.Name, UUID: e.UUID, PCI: e.PCI, HasUUID: e.HasUUID,
		Collectives: atomic.LoadUint64(&e.Collectives), Messages: atomic.LoadUint64(&e.Messages),
		Replayed: atomic.LoadUint64(&e.Replayed), First: atomic.LoadUint64(&e.First), Last: atomic.LoadUint64(&e.Last),
	}
	return c.comm(m.strings), true
}

// Refused is the range of ordinals from ≤ ordinal < to of a communicator's calls that were refused since ForgetRefused;
// false: none.
func (m *Memory) Refused(comm int) (from, to uint64, ok bool) {
	if comm < 0 || comm >= m.Comms() {
		return 0, 0, false
	}
	e := m.comm(comm)
	first := atomic.LoadUint64(&e.RefusedFirst)
	return max(first, 1) - 1, atomic.LoadUint64(&e.RefusedLast), first != 0
}

// ForgetRefused begins to note anew which calls are refused. None may be refused now.
func (m *Memory) ForgetRefused() {
	for i := range m.Comms() {
		atomic.StoreUint64(&m.comm(i).RefusedFirst, 0)
	}
}

// comm returns a communicator's entry; its index must have been checked.
func (m *Memory) comm(i int) *commEntry {
	return (*commEntry)(unsafe.Pointer(&m.data[m.header.CommOffset+uint64(i)*commSize]))
}

// SetWindow says which operations of a communicator rank are recorded from now on. It says nothing of
// one that does not exist.
func (m *Memory) SetWindow(comm int, w Window) {
	if comm < 0 || comm >= m.Comms() {
		return
	}
	e := m.comm(comm)
	// The plugin may read between the two: never a window wider than both.
	atomic.StoreUint64(&e.Last, min(w.Last, atomic.LoadUint64(&e.Last)))
	atomic.StoreUint64(&e.First, w.First)
	atomic.StoreUint64(&e.Last, w.Last)
}

// SetFirstWindow says which operations of communicators that are made from now on are recorded.
func (m *Memory) SetFirstWindow(w Window) {
	atomic.StoreUint64(&m.header.WindowLast, min(w.Last, atomic.LoadUint64(&m.header.WindowLast)))
	atomic.StoreUint64(&m.header.WindowFirst, w.First)
	atomic.StoreUint64(&m.header.WindowLast, w.Last)
}

// Rings implements Source.
func (m *Memory) Rings() []*Ring { return m.rings }

// Refresh implements Source. Rings look for newer records by themselves whenever they run dry; what
// Refresh adds is the order: it reads the clock first. With ClockHost, the ticks are the greatest
// handed out so far.
func (m *Memory) Refresh() (Round, error) {
	ended := atomic.LoadUint32(&m.header.Ended) != 0
	host := atomic.LoadUint64(&m.header.HostTicks)
	round := Round{Clock: ReadClock(m.header.ClockSource), Ended: ended}
	if m.header.ClockSource == ClockHost {
		round.Clock.Ticks = host
	}
	used := int(min(atomic.LoadUint32(&m.header.RingUsed), RingMax))
	for i := len(m.rings); i < used; i++ {
		l := &liveRing{m: m, ring: m.ring(i), index: uint32(i)}
		r := &Ring{index: i, refill: l, strings: m.strings}
		for _, e := range m.earlier {
			r.precede(e)
		}
		m.live, m.rings = append(m.live, l), append(m.rings, r)
	}
	return round, nil
}

func (m *Memory) ring(i int) *ringHeader {
	return (*ringHeader)(unsafe.Pointer(&m.data[m.header.RingOffset+uint64(i)*ringSize]))
}

// chunk returns the head of a chunk; its index must have been checked.
func (m *Memory) chunk(i uint32) *chunkHeader {
	return (*chunkHeader)(unsafe.Pointer(&m.data[m.header.ChunkOffset+uint64(i)*ChunkSize]))
}

// liveRing walks a ring's chunks.
type liveRing struct {
	m       *Memory
	ring    *ringHeader
	index   uint32
	current uint32   // index + 1 of the chunk being read, 0 before the first
	number  uint64   // the chunk's place in the ring
	read    uint32   // bytes of it handed out
	behind  []uint32 // indices of chunks read to their end and not given back
	marked  int      // how many of them Mark covered

	next place    // after the records to put off
	left []uint32 // chunks on the way there
}

// more implements refiller.
func (l *liveRing) more() ([]byte, uint64, error) {
	if l.m.putsOff {
		return nil, 0, nil
	}
	if l.current == 0 {
		first := atomic.LoadUint32(&l.ring.First)
		if first == 0 {
			return nil, 0, nil
		}
		if err := l.enter(first, true); err != nil {
			return nil, 0, err
		}
	}
	for {
		c := l.m.chunk(l.current - 1)
		// `next` before `committed`: the latter is final once the former is set.
		next := atomic.LoadUint32(&c.Next)
		committed := atomic.LoadUint32(&c.Committed)
		at := place{l.current, l.number, l.read}
		if b, position, err := l.between(&at, committed); err != nil || len(b) > 0 {
			l.read = at.read
			return b, position, err
		}
		if next == 0 {
			return nil, 0, nil
		}
		was := l.current - 1
		if err := l.enter(next, false); err != nil {
			return nil, 0, err
		}
		l.behind = append(l.behind, was)
		l.m.leave(was)
	}
}

// between are the bytes of a chunk from a place up to what is committed, to which it brings the place.
func (l *liveRing) between(at *place, committed uint32) ([]byte, uint64, error) {
	if committed > chunkPayload || committed < at.read {
		return nil, 0, fmt.Errorf("%w: chunk %d with %d bytes, %d read", ErrCorrupt, at.current-1, committed, at.read)
	}
	start := l.m.header.ChunkOffset + uint64(at.current-1)*ChunkSize + ChunkHead
	b := l.m.data[start+uint64(at.read) : start+uint64(committed) : start+uint64(committed)]
	from := position(at.number, at.read)
	l.m.read += uint64(len(b))
	at.read = committed
	return b, from, nil
}

func (l *liveRing) enter(chunk uint32, first bool) error {
	at := place{l.current, l.number, l.read}
	err := l.enters(&at, chunk, first)
	l.current, l.number, l.read = at.current, at.number, at.read
	return err
}

// enters brings a place to the beginning of a chunk.
func (l *liveRing) enters(at *place, chunk uint32, first bool) error {
	if chunk > l.m.header.ChunkCount {
		return fmt.Errorf("%w: chunk %d of %d", ErrCorrupt, chunk-1, l.m.header.ChunkCount)
	}
	if state := atomic.LoadUint32(&l.m.states[chunk-1]); state != chunkUsed {
		return fmt.Errorf("%w: chunk %d in state %d", ErrCorrupt, chunk-1, state)
	}
	c := l.m.chunk(chunk - 1)
	// The numbers grow, so a broken list cannot lead in a circle.
	if c.Ring != l.index || !first && c.Sequence != at.number+1 {
		return fmt.Errorf("%w: chunk %d is number %d of ring %d, after number %d", ErrCorrupt, chunk-1, c.Sequence,
			c.Ring, at.number)
	}
	*at = place{chunk, c.Sequence, 0}
	return nil
}

// Capacity is how many bytes of records the rings can hold, all together.
func (m *Memory) Capacity() uint64 { return uint64(m.header.ChunkCount) * ChunkSize }

// BytesRead is how many bytes of records have been taken out of the rings so far.
func (m *Memory) BytesRead() uint64 { return m.read }

// Mark remembers which chunks have been read to their end: call it before making what came of them
// durable, and Release afterwards.
func (m *Memory) Mark() {
	for _, l := range m.live {
		l.marked = len(l.behind)
	}
}

// Behind counts the chunks that have been read to their end and not given back.
func (m *Memory) Behind() (n int) {
	for _, l := range m.live {
		n += len(l.behind)
	}
	return n
}

// Release returns the chunks of the last Mark to the plugin.
func (m *Memory) Release() {
	total := 0
	for i, l := range m.live {
		n := l.marked
		if n == 0 {
			continue
		}
		// The last record of a chunk may still lie in pending, but then the chunk is not in behind:
		// it gets there when pending was empty and the ring went on.
		next := l.current
		if n < len(l.behind) {
			next = l.behind[n] + 1
		}
		atomic.StoreUint32(&m.ring(i).First, next)
		for _, c := range l.behind[:n] {
			m.giveBack(c)
		}
		l.behind = append(l.behind[:0], l.behind[n:]...)
		l.marked = 0
		total += n
	}
	m.keep = max(total, m.keep-m.keep/8, leastWarm)
	m.trim(m.keep)
}

// leastWarm is how many free chunks keep their pages in an idle process (4 MiB).
const leastWarm = 64

// leave unmaps the pages of a chunk, so that the collector's memory does not grow with the rings. They stay in the
// file.
func (m *Memory) leave(c uint32) {
	start := m.header.ChunkOffset + uint64(c)*ChunkSize
	_ = unix.Madvise(m.data[start:start+ChunkSize], unix.MADV_DONTNEED) // only advice
}

// free makes a chunk free and notifies writers that lacked one.
func (m *Memory) free(c uint32) {
	atomic.StoreUint32(&m.states[c], chunkFree)
	atomic.AddUint64(&m.header.Freed, 1)
}

// giveBack makes a used chunk free. Its pages stay in the file for the next user.
func (m *Memory) giveBack(c uint32) {
	m.warm = append(m.warm, c)
	m.free(c)
}

// trim returns the memory of all but the keep most recently returned chunks to the system. In /dev/shm it does not:
// others might take the space meanwhile, and a thread of NCCL's that touches a missing page dies of SIGBUS.
func (m *Memory) trim(keep int) {
	if m.header.MemoryKind == MemoryShm {
		return
	}
	drop := len(m.warm) - keep
	if drop <= 0 {
		return
	}
	for _, c := range m.warm[:drop] {
		// Own it while its pages go, so that no writer begins.
		if !atomic.CompareAndSwapUint32(&m.states[c], chunkFree, chunkSpare) {
			continue
		}
		_ = unix.Fallocate(int(m.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE,
			int64(m.header.ChunkOffset)+int64(c)*ChunkSize, ChunkSize) // what cannot be returned is kept
		m.free(c)
	}
	m.warm = append(m.warm[:0], m.warm[drop:]...)
}

// Prepared reports whether a thread of the plugin prepares the job's memory ahead of need, see KeepSpares.
func (m *Memory) Prepared() bool { return atomic.LoadUint32(&m.header.Preparer) != 0 }

// KeepSpares sees to it that n spare slots are filled (n ≤ SpareMax), and no more than that, unless a thread of the
// plugin does: only that can put their pages in place in the job's process. Here they are made to exist. It never takes
// from the reserve. It returns how many slots are filled, and how many of these were empty before.
func (m *Memory) KeepSpares(n int) (filled, added int) {
	if m.Prepared() {
		return 0, 0
	}
	for i := range m.header.Spare {
		c := atomic.LoadUint32(&m.header.Spare[i])
		switch {
		case c == 0:
			continue
		case filled >= n && atomic.CompareAndSwapUint32(&m.header.Spare[i], c, 0):
			m.giveBack(c - 1)
			continue
		}
		filled++
	}
	for i := range m.header.Spare {
		if filled >= n {
			break
		}
		if atomic.LoadUint32(&m.header.Spare[i]) != 0 {
			continue
		}
		c, ok := m.takeFree()
		if !ok {
			break
		}
		if !atomic.CompareAndSwapUint32(&m.header.Spare[i], 0, c+1) {
			m.free(c)
			continue
		}
		filled++
		added++
	}
	return filled, added
}

// takeFree makes one free chunk a spare: one whose pages exist if there is any.
func (m *Memory) takeFree() (chunk uint32, ok bool) {
	limit := m.header.ChunkCount - m.header.ChunkReserve
	for len(m.warm) > 0 {
		c := m.warm[len(m.warm)-1]
		m.warm = m.warm[:len(m.warm)-1]
		if c < limit && atomic.CompareAndSwapUint32(&m.states[c], chunkFree, chunkSpare) {
			return c, true
		}
	}
	for c := range m.states[:limit] {
		if atomic.LoadUint32(&m.states[c]) != chunkFree ||
			!atomic.CompareAndSwapUint32(&m.states[c], chunkFree, chunkSpare) {
			continue
		}
		// Allocate first: writing to a full /dev/shm would kill this process.
		start := m.header.ChunkOffset + uint64(c)*ChunkSize
		if err := unix.Fallocate(int(m.file.Fd()), 0, int64(start), ChunkSize); err != nil {
			m.free(uint32(c))
			return 0, false
		}
		for at := start; at < start+ChunkSize; at += PageSize {
			m.data[at] = 0
		}
		return uint32(c), true
	}
	return 0, false
}

// FreeChunks counts the chunks that starts may take, and all that there are for them.
func (m *Memory) FreeChunks() (free, total int) {
	all := m.states[:m.header.ChunkCount-m.header.ChunkReserve]
	for i := range all {
		if atomic.LoadUint32(&all[i]) != chunkUsed {
			free++
		}
	}
	return free, len(all)
}

// SetMasks tells the plugin what to ask NCCL for, and what to record: event types, and RecordRaw, RecordInWindow,
// RecordFull, RecordNetSums. NCCL is asked once, when its first communicator is made; what is recorded may change at
// any time.
func (m *Memory) SetMasks(event, record uint32) {
	atomic.StoreUint32(&m.header.EventMask, event)
	atomic.StoreUint32(&m.header.RecordMask, record)
}

// SetCuptiKinds sets which CUPTI activities the plugin records: bit k for kind k. 0 means none: CUPTI is not used.
func (m *Memory) SetCuptiKinds(kinds uint64) { atomic.StoreUint64(&m.header.CuptiKinds, kinds) }

// SetState publishes the collector's state and pid, and wakes who waits for it.
func (m *Memory) SetState(state CollectorState) {
	atomic.StoreUint32(&m.header.CollectorPID, uint32(os.Getpid()))
	atomic.StoreUint32((*uint32)(&m.header.CollectorState), uint32(state))
	futexWake((*uint32)(&m.header.CollectorState))
}

// Post leaves one line for NCCL's logger. Line ends become spaces; what does not fit is cut.
func (m *Memory) Post(line string) {
	text := &m.header.Message
	n := 0
	for _, r := range line {
		if r == '\n' || r == '\r' || r == 0 {
			r = ' '
		}
		s := string(r)
		if n+len(s) >= len(text) {
			break
		}
		n += copy(text[n:], s)
	}
	for i := n; i < len(text); i++ {
		text[i] = 0
	}
	atomic.AddUint32(&m.header.MessageNumber, 1)
}

// SetPlace says where the process is recorded; what does not fit is cut. To be called before the state is
// CollectorReady.
func (m *Memory) SetPlace(directory string) {
	n := copy(m.header.Place[:len(m.header.Place)-1], directory)
	m.header.Place[n] = 0
}

// Message returns the last line posted, and its number.
func (m *Memory) Message() (string, uint32) {
	number := atomic.LoadUint32(&m.header.MessageNumber)
	return cString(m.header.Message[:]), number
}

// Requested returns the number of the latest request for "everything on disk" and of the latest answered.
func (m *Memory) Requested() (request, answered uint32) {
	return atomic.LoadUint32(&m.header.Request), atomic.LoadUint32(&m.header.Answered)
}

// Answer says that a request's work is done, and wakes who waits for it.
func (m *Memory) Answer(request uint32) {
	atomic.StoreUint32(&m.header.Answered, request)
	futexWake(&m.header.Answered)
}

// Ended says whether the process's exit handler has run.
func (m *Memory) Ended() bool { return atomic.LoadUint32(&m.header.Ended) != 0 }

// AwaitRequest returns when the request number is no longer seen, or after the timeout.
func (m *Memory) AwaitRequest(seen uint32, timeout time.Duration) {
	futexWait(&m.header.Request, seen, timeout)
}

// LiveComms is how many communicators of the process are alive now.
func (m *Memory) LiveComms() uint32 { return atomic.LoadUint32(&m.header.LiveComms) }

// Nudge ends a sleep in AwaitRequest.
func (m *Memory) Nudge() { futexWake(&m.header.Request) }

// Operations of futex(2). They are not the private ones: the other side is another process.
const (
	futexOpWait = 0
	futexOpWake = 1
)

func futexWake(word *uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWake, 1<<31-1, 0, 0, 0)
}

// futexWait sleeps while *word == value, at most for the timeout; it may return early.
func futexWait(word *uint32, value uint32, timeout time.Duration) {
	ts := unix.NsecToTimespec(int64(timeout))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWait, uintptr(value),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// nativeUint64 reads a number at the start of unshared or published bytes.
func nativeUint64(b []byte) uint64 {
	_ = b[7]
	return *(*uint64)(unsafe.Pointer(unsafe.SliceData(b)))
}
