// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// Constants of plugin/shm.h.
const (
	Magic   = 0x3266744f6c63636e // "ncclOtf2" read as little-endian
	Version = api.Layout

	PageSize      = 4096
	HeaderSize    = 2 * PageSize // of struct ncclotf2_header
	ChunkSize     = 65536        // ring memory is handed out in these units
	ChunkHead     = 64           // bytes of a chunk before its records
	RingMax       = 4096         // threads that can record at one time
	CommMax       = 65536        // communicator ranks over the life of the process
	StringSize    = 4 << 20
	StringMax     = 127  // longer strings were cut by the plugin,
	KernelNameMax = 1000 // … names of kernels here

	ActivityMost = 512 // bytes of a CUPTI record; longer ones were cut
	SpareMax     = 128 // most free chunks that the collector keeps at hand
	Unit         = 32  // records are multiples of this
	None         = 1<<32 - 1

	FrameMagic = 0x4c4f5053 // "SPOL"

	// Handles: 16 bits of process tag, 4 bits of type, 44 bits of number with two marks in it.
	TagShift    = 48
	TypeShift   = 43
	TypeMask    = 31
	ContextBit  = 1 << 42
	CapturedBit = 1 << 41 // calls that a CUDA graph captured
	SilentBit   = 1 << 40 // events that are not recorded, and whose children may be
	NumberMask  = SilentBit - 1

	CostPeriod = 256 // events between two measurements of the callbacks' cost

	internSlots = 64
)

// ClockSource says what a process's ticks are.
type ClockSource uint32

// Clock sources of plugin/shm.h.
const (
	ClockMonotonic ClockSource = 1 // CLOCK_MONOTONIC, ns
	ClockTSC       ClockSource = 2 // x86-64 time-stamp counter
	ClockCNTVCT    ClockSource = 3 // arm64 virtual counter
	ClockHost      ClockSource = 4 // ns that a test program hands out
)

// String gives the name that provenance.Clock.Source uses.
func (s ClockSource) String() string {
	switch s {
	case ClockMonotonic:
		return "monotonic"
	case ClockTSC:
		return "tsc"
	case ClockCNTVCT:
		return "cntvct"
	case ClockHost:
		return "host"
	}
	return "unknown"
}

// ClockTuple is one instant on four clocks.
type ClockTuple struct {
	Ticks uint64 // of the process's clock source
	Raw   uint64 // CLOCK_MONOTONIC_RAW, ns
	Mono  uint64 // CLOCK_MONOTONIC, ns
	Real  uint64 // CLOCK_REALTIME, ns since 1970
}

// LossReason says why the plugin did not record something.
type LossReason int

// Loss reasons of plugin/shm.h.
const (
	LossMemory     LossReason = iota // start refused: memory at its cap
	LossStopMemory                   // stop or state dropped: even the reserve was used up
	LossRing                         // start refused: no ring left for this thread
	LossComm                         // events of a communicator beyond CommMax
	LossFork                         // callback in a forked child
	LossDisk                         // start refused: the collector has written all it may, or cannot write
	lossReasons
)

// String gives the key that description.Counts.Lost uses.
func (r LossReason) String() string {
	return [lossReasons]string{"memory", "stop-memory", "ring", "comm", "fork", "disk"}[r]
}

// LossReasons is the number of loss reasons; they are 0 … LossReasons-1.
const LossReasons = int(lossReasons)

// Bits of Header.RecordMask beyond those of the event types.
const (
	RecordRaw      = 1 << 28        // record mode: also what *eHandle held, and calls with handles of none
	RecordInWindow = 1 << 29        // operations are chosen by their ordinals, see Window
	RecordFull     = 1 << 30        // nothing new is recorded: LossDisk
	RecordNetSums  = api.NetSumsBit // the collector sums the network's steps up
)

// Library is the library that called the plugin.
type Library uint32

// Libraries of plugin/shm.h.
const (
	LibraryUnknown Library = 0
	LibraryNCCL    Library = 1
	LibraryRCCL    Library = 2
)

// String gives the library's usual name, "" if it is unknown.
func (l Library) String() string {
	switch l {
	case LibraryNCCL:
		return "NCCL"
	case LibraryRCCL:
		return "RCCL"
	}
	return ""
}

