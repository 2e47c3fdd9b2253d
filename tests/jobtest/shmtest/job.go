// SPDX-License-Identifier: Apache-2.0

// Package shmtest plays the plugin's part of plugin/shm.h in Go: a job process that writes into shared
// memory, or spool files, so that collectors can be tested without C and without NCCL.
package shmtest

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// ConstantHeader is how many bytes of the header do not change while the process runs.
const ConstantHeader = int(unsafe.Offsetof(shm.Header{}.RingUsed))

// Options describe a job. The zero value is a job of this process with 64 chunks on ClockHost.
type Options struct {
	Chunks     int
	Reserve    int // last chunks kept for stops
	Clock      shm.ClockSource
	PID        int    // default: this process
	PIDStart   uint64 // default: this process's
	Tag        uint16
	Host       string
	APIVersion uint32
	Created    shm.ClockTuple // default: now; for ClockHost one second since 1970 on all clocks
	Path       string         // of a new file that the memory is (setting RING=shm); "": it has none
	Boot       string         // default: no machine's
}

// Job is a job process's shared memory. Its methods may be called from several goroutines; a
// Thread's only from one.
type Job struct {
	file    *os.File
	data    []byte
	header  *shm.Header
	mu      sync.Mutex
	ids     map[string]uint32
	threads []*Thread
}

// Sizes and places inside plugin/shm.h's structs, kept apart from package shm's mirror on purpose.
const (
	ringBytes, ringFirst             = 1152, 4
	commBytes                        = 192
	chunkNext, chunkSeq, chunkCommit = 4, 8, 16
)

// New makes a job's memory.
func New(o Options) (*Job, error) {
	if o.Chunks == 0 {
		o.Chunks = 64
	}
	if o.Clock == 0 {
		o.Clock = shm.ClockHost
	}
	if o.PID == 0 {
		o.PID = os.Getpid()
		o.PIDStart, _ = shm.ProcessStart(o.PID)
	}
	if o.Tag == 0 {
		o.Tag = 0x4a0b
	}
	if o.Host == "" {
		o.Host = "testhost"
	}
	if o.APIVersion == 0 {
		o.APIVersion = 6
	}
	if o.Created == (shm.ClockTuple{}) {
		if o.Clock == shm.ClockHost {
			o.Created = shm.ClockTuple{Ticks: 1e9, Raw: 1e9, Mono: 1e9, Real: 1e9}
		} else {
			o.Created = shm.ReadClock(o.Clock)
		}
	}
	if o.Boot == "" {
		o.Boot = "00000000-0000-4000-8000-000000000000"
	}
	fd, err := o.open()
	if err != nil {
		return nil, err
	}
	j := &Job{file: os.NewFile(uintptr(fd), "job"), ids: map[string]uint32{}}
	h := shm.Header{
		Magic: shm.Magic, Version: shm.Version, HeaderSize: shm.HeaderSize,
		ChunkCount: uint32(o.Chunks), ChunkReserve: uint32(o.Reserve),
		PID: uint32(o.PID), PIDStart: o.PIDStart, Tag: uint32(o.Tag),
		ClockSource: o.Clock, APIVersion: o.APIVersion, Created: o.Created,
	}
	copy(h.Hostname[:], o.Host)
	copy(h.BootID[:], o.Boot)
	if o.Path != "" {
		h.MemoryKind = shm.MemoryShm
		copy(h.MemoryPath[:], o.Path)
	}
	copy(h.Executable[:], "/usr/bin/job")
	at := uint64(shm.HeaderSize)
	place := func(offset *uint64, size int) {
		*offset = at
		at += (uint64(size) + shm.PageSize - 1) &^ (shm.PageSize - 1)
	}
	place(&h.ChunkStateOffset, 4*o.Chunks)
	place(&h.RingOffset, ringBytes*shm.RingMax)
	place(&h.CommOffset, commBytes*shm.CommMax)
	place(&h.StringOffset, shm.StringSize)
	place(&h.ChunkOffset, shm.ChunkSize*o.Chunks)
	h.TotalSize = at
	if err := unix.Ftruncate(fd, int64(at)); err != nil {
		j.file.Close()
		return nil, err
	}
	j.data, err = unix.Mmap(fd, 0, int(at), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		j.file.Close()
		return nil, err
	}
	j.header = (*shm.Header)(unsafe.Pointer(&j.data[0]))
	*j.header = h
	return j, nil
}

