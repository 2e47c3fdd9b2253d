// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrCorrupt is wrapped by errors about memory or files that do not have the layout of shm.h.
var ErrCorrupt = errors.New("corrupt")

// Round is the result of one Refresh.
type Round struct {
	// Clock is an instant before the ring heads were read: every record whose ticks are less is known
	// now, but for one whose writer was held up between reading the clock and publishing it.
	Clock ClockTuple
	Ended bool // nothing more will come: the process ended, or the file did
}

// Source is what one job process recorded: live memory or a spool file. It is not safe for
// concurrent use.
type Source interface {
	// Header returns a copy as of now (live) or of the last header frame (spool).
	Header() Header
	// Lost is a counter of the header's Lost: of what is asked for often, as a header is two pages to copy.
	Lost(reason LossReason, t EventType) uint64
	// Refresh makes what has been added since known to the other methods.
	Refresh() (Round, error)
	// Rings returns the rings in use, by index; it grows with Refresh.
	Rings() []*Ring
	// Comms is the number of communicator entries; some may not be ready.
	Comms() int
	// Comm returns entry i; false if it does not exist or is not ready.
	Comm(i int) (Comm, bool)
	// Strings counts the look-ups that failed.
	Strings() *Strings
	// Precede makes the rings return the records in e first, and of the source's own records only later ones.
	Precede(e *Earlier)
}

// Comm is a communicator rank, as one profiler init of the process reported it.
type Comm struct {
	APIVersion int
	ID         uint64 // commId
	NRanks     int
	Rank       int
	NNodes     int
	Device     int    // CUDA ordinal, −1 if unknown
	InitTicks  uint64 // when init was called
	FinalTicks uint64 // 0 while alive
	InitTID    int
	Name       string // "" if NCCL gave none
	UUID       string // of the GPU, as nvidia-smi prints it; "" if unknown
	PCI        string // of the GPU; "" if unknown

	Collectives uint64 // called so far
	Messages    uint64 // called so far
	Replayed    uint64 // operations of replayed graphs so far
	Window      Window // the one in force, see Window
}

func (e *commEntry) comm(s *Strings) Comm {
	c := Comm{
		APIVersion: int(e.APIVersion),
		ID:         e.CommID,
		NRanks:     int(e.Nranks),
		Rank:       int(e.Rank),
		NNodes:     int(e.Nnodes),
		Device:     int(e.Device),
		InitTicks:  e.InitTicks,
		FinalTicks: e.FinalTicks,
		InitTID:    int(e.InitTID),
		Name:       s.Lookup(e.Name),
		PCI:        cString(e.PCI[:]),

		Collectives: e.Collectives, Messages: e.Messages, Replayed: e.Replayed, Window: Window{e.First, e.Last},
	}
	if e.HasUUID != 0 {
		u := hex.EncodeToString(e.UUID[:])
		c.UUID = fmt.Sprintf("GPU-%s-%s-%s-%s-%s", u[:8], u[8:12], u[12:16], u[16:20], u[20:])
	}
	return c
}

// Host is the name of the process's host; Boot and Exe are the header's other texts.
func (h *Header) Host() string { return cString(h.Hostname[:]) }

// CuptiReason states why CUPTI is not on though it was requested, or failed; else "".
func (h *Header) CuptiReason() string { return cString(h.CuptiWhy[:]) }

// ScorepReason states why calls cannot be forwarded to Score-P; else "".
func (h *Header) ScorepReason() string { return cString(h.ScorepWhy[:]) }

// ScorepCalls counts calls by what became of them: FORWARDED, or why they were not.
func (h *Header) ScorepCalls() map[string]uint64 {
	calls := map[string]uint64{}
	if h.ScorepForwarded > 0 {
		calls[ScorepForwarded] = h.ScorepForwarded
	}
	for i, n := range h.ScorepKept {
		if n > 0 {
			calls[scorepKeptNames[i]] = n
		}
	}
	return calls
}

// Boot is /proc/sys/kernel/random/boot_id of the process's machine.
func (h *Header) Boot() string { return cString(h.BootID[:]) }