// MemoryKind says where a process's memory lies.
type MemoryKind uint32

// Memory kinds of plugin/shm.h.
const (
	MemoryMemfd MemoryKind = 0 // gone with the last process that has it open
	MemoryShm   MemoryKind = 1 // a file in /dev/shm, Header.MemoryPath: outlives job and collector
)

// Callback is one of the plugin's functions whose cost is measured.
type Callback int

// Callbacks of plugin/shm.h.
const (
	CallbackStart Callback = iota
	CallbackStop
	CallbackState
	callbacks
)

// Callbacks is the number of callbacks; they are 0 … Callbacks-1.
const Callbacks = int(callbacks)

// String is the callback's name.
func (c Callback) String() string { return [callbacks]string{"start", "stop", "state"}[c] }

// Cost is what a callback took in the process's threads: every CostPeriod-th event is measured.
type Cost struct {
	Samples uint64
	Ticks   uint64 // sum over the samples
	Most    uint64 // ticks of the longest
}

// Window says which operations of a communicator rank are recorded: those with First ≤ ordinal < Last.
// Ordinals count from 0 on each communicator, the same on all its members: collectives as the application
// calls them, apart from them those that replayed graphs bring. Messages go with the next collective; on
// communicators without any they count themselves. It holds while RecordInWindow is set.
type Window struct{ First, Last uint64 }

// CollectorState is what the plugin waits for at its start.
type CollectorState uint32

// Collector states of plugin/shm.h.
const (
	CollectorNone    CollectorState = 0
	CollectorReady   CollectorState = 1 // settings are in place, events may come
	CollectorRefused CollectorState = 2 // the collector cannot work, the message says why
	CollectorSpool   CollectorState = 3 // the plugin's own thread writes spool files
)

// CuptiState is what became of CUPTI in the process.
type CuptiState uint32

// States of CUPTI of plugin/shm.h.
const (
	CuptiOff       CuptiState = 0 // not asked for
	CuptiOn        CuptiState = 1
	CuptiNoLibrary CuptiState = 2 // no libcupti was found, or it lacks functions
	CuptiBusy      CuptiState = 3 // another client has it
	CuptiFailed    CuptiState = 4 // Header.CuptiError says why
	CuptiEnded     CuptiState = 5 // was on; everything it had is in the rings
)

var cuptiStateNames = [...]string{"off", "on", "no library", "busy", "failed", "ended"}

// String is the state in a word or two.
func (s CuptiState) String() string {
	if int(s) < len(cuptiStateNames) {
		return cuptiStateNames[s]
	}
	return fmt.Sprintf("CuptiState(%d)", uint32(s))
}

// WithheldWhy is the reason why Header.Withheld was not requested.
type WithheldWhy uint32

// Reasons of plugin/shm.h.
const (
	WithheldNothing    WithheldWhy = 0
	WithheldBroadcasts WithheldWhy = 1 // NCCL counts them wrongly
	WithheldLate       WithheldWhy = 2 // the collector was not ready in time
	WithheldRoom       WithheldWhy = 3 // NCCL's proxies lack room, since some communicator
)

// ScorepState reports whether NCCL's calls are forwarded to a Score-P measurement in the process.
type ScorepState uint32

// States of Score-P of plugin/shm.h.
const (
	ScorepOff      ScorepState = 0 // not asked for, or there is no sign of Score-P
	ScorepOn       ScorepState = 1
	ScorepAbsent   ScorepState = 2 // asked for, and there is none
	ScorepUnusable ScorepState = 3 // present, but calls cannot be forwarded
	ScorepNoCalls  ScorepState = 4 // NCCL does not report calls
)

var scorepStateNames = [...]string{"off", "on", "absent", "unusable", "no calls"}

// String is the state in a word or two.
func (s ScorepState) String() string {
	if int(s) < len(scorepStateNames) {
		return scorepStateNames[s]
	}
	return fmt.Sprintf("ScorepState(%d)", uint32(s))
}

// ScorepModel is how Score-P sees the threads of the process.
type ScorepModel uint32