func (o *Options) open() (int, error) {
	if o.Path == "" {
		return unix.MemfdCreate("nccl-otf2-test", unix.MFD_CLOEXEC)
	}
	return unix.Open(o.Path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
}

// Close unmaps the memory.
func (j *Job) Close() error {
	_ = unix.Munmap(j.data)
	return j.file.Close()
}

// FD returns a new descriptor of the memory.
func (j *Job) FD() int {
	fd, err := unix.FcntlInt(j.file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		panic(err)
	}
	return fd
}

// Header is the live header. Read what the collector writes with the methods below.
func (j *Job) Header() *shm.Header { return j.header }

// Corrupt lets a test overwrite bytes of the memory.
func (j *Job) Corrupt(at uint64, b ...byte) { copy(j.data[at:], b) }

func (j *Job) u32(at uint64) *uint32 { return (*uint32)(unsafe.Pointer(&j.data[at])) }
func (j *Job) u64(at uint64) *uint64 { return (*uint64)(unsafe.Pointer(&j.data[at])) }

// Bytes is all of the memory, as it is.
func (j *Job) Bytes() []byte { return slices.Clone(j.data) }

// String returns the id of a string.
func (j *Job) String(s string) uint32 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.intern(s)
}

func (j *Job) intern(s string) uint32 {
	if s == "" {
		return 0
	}
	if id, ok := j.ids[s]; ok {
		return id
	}
	used := atomic.LoadUint64(&j.header.StringUsed)
	at := j.header.StringOffset + used
	copy(j.data[at+4:], s)
	atomic.StoreUint32(j.u32(at), uint32(len(s))+1)
	atomic.StoreUint64(&j.header.StringUsed, (used+4+uint64(len(s))+1+7)&^7)
	id := uint32(used/8) + 1
	j.ids[s] = id
	return id
}

// Comm adds a communicator entry and returns its index.
func (j *Job) Comm(c shm.Comm, uuid *[16]byte) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := atomic.LoadUint32(&j.header.CommUsed)
	e := j.data[j.header.CommOffset+uint64(i)*commBytes:]
	put32, put64 := binary.NativeEndian.PutUint32, binary.NativeEndian.PutUint64
	put32(e[4:], uint32(c.APIVersion))
	put64(e[8:], c.ID)
	put32(e[16:], uint32(c.NRanks))
	put32(e[20:], uint32(c.Rank))
	put32(e[24:], uint32(c.NNodes))
	put32(e[28:], uint32(c.Device))
	put64(e[32:], c.InitTicks)
	put32(e[48:], uint32(c.InitTID))
	put32(e[52:], j.intern(c.Name))
	if uuid != nil {
		copy(e[56:], uuid[:])
		put32(e[88:], 1)
	}
	copy(e[72:88], c.PCI)
	atomic.StoreUint32(j.u32(j.header.CommOffset+uint64(i)*commBytes), 1)
	atomic.StoreUint32(&j.header.CommUsed, i+1)
	atomic.AddUint32(&j.header.LiveComms, 1)
	return int(i)
}

// FinishComm sets the time of a communicator's finalize.
func (j *Job) FinishComm(i int, ticks uint64) {
	atomic.StoreUint64(j.u64(j.header.CommOffset+uint64(i)*commBytes+40), ticks)
	atomic.AddUint32(&j.header.LiveComms, ^uint32(0))
}

// Thread is a thread with its ring.
type Thread struct {
	j         *Job
	ring      uint32
	chunk     uint32 // index + 1
	used      uint32
	seq       uint64
	written   uint64
	allPieces []piece // what a spool writer has not written yet
	keepBytes bool
}

// piece are records of one chunk, and where they lie in the ring.
type piece struct {
	position uint64
	bytes    []byte
}

// Thread begins a ring with its THREAD record.
func (j *Job) Thread(ticks uint64, tid int, name string) *Thread {
	j.mu.Lock()
	t := &Thread{j: j, ring: atomic.LoadUint32(&j.header.RingUsed)}
	atomic.StoreUint32(j.u32(j.ringAt(t.ring)), 1)
	atomic.StoreUint32(&j.header.RingUsed, t.ring+1)
	j.threads = append(j.threads, t)
	j.mu.Unlock()
	t.Own(ticks, tid, name)
	return t
}

// Own makes the ring another thread's.
func (t *Thread) Own(ticks uint64, tid int, name string) {
	t.Write(&shm.Record{Ticks: ticks, Kind: shm.RecordThread, Aux: uint32(tid), TID: int32(tid), ThreadName: name})
}