// Exe is the path of the process's program.
func (h *Header) Exe() string { return cString(h.Executable[:]) }

// CallerPath returns the file of the library that called the plugin, "" if unknown.
func (h *Header) CallerPath() string { return cString(h.LibraryPath[:]) }

// Directory is where the process is recorded: the experiment directory, or a raw file below it if the plugin writes
// that itself; "" before that is settled.
func (h *Header) Directory() string { return cString(h.Place[:]) }

// File is the path of the memory if it is a file (MemoryShm), else "".
func (h *Header) File() string { return cString(h.MemoryPath[:]) }

// check refuses headers that another version wrote or that contradict themselves.
func (h *Header) check() error {
	if h.Magic != Magic {
		return fmt.Errorf("%w: magic %#x, want %#x", ErrCorrupt, h.Magic, uint64(Magic))
	}
	if h.Version != Version || h.HeaderSize != HeaderSize {
		return fmt.Errorf(
			"%w: layout version %d with a header of %d bytes; this program reads version %d with %d bytes",
			ErrCorrupt, h.Version, h.HeaderSize, Version, HeaderSize)
	}
	return nil
}

// Ring reads the records of one ring, oldest first.
type Ring struct {
	index   int
	pending []byte // published, in one piece, not read yet
	at      uint64 // position of what is pending, or follows
	refill  refiller
	strings *Strings
	broken  error

	stored  []extent // in files, to be given before what refill gives
	end     uint64   // position behind the last of what was; what refill gives before that is known
	live    bool     // what is pending is refill's
	buffer  []byte   // what is pending, else
	stalled error
}

// refiller gives the next published bytes of a ring after those before have been read, and their position; none if
// there are none now.
type refiller interface {
	more() ([]byte, uint64, error)
}

// position returns the position of a record in its ring: the number of its chunk there, and the bytes of records before
// it in the chunk. Positions grow along a ring, independently of the ticks of its records.
func position(chunk uint64, bytes uint32) uint64 { return chunk<<32 | uint64(bytes) }

// Index is the ring's number.
func (r *Ring) Index() int { return r.index }

// Position is where the next record lies that Peek has seen, or behind the last one that Next gave. It is the same for
// all who read the ring.
func (r *Ring) Position() uint64 { return r.at }

// Err is the reason why the ring could not be read on, if any. What was read before is good.
func (r *Ring) Err() error { return r.broken }

// Peek returns the ticks of the next record; false if none is published.
func (r *Ring) Peek() (ticks uint64, ok bool) {
	if len(r.pending) == 0 && !r.load() {
		return 0, false
	}
	return nativeUint64(r.pending), true
}

func (r *Ring) load() bool {
	if r.broken != nil {
		return false
	}
	if len(r.stored) > 0 {
		return r.loadStored()
	}
	for {
		b, at, err := r.refill.more()
		if err == nil && len(b)%Unit != 0 {
			err = fmt.Errorf("%w: %d bytes of records", ErrCorrupt, len(b))
		}
		if err != nil {
			r.fail(err)
			return false
		}
		if len(b) == 0 {
			return false
		}
		if at < r.end { // a file had the beginning
			known := min(r.end-at, uint64(len(b)))
			b, at = b[known:], at+known
		}
		if len(b) > 0 {
			r.pending, r.at, r.live = b, at, true
			return true
		}
	}
}

// fail ends a ring behind what is pending.
func (r *Ring) fail(err error) {
	if r.broken == nil {
		r.broken = fmt.Errorf("ring %d: %w", r.index, err)
	}
}

// Next decodes the next record into rec; false if none is published. Bytes that are no record end
// the ring: see Err.
func (r *Ring) Next(rec *Record) bool {
	if len(r.pending) == 0 && !r.load() {
		return false
	}
	n, err := Decode(r.pending, r.strings, rec)
	if err != nil {
		r.broken = fmt.Errorf("ring %d: %w", r.index, err)
		r.pending = nil
		return false
	}
	r.pending, r.at = r.pending[n:], r.at+uint64(n)
	return true
}