// Models of plugin/shm.h.
const (
	ScorepUnknown    ScorepModel = 0
	ScorepSingle     ScorepModel = 1 // there is one
	ScorepForkJoin   ScorepModel = 2 // OpenMP's
	ScorepCreateWait ScorepModel = 3 // pthreads
)

// As Score-P names them.
var scorepModelNames = [...]string{"unknown", "none", "omp", "pthread"}

// String is the model as Score-P names it.
func (m ScorepModel) String() string {
	if int(m) < len(scorepModelNames) {
		return scorepModelNames[m]
	}
	return fmt.Sprintf("ScorepModel(%d)", uint32(m))
}

// Why a call that is recorded was not forwarded.
const (
	ScorepKeptThread    = 0 // not the main thread, and the model allows no other
	ScorepKeptOutside   = 1 // before or behind the measurement
	ScorepKeptPaused    = 2 // its recording was off
	ScorepKeptUndefined = 3 // its region was not there (yet)
	ScorepKeptMemory    = 4 // one thread more than it has memory for
	ScorepKeptReasons   = 5
)

// ScorepForwarded is what shards call the number of calls that were forwarded, ScorepOtherThreads that of
// ScorepKeptThread.
const (
	ScorepForwarded    = "FORWARDED"
	ScorepOtherThreads = "OTHER_THREADS"
)

// scorepKeptNames are the reasons as shards name them.
var scorepKeptNames = [ScorepKeptReasons]string{ScorepOtherThreads, "OUTSIDE", "PAUSED", "UNDEFINED", "MEMORY"}

// Header is struct ncclotf2_header. In live memory the fields after Created's page half change while
// they are looked at: read them through the methods of Memory, or from the copy that Source.Header
// returns.
type Header struct {
	Magic            uint64
	Version          uint32
	HeaderSize       uint32
	TotalSize        uint64
	ChunkStateOffset uint64
	RingOffset       uint64
	CommOffset       uint64
	StringOffset     uint64
	ChunkOffset      uint64
	ChunkCount       uint32
	ChunkReserve     uint32
	PID              uint32 // as the process itself sees it
	Tag              uint32
	PIDStart         uint64 // field 22 of /proc/<pid>/stat
	ClockSource      ClockSource
	APIVersion       uint32
	ClockHz          uint64 // ticks per second if known exactly, else 0
	Created          ClockTuple
	Hostname         [256]byte
	BootID           [64]byte
	Executable       [512]byte
	Library          Library
	LibraryVersion   int32 // as ncclGetVersion has it (22907 is 2.29.7); 0 if unknown
	LibraryPath      [256]byte
	MemoryKind       MemoryKind
	UID              uint32 // effective user of the process
	MemoryPath       [128]byte
	_                [680]byte

	// written by the plugin
	RingUsed      uint32
	CommUsed      uint32
	StringUsed    uint64
	NextNumber    uint64
	HostTicks     uint64
	Request       uint32
	Ended         uint32
	LiveComms     uint32
	FaultedChunks uint32
	Foreign       uint64
	NullHandles   uint64
	LostMarks     uint64
	Filtered      [TypeCount]uint64
	Paused        [TypeCount]uint64
	Lost          [LossReasons][TypeCount]uint64
	Cost          [Callbacks][TypeCount]Cost
	CuptiState    CuptiState
	CuptiVersion  uint32 // as cuptiGetVersion gives it; 0 before
	CuptiError    int32  // the CUptiResult that ended it; 0 if none did
	WithheldWhy   WithheldWhy
	CuptiLost     uint64 // activity records for want of memory
	CuptiDropped  uint64 // activity records that CUPTI dropped itself
	CuptiUnknown  uint64 // places in buffers where CUPTI could not find the next record

	CuptiBuffersOut         uint64 // with records, that CUPTI had not given back when it was switched off
	CuptiBuffersStrange     uint64 // that it gave back and had not been given
	CuptiBuffersOverwritten uint64 // for which there was no memory: their records are gone

	CuptiWhy [512]byte // one line, if it was asked for and is not on, or failed; else empty

	ScorepState     ScorepState
	ScorepModel     ScorepModel
	ScorepForwarded uint64                    // calls that became regions of Score-P's
	ScorepKept      [ScorepKeptReasons]uint64 // calls that did not, by why
	ScorepWhy       [512]byte                 // one line, if calls cannot be forwarded; else empty
	ScorepMeasured  uint32                    // 1: our substrate plugin is loaded in the Score-P measurement
	ScorepRank      int32                     // then: Score-P's number of the process, −1 if it is not known
	ScorepPoints    uint32                    // 1: forwarded calls are regions without duration
	Withheld        uint32                    // types that NCCL is not asked for because it could hang or crash
	// 1: a thread of the plugin fills the spare slots, or is about to; 0: the collector does
	Preparer   uint32
	Unanswered uint32 // requests whose answer was not waited for any longer
	Waited     uint64 // ns that threads of the program have waited for answers

	_ [2848 - TypeCount*(8*(2+int(LossReasons))+24*int(Callbacks))]byte

	// written by the collector
	CollectorState CollectorState
	CollectorPID   uint32
	Answered       uint32
	EventMask      uint32
	RecordMask     uint32
	MessageNumber  uint32
	WindowFirst    uint64 // what the entries of new communicators begin with
	WindowLast     uint64
	Freed          uint64 // raised after any chunk has become free
	CuptiKinds     uint64 // bit k: CUPTI activity kind k is wanted; 0: CUPTI is left alone. Set before CollectorReady
	_              uint32
	Spare          [SpareMax]uint32
	Message        [512]byte
	Place          [512]byte // the experiment directory; before CollectorReady, then constant
	_              [452]byte
}