func (j *Job) ringAt(i uint32) uint64  { return j.header.RingOffset + uint64(i)*ringBytes }
func (j *Job) chunkAt(i uint32) uint64 { return j.header.ChunkOffset + uint64(i)*shm.ChunkSize }

// Write publishes a record. It returns false, and counts a loss, if no memory is left.
func (t *Thread) Write(r *shm.Record) bool {
	var buf [256]byte
	return t.WriteBytes(shm.AppendRecord(buf[:0], r, t.j.String), r.Type)
}

// WriteBytes publishes the bytes of a record.
func (t *Thread) WriteBytes(b []byte, typ shm.EventType) bool {
	j := t.j
	if t.chunk == 0 || int(t.used)+len(b) > shm.ChunkSize-shm.ChunkHead {
		c, ok := j.take()
		if !ok {
			atomic.AddUint64(&j.header.Lost[shm.LossMemory][typ], 1)
			return false
		}
		at := j.chunkAt(c)
		if t.chunk != 0 {
			t.seq++
		}
		atomic.StoreUint32(j.u32(at), t.ring)
		atomic.StoreUint32(j.u32(at+chunkNext), 0)
		*j.u64(at + chunkSeq) = t.seq
		atomic.StoreUint32(j.u32(at+chunkCommit), 0)
		if t.chunk == 0 {
			atomic.StoreUint32(j.u32(j.ringAt(t.ring)+ringFirst), c+1)
		} else {
			atomic.StoreUint32(j.u32(j.chunkAt(t.chunk-1)+chunkNext), c+1)
		}
		t.chunk, t.used = c+1, 0
	}
	at := j.chunkAt(t.chunk - 1)
	copy(j.data[at+shm.ChunkHead+uint64(t.used):], b)
	t.used += uint32(len(b))
	atomic.StoreUint32(j.u32(at+chunkCommit), t.used)
	t.written += uint64(len(b))
	if t.keepBytes {
		begin := t.seq<<32 | uint64(t.used) - uint64(len(b))
		if n := len(t.allPieces); n > 0 && t.allPieces[n-1].position+uint64(len(t.allPieces[n-1].bytes)) == begin {
			t.allPieces[n-1].bytes = append(t.allPieces[n-1].bytes, b...)
		} else {
			t.allPieces = append(t.allPieces, piece{begin, slices.Clone(b)})
		}
	}
	return true
}

// KeepForSpool makes the thread remember its records for Job.Spool, from those of its present chunk on.
func (t *Thread) KeepForSpool() {
	begin := t.j.chunkAt(t.chunk-1) + shm.ChunkHead
	t.keepBytes, t.allPieces = true, []piece{{t.seq << 32, slices.Clone(t.j.data[begin : begin+uint64(t.used)])}}
}

func (j *Job) take() (uint32, bool) {
	for i := range j.header.Spare {
		if c := atomic.LoadUint32(&j.header.Spare[i]); c != 0 && c&(1<<31) == 0 &&
			atomic.CompareAndSwapUint32(&j.header.Spare[i], c, 0) {
			atomic.StoreUint32(j.u32(j.header.ChunkStateOffset+4*uint64(c-1)), 2)
			return c - 1, true
		}
	}
	for c := uint32(0); c < j.header.ChunkCount-j.header.ChunkReserve; c++ {
		if atomic.CompareAndSwapUint32(j.u32(j.header.ChunkStateOffset+4*uint64(c)), 0, 2) {
			atomic.AddUint32(&j.header.FaultedChunks, 1)
			return c, true
		}
	}
	return 0, false
}

// Tick raises the greatest tick handed out (ClockHost).
func (j *Job) Tick(ticks uint64) { atomic.StoreUint64(&j.header.HostTicks, ticks) }

// Request asks for everything on disk and returns the request's number.
func (j *Job) Request() uint32 {
	n := atomic.AddUint32(&j.header.Request, 1)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&j.header.Request)), 1, 1<<31-1, 0, 0, 0)
	return n
}

// Await polls until ok returns true; false after ten minutes.
func Await(ok func() bool) bool {
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

// Answered says whether request n was answered.
func (j *Job) Answered(n uint32) bool { return atomic.LoadUint32(&j.header.Answered) >= n }

// State is the collector's state.
func (j *Job) State() shm.CollectorState {
	return shm.CollectorState(atomic.LoadUint32((*uint32)(&j.header.CollectorState)))
}

// End marks the process as ended in order.
func (j *Job) End() { atomic.StoreUint32(&j.header.Ended, 1) }

// Masks returns the collector's event and record masks.
func (j *Job) Masks() (event, record uint32) {
	return atomic.LoadUint32(&j.header.EventMask), atomic.LoadUint32(&j.header.RecordMask)
}

// Free counts free and spare chunks.
func (j *Job) Free() (free, spare int) {
	for c := range uint64(j.header.ChunkCount) {
		switch atomic.LoadUint32(j.u32(j.header.ChunkStateOffset + 4*c)) {
		case 0:
			free++
		case 1:
			spare++
		}
	}
	return free, spare
}

// Spool writes what was not spooled yet as frames: header, communicators, strings, the clock, and the
// records of threads with KeepForSpool.
func (j *Job) Spool(w io.Writer, clock shm.ClockTuple) error {
	return j.spool(w, clock, func(t *Thread) []piece {
		all := t.allPieces
		t.allPieces = nil
		return all
	})
}

// SpoolRest writes all that no collector has given back, as the plugin's thread does when there is none any more.
func (j *Job) SpoolRest(w io.Writer, clock shm.ClockTuple) error {
	return j.spool(w, clock, func(t *Thread) (all []piece) {
		for c := atomic.LoadUint32(j.u32(j.ringAt(t.ring) + ringFirst)); c != 0; {
			at := j.chunkAt(c - 1)
			begin := at + shm.ChunkHead
			all = append(all, piece{*j.u64(at + chunkSeq) << 32,
				j.data[begin : begin+uint64(*j.u32(at + chunkCommit))]})
			c = *j.u32(at + chunkNext)
		}
		return all
	})
}

func (j *Job) spool(w io.Writer, clock shm.ClockTuple, of func(t *Thread) []piece) error {
	frame := func(kind uint32, index, position uint64, body []byte) error {
		b := binary.NativeEndian.AppendUint32(nil, shm.FrameMagic)
		b = binary.NativeEndian.AppendUint32(b, kind)
		b = binary.NativeEndian.AppendUint64(b, index)
		b = binary.NativeEndian.AppendUint64(b, position)
		b = binary.NativeEndian.AppendUint64(b, uint64(len(body)))
		b = append(b, body...)
		for len(b)%8 != 0 {
			b = append(b, 0)
		}
		_, err := w.Write(b)
		return err
	}
	var clockBytes [32]byte
	for i, v := range []uint64{clock.Ticks, clock.Raw, clock.Mono, clock.Real} {
		binary.NativeEndian.PutUint64(clockBytes[8*i:], v)
	}
	if err := frame(1, 0, 0, j.data[:shm.HeaderSize]); err != nil {
		return err
	}
	if err := frame(5, 0, 0, clockBytes[:]); err != nil {
		return err
	}
	for i := range uint64(atomic.LoadUint32(&j.header.CommUsed)) {
		at := j.header.CommOffset + i*commBytes
		if err := frame(2, i, 0, j.data[at:at+commBytes]); err != nil {
			return err
		}
	}
	used := atomic.LoadUint64(&j.header.StringUsed)
	if err := frame(3, 0, 0, j.data[j.header.StringOffset:j.header.StringOffset+used]); err != nil {
		return err
	}
	for _, t := range j.threads {
		for _, p := range of(t) {
			if err := frame(4, uint64(t.ring), p.position, p.bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// SpoolEnd writes the frame of an orderly end.
func SpoolEnd(w io.Writer) error {
	var b [32]byte
	binary.NativeEndian.PutUint32(b[:], shm.FrameMagic)
	binary.NativeEndian.PutUint32(b[4:], 6)
	_, err := w.Write(b[:])
	return err
}

// Handle makes an event handle of this job.
func (j *Job) Handle(t shm.EventType, number uint64) uint64 {
	return uint64(j.header.Tag)<<shm.TagShift | uint64(t)<<shm.TypeShift | number&shm.NumberMask
}

// PathName is a spool file's name for this job.
func (j *Job) PathName() string {
	return fmt.Sprintf("testhost-%d-%04x.spool", j.header.PID, j.header.Tag)
}

// CollectorPID is the process that calls itself the collector.
func (j *Job) CollectorPID() int { return int(atomic.LoadUint32(&j.header.CollectorPID)) }