// States of a chunk.
const (
	chunkFree  = 0
	chunkSpare = 1
	chunkUsed  = 2
)

// chunkHeader is struct ncclotf2_chunk.
type chunkHeader struct {
	Ring      uint32
	Next      uint32 // index + 1, or 0
	Sequence  uint64
	Committed uint32 // bytes of records after this head
	_         [11]uint32
}

// ringHeader is struct ncclotf2_ring.
type ringHeader struct {
	State      uint32
	First      uint32 // index + 1 of the oldest chunk not yet freed
	TID        uint32
	Generation uint32
	_          [48]byte

	Cursor      uint64
	Limit       uint64
	Number      uint64
	NumberEnd   uint64
	Chunk       uint32
	InternEpoch uint32
	Sequence    uint64
	_           [16]byte
	Intern      [internSlots]struct {
		Address uint64
		String  uint32
		_       uint32
	}
}

// commEntry is struct ncclotf2_comm.
type commEntry struct {
	Ready      uint32
	APIVersion uint32
	CommID     uint64
	Nranks     int32
	Rank       int32
	Nnodes     int32
	Device     int32
	InitTicks  uint64
	FinalTicks uint64
	InitTID    uint32
	Name       uint32
	UUID       [16]byte
	PCI        [16]byte
	HasUUID    uint32
	_          uint32

	// calls refused since RecordFull was set: the first one's ordinal and the last one's, each plus 1; 0: none
	RefusedFirst uint64
	RefusedLast  uint64
	_            [4]uint32

	Collectives uint64 // called so far
	Messages    uint64 // called so far
	Replayed    uint64 // collectives of replayed graphs so far
	First       uint64
	Last        uint64
	Recording   uint32 // bit 0: the last call was inside the window; bit 1: so was the last replayed operation
	Fresh       uint32 // bit 0: calls inside since the last plan outside; bit 1: a graph has captured calls

	ReplayedMessages uint64
	_                [8]byte
}

// frameHeader is struct ncclotf2_frame.
type frameHeader struct {
	Magic    uint32
	Kind     uint32
	Index    uint64
	Position uint64
	Length   uint64
}

// Kinds of frames in a spool file.
const (
	frameHeaderKind = 1
	frameComm       = 2
	frameStrings    = 3
	frameRing       = 4
	frameClock      = 5
	frameEnd        = 6
	frameFailed     = 7
)

const (
	headerSize    = HeaderSize
	ringSize      = 1152
	commSize      = 192
	frameHeadSize = 32
	chunkPayload  = ChunkSize - ChunkHead
)
